#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: build.sh STAGE WORK [FLAG…]
# A zoo that the installed tool has made builds with the installed package, and its test passes. FLAGs are cmake's.
set -eu
stage=$1 work=$2
shift 2
rm -rf "$work"
mkdir -p "$work"
cd "$work"
"$stage/bin/edl" zoo init --model_zoo=model_zoo --models=all
[ "$("$stage/bin/elasticdl" --version)" = "$("$stage/bin/edl" --version)" ]
[ -f Dockerfile ]
cmake -S model_zoo -B build -DCMAKE_PREFIX_PATH="$stage" "$@"
cmake --build build
build/mnist_functional_api train --help | grep -e --training_data
ctest --test-dir build -j 2 --output-on-failure --no-tests=error
