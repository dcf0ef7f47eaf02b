#!/bin/sh
# The program $1 learns drawn rows, in which users and apps of one group belong together.
set -eu
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/log" >&2; echo "$1" >&2; exit 1; }

awk 'BEGIN {
  srand(1)
  for (i = 0; i < 6000; ++i) {
    user = int(50 * rand()); app = int(50 * rand())
    printf "%d %d:1 %d:1", user % 2 == app % 2 ? 1 : -1, user, 1000 + app
    for (k = 2; k < 10; ++k) printf " %d:1", 1000 + 500 * k - 500 + int(20 * rand())
    print ""
  }
}' >"$work/rows.libfm"
"$program" train --training_data="$work/rows.libfm" --validation_data="$work/rows.libfm" --num_epochs=6 \
  --minibatch_size=64 >"$work/log" 2>&1 || fail "training ended with code $?"
grep "Evaluation metrics" "$work/log" | tail -n 1 | grep -Eq "'auc': (0\.9|1)" || fail "the AUC is below 0.9"
