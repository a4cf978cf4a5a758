"""A random ModernBERT of two layers as a Hugging Face folder, with a tokenizer of bytes. Needs transformers."""

from __future__ import annotations

import json
from pathlib import Path

from tests.gpu_evaluator.tiny_qwen3 import BYTES

CONTEXT = 512
SPECIAL = ("[CLS]", "[SEP]", "[PAD]", "[MASK]")
CLS, SEP, PAD, MASK = range(len(BYTES), len(BYTES) + len(SPECIAL))


def write_folder(folder: Path, *, masked: bool = True, seed: int = 7) -> None:
    """A masked language model, or a classifier of two classes."""
    import torch
    import transformers

    config = transformers.ModernBertConfig(
        vocab_size=len(BYTES) + len(SPECIAL),
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=CONTEXT,
        global_attn_every_n_layers=2,
        local_attention=32,
        pad_token_id=PAD,
        cls_token_id=CLS,
        sep_token_id=SEP,
        bos_token_id=CLS,
        eos_token_id=SEP,
        num_labels=2,
    )
    torch.manual_seed(seed)
    kind = transformers.ModernBertForMaskedLM if masked else transformers.ModernBertForSequenceClassification
    kind(config).save_pretrained(folder)
    added = [
        {"id": number, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        | {"special": True}
        for number, text in enumerate(SPECIAL, len(BYTES))
    ]
    ends = [{"SpecialToken": {"id": text, "type_id": 0}} for text in SPECIAL[:2]]
    tokenizer = {
        "version": "1.0",
        "added_tokens": added,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [ends[0], {"Sequence": {"id": "A", "type_id": 0}}, ends[1]],
            "pair": [
                ends[0],
                {"Sequence": {"id": "A", "type_id": 0}},
                {"Sequence": {"id": "B", "type_id": 0}},
                ends[1],
            ],
            "special_tokens": {
                text: {"id": text, "ids": [number], "tokens": [text]} for number, text in enumerate(SPECIAL[:2], CLS)
            },
        },
        "model": {"type": "BPE", "vocab": {token: number for number, token in enumerate(BYTES)}, "merges": []},
    }
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": CONTEXT}
    names = zip(("cls_token", "sep_token", "pad_token", "mask_token"), SPECIAL, strict=True)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | dict(names)))
