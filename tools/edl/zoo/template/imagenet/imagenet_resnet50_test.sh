#!/bin/sh
# The program $1 learns drawn pictures: the mean loss of its last 5 minibatches is below 0.75 of the first 5.
set -eu
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/log" >&2; echo "$1" >&2; exit 1; }

"$program" train --training_data=synthetic:pictures --max_step=22 --minibatch_size=8 --log_loss_steps=1 \
  --deterministic --num_threads=1 >"$work/log" 2>&1 || fail "training ended with code $?"
sed -n 's/.*Loss = \([0-9.e+-]*\),.*/\1/p' "$work/log" | awk '
  { losses[NR] = $1 }
  END {
    for (i = 0; i < 5; ++i) { first += losses[1 + i]; last += losses[NR - i] }
    exit !(NR == 22 && last < 0.75 * first)
  }' || fail "the loss did not fall enough"
