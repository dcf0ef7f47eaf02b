#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: build.sh STAGE WORK [FLAG…]
# A zoo that the installed tool has made builds with the installed package, and its tests pass. FLAGs are cmake's. A third of
# the models is built, the one whose turn it is by the count of commits.
set -eu
commit=$(git -C "$(dirname "$0")" rev-list --count HEAD) || commit=-1
case $((commit % 3)) in
  0) models=mnist,cifar10,heart,iris ;;
  1) models=mnist,criteo,census ;;
  2) models=mnist,frappe,text,imagenet ;;
  *) models=all ;;
esac
stage=$1 work=$2
shift 2
rm -rf "$work"
mkdir -p "$work"
cd "$work"
"$stage/bin/edl" zoo init --model_zoo=model_zoo --models=$models
# So does a model of a table, with numbers, words, dates and missing cells.
awk 'BEGIN {
  srand(1); print "area,quarter,built,sold,rent"
  for (i = 0; i < 800; ++i)
    printf "%d,%s,%s,2026-%02d-%02d,%.1f\n", 20 + 100 * rand(), rand() < 0.1 ? "" : "q" int(4 * rand()),
      rand() < 0.1 ? "" : 1900 + int(124 * rand()), 1 + 12 * rand(), 1 + 28 * rand(), 900 + 300 * rand()
}' >flats.csv
"$stage/bin/edl" zoo init --model_zoo=model_zoo --from=flats.csv --label=rent
[ "$("$stage/bin/elasticdl" --version)" = "$("$stage/bin/edl" --version)" ]
[ -f Dockerfile ]
cmake -S model_zoo -B build -DCMAKE_PREFIX_PATH="$stage" "$@"
cmake --build build --parallel 2
build/mnist_functional_api train --help | grep -e --training_data
ctest --test-dir build -j 2 --output-on-failure --no-tests=error
