#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Puts bugs of the past back, one by one, and looks whether edl-world finds them.
#
#   tests/world/bugs.sh --check            only tells which patches still apply
#   tests/world/bugs.sh BUILD [NAME…]      all of them, or those; BUILD: a build folder that has edl-world
#
# SECONDS_EACH (600): of a processor, that a campaign may look for one. SEED (1): where it begins. WORK: a folder for
# the mutated sources and programs; what is there already is not compiled again.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
patches=$root/tests/world/bugs

stale=0
for p in "$patches"/*.patch; do
  (cd "$root" && git apply --check "$p" 2>/dev/null) || { echo "does not apply any more: ${p##*/}"; stale=1; }
done
[ "${1-}" = --check ] && exit $stale

build=$(cd "$1" && pwd) || exit 2
shift
work=${WORK:-$(mktemp -d)}
mkdir -p "$work/include"
[ $# -gt 0 ] && names=("$@") || mapfile -t names < <(cd "$patches" && ls -- *.patch | sed 's/\.patch$//')

# How the program is compiled and linked, as ninja does it.
compile=$(ninja -C "$build" -t commands tests/world/edl-world 2>/dev/null | grep -E -- ' -c .*world/history\.cpp' | tail -1)
link=$(ninja -C "$build" -t commands tests/world/edl-world | tail -1)
[ -n "$compile" ] && [ -n "$link" ] || { echo "$build has no edl-world"; exit 2; }

mkdir -p "$work/base"
ninja -C "$build" -t commands libedl.a > "$work/commands"

# Compiles the library's unit that has this body, once. A unit calls its own functions directly: compiled so that it
# does not, each may have another body. Sets `unit` to its name.
unit_of() {
  unit=$(sed -E 's#^(edl/(core|cli|[a-z]+/[a-z_]+)).*#\1#; s#/#-#g' <<< "$1")
  [ -f "$work/base/$unit.o" ] && return
  command=$(grep -E "unity_${unit}_cxx.cxx$" "$work/commands" | tail -1)
  [ -n "$command" ] || { echo "$build has no unit $unit: configure it with -DEDL_UNITY=ON"; exit 2; }
  command=$(sed -E "s/-fno-semantic-interposition/-fsemantic-interposition -w/; s/ -M[DTF]+( [^ ]+\.(d|o))?//g
                    s| -o [^ ]+| -o $work/base/$unit.o|" <<< "$command")
  (cd "$build" && eval "$command") || { echo "$unit does not compile"; exit 2; }
}

found=0 all=0
printf '| %-20s | %-8s | %-7s | %6s | %9s | %7s |\n' bug commit found seed histories seconds
for name in "${names[@]}"; do
  patch=$patches/$name.patch
  commit=$(sed -n 's/^commit: //p' "$patch")
  rm -rf "$work/tree" && mkdir -p "$work/tree" && cp -r "$root/include" "$work/tree/"
  (cd "$work/tree" && patch -s -p1 < "$patch") || { echo "$name: cannot be put back"; continue; }
  # Only the bodies that the patch changes are compiled again; the linker takes them before the library's.
  objects= bases=
  for body in $(sed -n 's|^+++ b/include/\(.*\.ipp\)$|\1|p' "$patch"); do
    unit_of "$body"
    [[ " $bases " = *" $work/base/$unit.o "* ]] || bases="$bases $work/base/$unit.o"
    source=$work/${body//\//-}
    echo "#include \"$body\"" > "$source.cpp"
    command=${compile% -c *}
    command=${command//-I$root\/include/-I$work\/tree\/include}
    command=$(sed -E 's/ -o [^ ]+//; s/ -M[DTF]+( [^ ]+\.(d|o))?//g' <<< "$command")
    (cd "$build" && eval "$command -w -O1 -c $source.cpp -o $source.o") ||
      { echo "$name: does not compile"; continue 2; }
    objects="$objects $source.o"
  done
  program=$work/edl-world-$name
  changed=$(sed -E "s| -o [^ ]+| -o $program -Wl,--allow-multiple-definition $objects $bases|" <<< "$link")
  (cd "$build" && eval "$changed") || { echo "$name: does not link"; continue; }
  next=${SEED:-1} left=${SECONDS_EACH:-600} histories=0 used=0 seed=
  while [ "$left" -gt 0 ]; do
    "$program" --seed="$next" --processor="$left" --stop --keep > "$work/$name.log" 2>&1
    code=$?
    read -r n took < <(sed -nE 's/^[0-9]+ s: ([0-9]+) histories.* ([0-9]+) s of a processor.*/\1 \2/p' "$work/$name.log" | tail -1)
    histories=$((histories + n)) used=$((used + took)) left=$((left - took - 1))
    [ $code -eq 1 ] || break
    seed=$(sed -n 's/^seed \([0-9]*\) fails: .*/\1/p' "$work/$name.log" | head -1)
    next=$((seed + 1))
    # A history that fails without the bug, too, has not found it.
    "$build/tests/world/edl-world" --seed="$seed" --keep > /dev/null && break
    seed=
  done
  all=$((all + 1))
  [ -n "$seed" ] && found=$((found + 1))
  printf '| %-20s | %-8s | %-7s | %6s | %9s | %7s |\n' "$name" "$commit" \
    "$([ -n "$seed" ] && echo yes || echo no)" "${seed:--}" "$histories" "$used"
  rm -f "$program"
done
echo "found $found of $all"
