#!/bin/sh
# The program $1 learns the characters of a text that counts. The loss begins as ln 256 = 5.5.
set -eu
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/log" >&2; echo "$1" >&2; exit 1; }

seq 10000 19999 >"$work/train"
seq 15000 15500 >"$work/test"
"$program" train --training_data="text:256:$work/train" --validation_data="text:256:$work/test" --max_step=60 \
  --minibatch_size=4 --deterministic --num_threads=1 >"$work/log" 2>&1 || fail "training ended with code $?"
grep "Evaluation metrics" "$work/log" | tail -n 1 | grep -Eq "'loss': [012]\." || fail "the loss is not below 3"
