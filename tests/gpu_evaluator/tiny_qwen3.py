"""A random Qwen3 of two layers, as GGUF or as a Hugging Face folder, and its logits computed with numpy alone.

Its tokenizer is byte-level BPE whose only merges make `true` and `false` one token each.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD, FEED_FORWARD, CONTEXT = 64, 2, 4, 2, 32, 128, 1024
EPSILON, ROPE_BASE = 1e-6, 10_000.0
_MERGES = ("t r", "u e", "tr ue", "f a", "l s", "fa ls", "fals e")
_END = "<|endoftext|>"
Weights = dict[str, NDArray[np.float32]]


def _byte_letters() -> list[str]:
    """The printable letter that byte-level BPE (GPT-2) writes for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, extra = {}, 256
    for byte in range(256):
        if byte in plain:
            letters[byte] = chr(byte)
        else:
            letters[byte] = chr(extra)
            extra += 1
    return [letters[byte] for byte in range(256)]


BYTES = _byte_letters()
TOKENS = [*BYTES, *(merge.replace(" ", "") for merge in _MERGES), _END]
TRUE, FALSE, END = TOKENS.index("true"), TOKENS.index("false"), TOKENS.index(_END)


def encode(text: str) -> list[int]:
    """Token ids of a text that holds neither label."""
    return list(text.encode())


def make_weights(seed: int = 7, scale: float = 0.2) -> Weights:
    """Random weights; at this scale the scores of different programs differ well."""
    draw = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> NDArray[np.float32]:
        return (draw.standard_normal((rows, columns)) * scale).astype(np.float32)

    weights = {"embed": matrix(len(TOKENS), HIDDEN), "norm": np.ones(HIDDEN, np.float32)}
    weights["head"] = matrix(len(TOKENS), HIDDEN)
    for n in range(LAYERS):
        weights |= {
            f"{n}.norm1": np.ones(HIDDEN, np.float32),
            f"{n}.q": matrix(HEADS * HEAD, HIDDEN),
            f"{n}.k": matrix(KV_HEADS * HEAD, HIDDEN),
            f"{n}.v": matrix(KV_HEADS * HEAD, HIDDEN),
            f"{n}.o": matrix(HIDDEN, HEADS * HEAD),
            f"{n}.qnorm": np.ones(HEAD, np.float32),
            f"{n}.knorm": np.ones(HEAD, np.float32),
            f"{n}.norm2": np.ones(HIDDEN, np.float32),
            f"{n}.gate": matrix(FEED_FORWARD, HIDDEN),
            f"{n}.up": matrix(FEED_FORWARD, HIDDEN),
            f"{n}.down": matrix(HIDDEN, FEED_FORWARD),
        }
    return weights


def next_logits(weights: Weights, tokens: list[int]) -> NDArray[np.float64]:
    """Logits over the whole vocabulary after `tokens`: Qwen3 in float64."""
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    x = w["embed"][tokens]
    size = len(tokens)
    frequencies = ROPE_BASE ** (-np.arange(0, HEAD, 2) / HEAD)
    angles = np.arange(size)[:, None] * frequencies
    cos, sin = np.cos(np.tile(angles, 2))[:, None], np.sin(np.tile(angles, 2))[:, None]
    mask = np.triu(np.full((size, size), -np.inf), 1)

    def norm(value: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
        return value / np.sqrt((value**2).mean(-1, keepdims=True) + EPSILON) * scale

    def rotate(value: NDArray[np.float64]) -> NDArray[np.float64]:
        left, right = np.split(value, 2, axis=-1)
        return value * cos + np.concatenate([-right, left], axis=-1) * sin

    for n in range(LAYERS):
        y = norm(x, w[f"{n}.norm1"])
        q = rotate(norm((y @ w[f"{n}.q"].T).reshape(size, HEADS, HEAD), w[f"{n}.qnorm"]))
        k = rotate(norm((y @ w[f"{n}.k"].T).reshape(size, KV_HEADS, HEAD), w[f"{n}.knorm"]))
        v = (y @ w[f"{n}.v"].T).reshape(size, KV_HEADS, HEAD)
        k, v = (part.repeat(HEADS // KV_HEADS, axis=1) for part in (k, v))
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(HEAD) + mask
        attention = np.exp(scores - scores.max(-1, keepdims=True))
        attention /= attention.sum(-1, keepdims=True)
        x = x + np.einsum("hij,jhd->ihd", attention, v).reshape(size, -1) @ w[f"{n}.o"].T
        y = norm(x, w[f"{n}.norm2"])
        gate = y @ w[f"{n}.gate"].T
        x = x + (gate / (1 + np.exp(-gate)) * (y @ w[f"{n}.up"].T)) @ w[f"{n}.down"].T
    return np.asarray(norm(x[-1:], w["norm"])[0] @ w["head"].T)


def exact_score(weights: Weights, tokens: list[int]) -> float:
    """P(true) normalised over the two labels, from logits over the whole vocabulary."""
    logits = next_logits(weights, tokens)
    return float(1 / (1 + np.exp(logits[FALSE] - logits[TRUE])))


_GGUF_LAYER = {
    "norm1": "attn_norm",
    "q": "attn_q",
    "k": "attn_k",
    "v": "attn_v",
    "o": "attn_output",
    "qnorm": "attn_q_norm",
    "knorm": "attn_k_norm",
    "norm2": "ffn_norm",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
}
_HF_LAYER = {
    "norm1": "input_layernorm",
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "o": "self_attn.o_proj",
    "qnorm": "self_attn.q_norm",
    "knorm": "self_attn.k_norm",
    "norm2": "post_attention_layernorm",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
}


def write_gguf(path: Path, weights: Weights, *, tokens: list[str] = TOKENS, merges: tuple[str, ...] = _MERGES) -> None:
    import gguf

    writer = gguf.GGUFWriter(path, "qwen3")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    types = [gguf.TokenType.NORMAL] * (len(tokens) - 1) + [gguf.TokenType.CONTROL]
    writer.add_token_types(types)
    writer.add_token_merges(list(merges))
    writer.add_eos_token_id(len(tokens) - 1)
    writer.add_add_bos_token(False)
    names = {"embed": "token_embd.weight", "norm": "output_norm.weight", "head": "output.weight"}
    for name, value in weights.items():
        number, _, part = name.partition(".")
        writer.add_tensor(names.get(name) or f"blk.{number}.{_GGUF_LAYER[part]}.weight", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_folder(folder: Path, weights: Weights) -> None:
    """A folder that transformers and vLLM load."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD,
        "intermediate_size": FEED_FORWARD,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": EPSILON,
        "rope_theta": ROPE_BASE,
        "vocab_size": len(TOKENS),
        "eos_token_id": END,
        "tie_word_embeddings": False,
        "hidden_act": "silu",
        "torch_dtype": "float32",
    }
    tokenizer = {
        "version": "1.0",
        "added_tokens": [
            {
                "id": END,
                "content": _END,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
        ],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True},
        "model": {
            "type": "BPE",
            "vocab": {token: number for number, token in enumerate(TOKENS[:-1])},
            "merges": [merge.split(" ") for merge in _MERGES],
        },
    }
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": _END, "model_max_length": CONTEXT}
    for name, value in (("config", config), ("tokenizer", tokenizer), ("tokenizer_config", settings)):
        (folder / f"{name}.json").write_text(json.dumps(value))
    names = {"embed": "model.embed_tokens.weight", "norm": "model.norm.weight", "head": "lm_head.weight"}
    tensors = {}
    for name, value in weights.items():
        number, _, part = name.partition(".")
        tensors[names.get(name) or f"model.layers.{number}.{_HF_LAYER[part]}.weight"] = value
    _write_safetensors(folder / "model.safetensors", tensors)


def _write_safetensors(path: Path, tensors: Weights) -> None:
    head: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    position = 0
    for name, value in tensors.items():
        head[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [position, position + value.nbytes]}
        position += value.nbytes
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for value in tensors.values():
            file.write(value.tobytes())
