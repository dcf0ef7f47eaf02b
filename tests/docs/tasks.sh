#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: tasks.sh PAGES STAGE WORK [FLAG…]
# The pages of tasks, as they stand: their programs are built with the installed package, their commands run, and each says
# what its page says that it prints. FLAGs are cmake's. A page with Python is skipped where NumPy is not.
set -eu
pages=$1 stage=$2 work=$3
shift 3
rm -rf "$work"
mkdir -p "$work"

# The blocks of a language: of cpp, each goes into the file that its first line names; of others, all into $2.
cut_blocks() {
  awk -v language="$1" -v whole="$2" -v folder="$work" '
    inside && /^```$/ { inside = 0; next }
    inside && language == "cpp" && file == "" {
      if ($0 !~ /^\/\/ [a-z_]+\.[ch]pp$/) { print FILENAME ": a program does not begin with its name: " $0 >"/dev/stderr"; exit 1 }
      file = folder "/" $2
    }
    inside { print >(language == "cpp" ? file : whole) }
    $0 == "```" language { inside = 1; file = "" }' "$3"
}

cut_blocks cmake "$work/CMakeLists.txt" "$pages/README.md"
for page in "$pages"/*.md; do
  [ "$page" = "$pages/README.md" ] || cut_blocks cmake /dev/stdout "$page" >>"$work/CMakeLists.txt"
  [ "$page" = "$pages/README.md" ] || cut_blocks cpp - "$page"
done
cat >>"$work/CMakeLists.txt" <<'END'
# edl's headers are read once for the programs that ask for them.
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  file(STRINGS ${source} asks REGEX "^#include <edl/edl.hpp>")
  if(asks AND precompiled)
    target_precompile_headers(${name} REUSE_FROM ${precompiled})
  elseif(asks)
    target_precompile_headers(${name} PRIVATE <edl/edl.hpp>)
    set(precompiled ${name})
  endif()
endforeach()
END
cmake -S "$work" -B "$work/build" -DCMAKE_PREFIX_PATH="$stage" "$@"
cmake --build "$work/build" --parallel 2

PATH=$work/build:$stage/bin:/usr/bin:$PATH  # Debian's Python
export PYTHONPATH="$stage/lib/python3/dist-packages"
numpy=$(python3 -c 'import numpy' 2>&1 && echo there) || true
failed=
for page in "$pages"/*.md; do
  name=$(basename "$page" .md)
  [ "$name" != README ] || continue
  mkdir "$work/$name"
  cut_blocks sh "$work/$name.sh" "$page"
  if [ "$numpy" != there ] && grep -q '^python3' "$work/$name.sh"; then
    echo "skipped: $name: NumPy is not there: apt-get install python3-numpy"
    continue
  fi
  echo "== $name"
  if ! (cd "$work/$name" && sh -eu "$work/$name.sh") >"$work/$name.txt" 2>&1; then
    failed="$failed $name"
    tail -n 40 "$work/$name.txt"
    echo "the commands of $page end with an error"
  fi
  sed -n 's/^<!-- prints: \(.*\) -->$/\1/p' "$page" >"$work/$name.prints"
  [ -s "$work/$name.prints" ] || { failed="$failed $name"; echo "$page does not say what it prints"; }
  while IFS= read -r pattern; do
    grep -Eq -e "$pattern" "$work/$name.txt" || {
      failed="$failed $name"
      tail -n 20 "$work/$name.txt"
      echo "$page: nothing that is printed matches $pattern"
    }
  done <"$work/$name.prints"
done
[ -z "$failed" ] || { echo "pages that are not as they say:$failed"; exit 1; }
