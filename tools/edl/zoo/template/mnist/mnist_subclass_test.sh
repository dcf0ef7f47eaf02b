#!/bin/sh
# The program $1 learns drawn pictures: the loss of its last minibatches is below 0.4 of the first one's.
set -eu
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/log" >&2; echo "$1" >&2; exit 1; }

"$program" train --training_data=synthetic:train --max_step=80 --minibatch_size=32 --log_loss_steps=5 \
  --deterministic --num_threads=1 >"$work/log" 2>&1 || fail "training ended with code $?"
sed -n 's/.*Loss = \([0-9.e+-]*\),.*/\1/p' "$work/log" | awk '
  { losses[NR] = $1 }
  END { exit !(NR > 3 && (losses[NR] + losses[NR - 1] + losses[NR - 2]) / 3 < 0.4 * losses[1]) }' ||
  fail "the loss did not fall enough"
