#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: deb.sh BUILD CPACK
# Debian packages are built, and what they hold works from where it is unpacked. Ends with 77 where dpkg is not.
set -eu
build=$1 cpack=$2
command -v dpkg-shlibdeps >/dev/null || { echo "SKIPPED: dpkg-shlibdeps is not installed (Debian: dpkg-dev)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$1" >&2; exit 1; }

(cd "$build" && "$cpack" -G DEB -B "$work/packages") >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "cpack failed"; }
for name in edl libedl-dev python3-edl; do
  package=$(ls "$work/packages/${name}"_*.deb) || fail "there is no package $name"
  [ -n "$(dpkg-deb --field "$package" Depends)" ] || fail "$name depends on nothing"
  echo "$(basename "$package"): $(stat -c %s "$package") bytes"
  dpkg-deb --extract "$package" "$work/root"
done

usr=$work/root/usr
version=$("$usr/bin/edl" --version)
[ "$version" = "edl $(dpkg-deb --field "$work"/packages/edl_*.deb Version)" ] || fail "edl says '$version'"
[ "$("$usr/bin/elasticdl" --version)" = "$version" ] || fail "elasticdl is not edl"
"$usr/bin/edl-controller" --help >/dev/null
bash -c ". '$usr/share/bash-completion/completions/edl' && complete -p edl" >/dev/null || fail "bash completes nothing"
if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
  PYTHONPATH=$usr/lib/python3/dist-packages /usr/bin/python3 -c 'import edl; edl.open' || fail "Python finds no module edl"
fi
[ -e "$usr/include/edl/predictor.h" ] || fail "there is no header for C"
if command -v help2man >/dev/null; then
  for page in edl edl-controller; do
    gzip -cd "$usr/share/man/man1/$page.1.gz" 2>/dev/null | grep -q '^.SH' || grep -q '^.SH' "$usr/share/man/man1/$page.1" ||
      fail "$page has no manual page"
  done
fi

# A project finds the library that was unpacked.
mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(finds LANGUAGES CXX)
find_package(edl REQUIRED)
get_target_property(where edl::edl LOCATION)
message(STATUS "found ${where}")
END
cmake -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$usr" >"$work/log" 2>&1 ||
  { cat "$work/log" >&2; fail "find_package(edl) fails"; }
grep -q "found $usr/lib" "$work/log" || { cat "$work/log" >&2; fail "another edl was found"; }

# A release of these packages: apt takes them from its repository, and refuses one that was altered.
for each in apt-ftparchive:apt-utils doxygen:doxygen; do
  command -v "${each%:*}" >/dev/null || { echo "${each%:*} is not installed (Debian: ${each#*:}): no release is made"; exit 0; }
done
number=${version#edl }
here=$(cd "$(dirname "$0")/../.." && pwd)
git clone -q --shared "$here" "$work/source"
sed -i "s/^## Unreleased/## $number/" "$work/source/CHANGELOG.md"
git -C "$work/source" -c user.name=t -c user.email=t@t commit -qam "Release $number"
git -C "$work/source" tag "v$number"
export GNUPGHOME="$work/gnupg"
mkdir -m 700 "$GNUPGHOME"
gpg --batch --quiet --passphrase '' --quick-generate-key "a test" rsa3072 sign never 2>/dev/null
# The smaller image, where this is Debian, whose archive can be reached; packages fit no other release of it than this one.
. /etc/os-release
suite=${VERSION_CODENAME-suite} images=
if [ "$ID" != debian ] || [ "$(id -u)" -ne 0 ] || ! command -v mmdebstrap >/dev/null ||
  ! curl -sfIo "$work/log" -m 10 "http://deb.debian.org/debian/dists/$suite/InRelease"; then
  echo "no image is made: that needs Debian, its archive, mmdebstrap, curl, and root"
else
  images=edl
fi
export EDL_RELEASE_IMAGES=$images
release() { "$work/source/tools/release" "v$number" "$work/release" "$@"; }
! release there=/nowhere 2>"$work/log" || fail "a release of no packages was made"
grep -q "/nowhere has no package edl of version $number" "$work/log" || fail "$(cat "$work/log")"
[ ! -e "$work/release" ] || fail "a release that failed was left"
release "$suite=$work/packages"
gpgconf --kill all
(cd "$work/release" && sha256sum --quiet --check SHA256SUMS) || fail "SHA256SUMS are wrong"
grep -q "^### Added" "$work/release/NOTES.md" || fail "the notes lack what was added"
tar -xzf "$work/release/edl-$number.tar.gz" -C "$work"
[ -x "$work/edl-$number/tools/quickstart" ] || fail "the sources are not whole"
tar -xzf "$work/release/edl-$number-site.tar.gz" -O "edl-$number-site/searchindex.js" | grep -q . || fail "there is no site"
if [ -n "$images" ]; then
  image=$work/release/edl-$number-$suite-$(dpkg --print-architecture)
  mkdir -p "$work/image/root"
  tar -xf "$image.oci.tar" -C "$work/image"
  for blob in "$work"/image/blobs/sha256/*; do
    [ "$(sha256sum <"$blob")" = "${blob##*/}  -" ] || fail "$blob is another than its name"
    ! gzip -t "$blob" 2>/dev/null || tar -xzf "$blob" -C "$work/image/root"
  done
  [ "$(chroot --userspec=65532:65532 "$work/image/root" edl --version)" = "$version" ] || fail "edl does not run in its image"
  ! grep -rq "$work" "$work/image/root/etc/apt" "$image.spdx.json" || fail "the image tells where it was made"
  /usr/bin/python3 - "$work" "$image.spdx.json" <<'END' || fail "the image and the list of what is in it differ"
import glob, hashlib, json, re, sys
work, listed = sys.argv[1], json.load(open(sys.argv[2]))
index = json.load(open(work + "/image/index.json"))["manifests"][0]
packages = {each["name"]: each for each in listed["packages"][1:]}
status = open(work + "/image/root/var/lib/dpkg/status").read()
assert {name: each["versionInfo"] for name, each in packages.items()} == dict(re.findall(r"Package: (.*)(?:\n.+)*\nVersion: (.*)", status))
assert listed["packages"][0]["checksums"][0]["checksumValue"] == index["digest"].partition(":")[2]
edl, coreutils = packages["edl"], packages["coreutils"]
archive = open(glob.glob(work + "/packages/edl_*.deb")[0], "rb").read()
assert edl["checksums"][0]["checksumValue"] == hashlib.sha256(archive).hexdigest() and edl["licenseDeclared"] == "Apache-2.0"
assert "GPL-3.0-or-later" in coreutils["licenseDeclared"] and coreutils["downloadLocation"].startswith("http")
said = {each["licenseId"] for each in listed["hasExtractedLicensingInfos"]}
assert said == set(re.findall(r"LicenseRef-[\w.-]+", " ".join(each["licenseDeclared"] for each in packages.values())))
END
fi
mkdir -p "$work/apt/state/lists/partial" "$work/apt/cache/archives/partial"
echo "deb [signed-by=$work/release/edl-archive-keyring.gpg] file:$work/release/apt $suite main" >"$work/apt/list"
apt() {
  command=$1; shift
  apt-get -qq -o APT::Sandbox::User=root -o Dir::State="$work/apt/state" -o Dir::Cache="$work/apt/cache" \
    -o Dir::State::status=/var/lib/dpkg/status -o Dir::Etc::SourceList="$work/apt/list" -o Dir::Etc::SourceParts=- \
    "$command" "$@" 2>&1
}
apt update || fail "apt does not take the repository"
mkdir "$work/taken"
(cd "$work/taken" && apt download edl libedl-dev python3-edl && ls *.deb | wc -l | grep -qx 3) || fail "apt finds no packages"
printf x | dd of="$(ls "$work"/release/apt/pool/"$suite"/edl_*.deb)" bs=1 seek=5000 conv=notrunc 2>/dev/null
(cd "$work/taken" && rm -f ./*.deb && ! apt download edl) || fail "apt took an altered package"
sed -i 's/^Origin: .*/Origin: another/' "$work/release/apt/dists/$suite/InRelease"
if apt update >"$work/log"; then grep -q "BADSIG\|invalid" "$work/log" || fail "apt took an altered index"; fi
echo "release: $(ls "$work/release")"
