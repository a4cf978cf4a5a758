#!/bin/sh
# Workflow-stage GRPO for agents with verl. Your agent loop returns verl_plugin.WorkflowOutput (docs/trainers/verl.md).
set -eu
: "${REWARDS:=http://127.0.0.1:8000}"
plugin=reward_gateway.trainers.verl_plugin
export VERL_USE_EXTERNAL_MODULES="$plugin" LEAN_REWARD_CLIENT_URL="$REWARDS"
exec python -m verl.trainer.main_ppo \
  algorithm.adv_estimator=workflow_stage_grpo \
  trainer.v1.trainer_mode=workflow_sync \
  actor_rollout_ref.rollout.n=8 \
  actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-sum \
  reward.reward_manager.name=lean_reward \
  "+ray_kwargs.ray_init.runtime_env.env_vars.VERL_USE_EXTERNAL_MODULES=$plugin" \
  "+ray_kwargs.ray_init.runtime_env.env_vars.LEAN_REWARD_CLIENT_URL=$REWARDS" \
  "$@"
