"""The workflow of a GRPO run on proofs with AReaL; rows of the data set carry `messages` and `statement`."""

from __future__ import annotations

from areal.workflow.rlvr import RLVRWorkflow

from reward_gateway.trainers.areal import lean_reward


def make_workflow(gconfig: object, tokenizer: object) -> RLVRWorkflow:
    """Raise the timeout of AReaL's reward wrapper too (docs/trainers/areal.md): by default it answers 0 after 15 s."""
    return RLVRWorkflow(reward_fn=lean_reward, gconfig=gconfig, tokenizer=tokenizer)
