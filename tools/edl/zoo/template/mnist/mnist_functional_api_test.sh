#!/bin/sh
# The program $1 learns drawn digits, as one process and as a job of four, and loses no record.
set -eu
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/log" >&2; echo "$1" >&2; exit 1; }

for processes in "" "--num_ps_pods=1 --num_workers=2"; do
  rm -rf "$work/checkpoints"
  # shellcheck disable=SC2086  # several flags
  "$program" train --training_data=synthetic:train --validation_data=synthetic:test --max_step=80 --minibatch_size=32 \
    --checkpoint_dir="$work/checkpoints" --kernel_cache="$work/kernels" $processes >"$work/log" 2>&1 ||
    fail "training ended with code $?"
  # The last evaluation says 0.8 or more.
  grep "Evaluation metrics" "$work/log" | tail -n 1 | grep -Eq "'accuracy': (0\.[89]|1)" ||
    fail "less than 0.8 of the digits were recognised"
  "$program" audit "$work/checkpoints" >"$work/log" 2>&1 || fail "records were lost or repeated"
done
