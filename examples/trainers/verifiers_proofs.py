"""A taskset of proofs for verifiers, scored by the server at LEAN_REWARD_CLIENT_URL."""

from __future__ import annotations

import verifiers.v1 as vf

from reward_gateway.trainers.verifiers import ProofData, ProofTask

STATEMENTS = ["theorem t (a b : Nat) : a + b = b + a", "theorem t (n : Nat) : n ≤ n + 1"]


class Proofs(vf.Taskset[ProofTask, vf.TasksetConfig]):
    def load(self) -> list[ProofTask]:
        prompt = "Prove it in Lean 4. Answer with the whole theorem in a ```lean block.\n\n{}"
        return [ProofTask(ProofData(prompt=prompt.format(s), statement=s)) for s in STATEMENTS]
