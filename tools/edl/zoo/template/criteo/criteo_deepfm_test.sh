#!/bin/sh
# The program $1 learns drawn clicks, of which a perfect model would order more than 80 % of the pairs rightly.
set -eu
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/log" >&2; echo "$1" >&2; exit 1; }

"$program" train --training_data=synthetic:clicks --validation_data=synthetic:clicks-test --max_step=200 \
  --minibatch_size=256 --deterministic --num_threads=1 >"$work/log" 2>&1 || fail "training ended with code $?"
grep "Evaluation metrics" "$work/log" | tail -n 1 | grep -Eq "'auc': 0\.[78]" || fail "the AUC is below 0.7"
