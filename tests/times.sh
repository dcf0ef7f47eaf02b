#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: times.sh BUILD: seconds of build steps and of tests, by groups, as the last runs took them. Steps are compilers,
# which compute; tests also wait.
set -eu
build=$1
[ -f "$build/.ninja_log" ] || { echo "$build holds no build: run tools/test" >&2; exit 1; }
# The last entry of an output is the one that counts, if there is still such a file.
awk -F '\t' -v build="$build" '
  FNR == 1 { next }
  { took[$4] = ($2 - $1) / 1000 }
  END {
    for (step in took) {
      there = getline line <(build "/" step)
      close(build "/" step)
      if (there < 0) continue
      group = "other"
      if (step ~ /^CMakeFiles\/edl_controller/) group = "library of the controller"
      else if (step ~ /^CMakeFiles\/edl-cuda|cuda/) group = "GPUs and their double"
      else if (step ~ /^(CMakeFiles|generated|libedl)/) group = "library"
      else if (step ~ /^tools/) group = "commands"
      else if (step ~ /^examples/) group = "examples"
      else if (step ~ /^tests\/sanitized/) group = "tests with sanitizers"
      else if (step ~ /^tests\/fuzz/) group = "replay of the fuzz seeds"
      else if (step ~ /^tests\/kubernetes/) group = "double of Kubernetes"
      else if (step ~ /^tests\/CMakeFiles\/(link|test-docs)/) group = "everything in one unit, snippets"
      else if (step ~ /^tests\//) group = "tests of the folders"
      sum[group] += took[step]
    }
    for (group in sum) printf "%8.0f s  build  %s\n", sum[group], group
  }' "$build/.ninja_log" | sort -rn
costs=$build/Testing/Temporary/CTestCostData.txt
[ -f "$costs" ] || { echo "no test of $build has run yet" >&2; exit 0; }
awk '
  $1 == "---" { exit }
  {
    group = $1
    sub(/\/.*/, "", group)
    sum[group] += $3
  }
  END {
    for (group in sum) if (sum[group] >= 1) printf "%8.0f s  run    %s\n", sum[group], group
  }' "$costs" | sort -rn
