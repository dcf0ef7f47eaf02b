#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: check.sh WORK FIRST STEP COMPILER FLAG…: programs that must not compile, every STEP-th from the FIRST on, as one
# unit: each in a namespace and under its own name, so that errors.awk can tell whose an error is.
set -eu
work=$1 first=$2 step=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$work"
cases=$(ls "$here"/*.cpp | awk -v first="$first" -v step="$step" 'NR % step == first % step')
unit=$work/unit_$first.cpp said=$work/said_$first.txt
{
  # shellcheck disable=SC2086  # names without blanks
  grep -h '^#include' $cases | sort -u
  for case in $cases; do
    echo "namespace $(basename "$case" .cpp) {"
    echo "#line 1 \"$case\""
    sed 's/^#include.*//' "$case"
    echo "}"
  done
} >"$unit"
if LC_ALL=C "$@" -std=gnu++20 -Wno-return-type -fsyntax-only -fmax-errors=0 "$unit" >"$said" 2>&1; then echo "$unit compiles" >&2; exit 1; fi
# shellcheck disable=SC2086
awk -v gcc="$("$1" --version | grep -c 'Free Software')" -f "$here/errors.awk" $cases "$said"
