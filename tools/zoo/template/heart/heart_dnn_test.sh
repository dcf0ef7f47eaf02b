#!/bin/sh
# The program $1 learns drawn patients, whose disease follows age, thal and oldpeak.
set -eu
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/log" >&2; echo "$1" >&2; exit 1; }

awk 'BEGIN {
  srand(1); split("normal fixed reversible 1", thal); print "age,trestbps,chol,thalach,oldpeak,slope,thal,target"
  for (i = 0; i < 600; ++i) {
    age = 29 + int(48 * rand()); t = 1 + int(4 * rand()); peak = 4 * rand()
    sick = (age > 55) + (t == 3) + (peak > 2) + 0.6 * rand() > 1.7
    printf "%d,%d,%d,%d,%.1f,%d,%s,%d\n", age, 100 + 60 * rand(), 180 + 120 * rand(), 110 + 80 * rand(), peak,
      1 + int(3 * rand()), thal[t], sick
  }
}' >"$work/heart.csv"
"$program" train --training_data="$work/heart.csv" --validation_data="$work/heart.csv" --num_epochs=30 --minibatch_size=32 \
  >"$work/log" 2>&1 || fail "training ended with code $?"
grep "Evaluation metrics" "$work/log" | tail -n 1 | grep -Eq "'auc': (0\.9|1)" || fail "the AUC is below 0.9"
