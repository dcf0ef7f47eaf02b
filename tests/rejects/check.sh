#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: check.sh WORK FIRST STEP COMPILER FLAG…: of the programs that must not compile, every STEP-th from the FIRST on, as
# one unit: each in a namespace and a file of its own, so that errors.awk can tell whose an error is.
set -eu
work=$1/$2/rejects first=$2 step=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$work"
mkdir -p "$work"
cases=$(awk -v work="$work" -v first="$first" -v step="$step" -f "$here/programs.awk" "$here/programs.txt")
unit=$work/unit.txt said=$work/said.txt
{
  echo '#include "edl/edl.hpp"'
  echo 'namespace nn = edl::nn;'
  for case in $cases; do
    echo "namespace $(basename "$case" .cpp) {"
    echo "#line 1 \"$case\""
    cat "$case"
    echo "}"
  done
} >"$unit"
if LC_ALL=C "$@" -std=gnu++20 -Wno-return-type -fsyntax-only -fmax-errors=0 -x c++ "$unit" >"$said" 2>&1; then echo "$unit compiles" >&2; exit 1; fi
# shellcheck disable=SC2086  # names without blanks
awk -v gcc="$("$1" --version | grep -c 'Free Software')" -f "$here/errors.awk" $cases "$said"
