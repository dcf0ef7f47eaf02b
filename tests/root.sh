#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: root.sh RELEASE [COMMAND]: runs a command in a fresh root of that Debian release. Without a command, the count of
# commits chooses: the README's `tools/quickstart` or `tools/test`, or one of the builds of tests/builds.sh. Needs root's rights
# and mmdebstrap, and is skipped without them.
set -eu
cd "$(dirname "$0")/.."
release=$1
commit=$(git rev-list --count HEAD 2>/dev/null) || commit=0  # 0: a clone without history has one turn for ever
case $((commit % 14)) in
  12) command=tools/quickstart ;;
  13) command=tools/test ;;
  *) command="tools/install-packages && tests/builds.sh $((1 + commit % 14))" ;;
esac
command=${2-$command}
[ "$(id -u)" = 0 ] || { echo "skipped: a root of Debian $release is made by root alone"; exit 77; }
command -v mmdebstrap >/dev/null || { echo "skipped: mmdebstrap is not installed (tools/install-packages mmdebstrap)"; exit 77; }
unshare --mount true 2>/dev/null || { echo "skipped: nothing can be mounted here, as in a container"; exit 77; }
root=$PWD/build/root-$release
rm -rf --one-file-system "$root"
mkdir -p "$root"
mmdebstrap --quiet --variant=minbase "$release" "$root" 2>"$root.log" || {
  tail -n 5 "$root.log"; echo "skipped: no root of Debian $release can be made here"; exit 77; }
for file in /etc/hosts /etc/resolv.conf; do [ ! -e $file ] || cp -L $file "$root$file"; done
mkdir "$root/edl"
git ls-files -z --cached --others --exclude-standard | xargs -0 tar -cf - --ignore-failed-read | tar -xf - -C "$root/edl"
data=${EDL_DATA_DIR:-../shared/data}
[ ! -d "$data/mnist" ] || { mkdir "$root/data"; cp -r "$data/mnist" "$root/data/"; }
echo "== Debian $release: $(chroot "$root" dpkg-query -W -f '${Version}' base-files), $command"
cuda=
case $command in *builds.sh*) cuda=$(readlink -f /usr/local/cuda) && [ -d "$cuda" ] || cuda= ;; esac
[ -z "$cuda" ] || { mkdir "$root$cuda" && ln -s "$cuda" "$root/usr/local/cuda"; }
# The mounts are of this command alone, and end with it.
status=0
unshare --mount sh -c '
  set -eu
  [ -z "$2" ] || mount --bind -o ro "$2" "$0$2"
  mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" && mount --rbind /dev "$0/dev"
  exec chroot "$0" env -u TMPDIR -u CMAKE_CXX_COMPILER_LAUNCHER -u CMAKE_CUDA_COMPILER_LAUNCHER \
    EDL_DATA_DIR=/data HOME=/root sh -c "cd /edl && $1"
' "$root" "$command" "$cuda" >"$root.log" 2>&1 || status=$?
tail -n 12 "$root.log"
[ $status = 0 ] || grep -nE -A3 'ERROR:|error:|\*\*\*' "$root.log" | head -n 60
[ $status = 0 ] || { echo "$command fails in Debian $release: $root.log" >&2; exit 1; }
rm -rf --one-file-system "$root"
