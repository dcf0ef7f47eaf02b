#!/bin/sh
# The program $1 learns 200 drawn pictures in 20 epochs: the loss falls, by the mean of its last six lines.
set -eu
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/log" >&2; echo "$1" >&2; exit 1; }

"$program" data --from=synthetic:pictures --to="$work/few" --fraction=0.004 >"$work/log" 2>&1 || fail "no records"
"$program" train --training_data="$work/few" --num_epochs=20 --minibatch_size=32 --log_loss_steps=10 \
  --kernel_cache="$work/kernels" >"$work/log" 2>&1 || fail "training ended with code $?"
sed -n 's/.*Loss = \([0-9.e+-]*\),.*/\1/p' "$work/log" | awk '
  { losses[NR] = $1 }
  END { for (i = NR - 5; i <= NR; ++i) sum += losses[i]; exit !(NR > 8 && sum / 6 < 0.93 * losses[1]) }' ||
  fail "the loss did not fall enough"
