#!/bin/sh
# The program $1 learns 200 drawn pictures in 12 epochs of 7 minibatches: the mean loss of the last two epochs is below 0.9
# of that of the first two.
set -eu
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/log" >&2; echo "$1" >&2; exit 1; }

"$program" data --from=synthetic:pictures --to="$work/few" --fraction=0.004 >"$work/log" 2>&1 || fail "no records"
"$program" train --training_data="$work/few" --num_epochs=12 --minibatch_size=32 --log_loss_steps=1 \
  --deterministic --num_threads=1 >"$work/log" 2>&1 || fail "training ended with code $?"
sed -n 's/.*Loss = \([0-9.e+-]*\),.*/\1/p' "$work/log" | awk '
  { losses[NR] = $1 }
  END {
    for (i = 1; i <= 14; ++i) { first += losses[i]; last += losses[NR + 1 - i] }
    exit !(NR >= 80 && last < 0.9 * first)
  }' ||
  fail "the loss did not fall enough"
