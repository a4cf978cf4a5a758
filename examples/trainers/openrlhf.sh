#!/bin/sh
# GRPO on proofs with OpenRLHF: the label is the statement. Add your model, data and parallelism as usual.
set -eu
export LEAN_REWARD_CLIENT_URL="${REWARDS:-http://127.0.0.1:8000}"
file=$(python -c 'import reward_gateway.trainers.openrlhf as m; print(m.__file__)')
exec python -m openrlhf.cli.train_ppo_ray --reward.remote_url "$file" --data.label_key statement "$@"
