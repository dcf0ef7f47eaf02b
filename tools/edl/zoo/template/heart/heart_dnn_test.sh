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

# Other columns need no other program.
cat >"$work/own.columns" <<'END'
age      | normalization subtract=53 divide=14
oldpeak  | normalization subtract=2 divide=1.2
trestbps | to_number otherwise=130 | normalization subtract=131 divide=18
chol     | normalization subtract=246 divide=52
thalach  | normalization subtract=149 divide=23
thal     | string_lookup words=reversible,normal
slope    | round_identity most=3
END
EDL_COLUMNS="$work/own.columns" "$program" train --training_data="$work/heart.csv" --validation_data="$work/heart.csv" \
  --num_epochs=30 --minibatch_size=32 >"$work/log" 2>&1 || fail "training with other columns ended with code $?"
grep "Evaluation metrics" "$work/log" | tail -n 1 | grep -Eq "'auc': (0\.9|1)" || fail "the AUC is below 0.9"
echo "age | normalisation" >"$work/own.columns"
if EDL_COLUMNS="$work/own.columns" "$program" train --training_data="$work/heart.csv" >"$work/log" 2>&1; then
  fail "a wrong file of columns was taken"
fi
grep -q "own.columns:1: column 'age': .*did you mean normalization" "$work/log" || fail "the wrong line is not named"
