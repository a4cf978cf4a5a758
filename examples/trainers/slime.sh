#!/bin/sh
# GRPO on proofs with slime: --label-key names the column with the statement. Add your model, data and parallelism.
set -eu
: "${REWARDS:=http://127.0.0.1:8000}"
export LEAN_REWARD_CLIENT_URL="$REWARDS"
exec python train.py \
  --advantage-estimator grpo --n-samples-per-prompt 8 \
  --label-key statement \
  --custom-rm-path reward_gateway.trainers.slime.reward --reward-key score --group-rm \
  --custom-reward-post-process-path reward_gateway.trainers.slime.post_process \
  "$@"
