#!/bin/sh
# The program $1 learns drawn flowers, of three kinds whose petals differ.
set -eu
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/log" >&2; echo "$1" >&2; exit 1; }

awk 'BEGIN {
  srand(1); print "sepal_length,sepal_width,petal_length,petal_width,class"
  for (i = 0; i < 300; ++i) {
    k = i % 3
    printf "%.1f,%.1f,%.1f,%.1f,%d\n", 5 + 0.8 * k + rand(), 3 + rand(), 1.3 + 2 * k + rand(), 0.2 + 0.8 * k + rand() / 2, k
  }
}' >"$work/iris.csv"
"$program" train --training_data="$work/iris.csv" --validation_data="$work/iris.csv" --num_epochs=20 --minibatch_size=16 \
  >"$work/log" 2>&1 || fail "training ended with code $?"
grep "Evaluation metrics" "$work/log" | tail -n 1 | grep -Eq "'accuracy': (0\.9|1)" ||
  fail "less than 0.9 of the flowers were recognised"
