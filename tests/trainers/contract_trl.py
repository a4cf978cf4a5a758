"""TRL's own reward call and a tiny GRPO on a CPU, with rewards from a live server."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from live import RESPONSES, REWARDS, STATEMENT, URL, Trouble
from trl import GRPOConfig, GRPOTrainer

from reward_gateway.trainers.trl import LeanReward


class Trainer(SimpleNamespace):
    """The part of a trainer that its reward call looks at."""

    def __init__(self, function: Any) -> None:
        import asyncio
        import threading

        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        super().__init__(
            accelerator=SimpleNamespace(
                device="cpu", gather=lambda t: t, is_main_process=True, process_index=0, num_processes=1
            ),
            reward_funcs=[function],
            reward_processing_classes=[None],
            reward_func_names=["lean_reward"],
            environments=None,
            state=SimpleNamespace(global_step=0),
            model=SimpleNamespace(training=True),
            args=SimpleNamespace(report_to=[]),
            _metrics={"train": defaultdict(list), "eval": defaultdict(list)},
            async_loop=loop,
            async_reward_loop=loop,
            _log_completion_extra=None,
            _log_metric=None,
        )


def rewards_of(function: Any, completions: list[str]) -> list[float]:
    rows = [{"prompt": "Prove it.", "statement": STATEMENT} for _ in completions]
    found = GRPOTrainer._calculate_rewards(
        Trainer(function), rows, ["Prove it."] * len(rows), completions, [[1]] * len(rows)
    )
    return found[:, 0].tolist()


def test_its_reward_call_gets_right_rewards() -> None:
    assert rewards_of(LeanReward(url=URL), list(RESPONSES)) == list(REWARDS)


def test_a_restart_an_overload_and_a_slow_server_lose_no_reward() -> None:
    trouble = Trouble()
    function = LeanReward(url=trouble.url)
    with trouble.down_for(1.5):
        assert rewards_of(function, list(RESPONSES)) == list(REWARDS)
    trouble.overloads, trouble.delay_s = 1, 1.0
    assert rewards_of(function, list(RESPONSES)) == list(REWARDS)
    trouble.stop()
    gone = rewards_of(LeanReward(url=trouble.url, deadline_s=0.5, patience_s=0.5), [RESPONSES[0], RESPONSES[1]])
    assert all(reward != reward for reward in gone)  # NaN is TRL's word for unscorable


def test_ten_steps_of_grpo_log_the_servers_rewards(tmp_path: Any) -> None:
    """A random model of two tokens' worth of choices: each token is a whole proof, so that some are right."""
    from datasets import Dataset
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    proofs = [" :=byomega", " :=byrfl", " :=bydecide", " :=Nat.add_commab"]
    texts = ["by omega", "by rfl", "by decide", "Nat.add_comm a b"]
    words = {name: i for i, name in enumerate(["<pad>", "<eos>", "Prove", *proofs])}
    backend = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="<pad>", eos_token="<eos>", unk_token="<pad>", padding_side="left"
    )
    torch.manual_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(words), n_positions=16, n_embd=16, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=1
        )
    )
    lean = LeanReward(url=URL)
    seen: list[list[float]] = []

    async def lean_reward(prompts: Any, completions: Any, completion_ids: Any, **columns: Any) -> Any:
        codes = []
        for ids in completion_ids:
            first = int(ids[0])
            body = texts[first - 3] if first >= 3 else "by skip"
            codes.append(f"```lean\n{STATEMENT} := {body}\n```")
        rewards = await lean(prompts=prompts, completions=codes, statement=columns["statement"])
        seen.append(rewards)
        return rewards

    trainer = GRPOTrainer(
        model=model,
        reward_funcs=lean_reward,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list([{"prompt": "Prove", "statement": STATEMENT}] * 64),
        args=GRPOConfig(
            output_dir=str(tmp_path),
            per_device_train_batch_size=8,
            num_generations=8,
            max_completion_length=2,
            max_steps=10,
            learning_rate=0.05,
            logging_steps=1,
            report_to=[],
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            save_strategy="no",
            disable_tqdm=True,
        ),
    )
    trainer.train()
    logged = [
        entry["rewards/lean_reward/mean"] for entry in trainer.state.log_history if "rewards/lean_reward/mean" in entry
    ]
    assert len(logged) == len(seen) == 10
    assert logged == pytest.approx([sum(step) / len(step) for step in seen])
    assert any(0.0 < mean < 1.0 for mean in logged)
