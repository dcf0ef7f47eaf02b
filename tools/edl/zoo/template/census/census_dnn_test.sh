#!/bin/sh
# The program $1 learns drawn people, who earn more with their age and some educations.
set -eu
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/log" >&2; echo "$1" >&2; exit 1; }

awk 'BEGIN {
  srand(1)
  printf "age,workclass,education,marital_status,occupation,relationship,race,sex,capital_gain,capital_loss,"
  print "hours_per_week,native_country,label"
  for (i = 0; i < 2000; ++i) {
    age = 17 + int(60 * rand()); e = int(16 * rand())
    rich = age / 77 + (e % 4 == 0) + 0.4 * rand() > 1.1
    printf "%d,w%d,e%d,m%d,o%d,r%d,x%d,s%d,%d,0,%d,n%d,%s\n", age, 8 * rand(), e, 7 * rand(), 15 * rand(), 6 * rand(),
      5 * rand(), 2 * rand(), 1000 * rand(), 20 + 40 * rand(), 40 * rand(), rich ? ">50K" : "<=50K"
  }
}' >"$work/people.csv"
"$program" train --training_data="$work/people.csv" --validation_data="$work/people.csv" --num_epochs=15 \
  --minibatch_size=32 >"$work/log" 2>&1 || fail "training ended with code $?"
grep "Evaluation metrics" "$work/log" | tail -n 1 | grep -Eq "'auc': (0\.9|1)" || fail "the AUC is below 0.9"
