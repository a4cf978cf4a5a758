#!/bin/sh
# GRPO on proofs with verl: the data set's ground_truth is the statement. Add your model, data and parallelism as usual.
set -eu
: "${REWARDS:=http://127.0.0.1:8000}"
exec python -m verl.trainer.main_ppo \
  algorithm.adv_estimator=grpo \
  actor_rollout_ref.rollout.n=8 \
  reward.num_workers=8 \
  reward.reward_manager.name=naive \
  reward.custom_reward_function.path=pkg://reward_gateway.trainers.verl \
  reward.custom_reward_function.name=compute_score \
  "+reward.custom_reward_function.reward_kwargs.url=$REWARDS" \
  +reward.custom_reward_function.reward_kwargs.on_failure=raise \
  +reward.custom_reward_function.reward_kwargs.patience_s=600 \
  "$@"
