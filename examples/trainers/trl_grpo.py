"""GRPO on proofs with TRL: `python trl_grpo.py MODEL [STEPS]`; the server is LEAN_REWARD_CLIENT_URL."""

from __future__ import annotations

import sys

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from reward_gateway.trainers.trl import LeanReward

STATEMENTS = [
    "theorem t (a b : Nat) : a + b = b + a",
    "theorem t (p q : Prop) (h : p ∧ q) : q ∧ p",
    "theorem t (n : Nat) : n ≤ n + 1",
]
PROMPT = "Prove it in Lean 4. Answer with the whole theorem in a ```lean block.\n\n{}"


def main(model: str, steps: int) -> None:
    data = Dataset.from_list([{"prompt": PROMPT.format(s), "statement": s} for s in STATEMENTS] * 64)
    settings = GRPOConfig(
        "trl-lean", num_generations=8, per_device_train_batch_size=8, max_steps=steps, logging_steps=1
    )
    GRPOTrainer(model=model, reward_funcs=LeanReward(), train_dataset=data, args=settings).train()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100)
