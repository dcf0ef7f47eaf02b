# SPDX-License-Identifier: Apache-2.0
# usage: awk [-v gcc=1] -f errors.awk CASE.cpp… COMPILER-OUTPUT
# Holds what a compiler said of many programs against what each of them wants: the first error that names a program matches
# its line `// error REGEX`. Of GCC also: something matches `// gcc REGEX`, and it prints no more lines than 20, or
# than on a line `// lines N`.

FNR == 1 {
  of_case = FILENAME ~ /\.cpp$/
  if (of_case) cases[++count] = program(FILENAME)
}
of_case && sub(/^\/\/ error /, "") { wanted[cases[count]] = $0 }
of_case && sub(/^\/\/ gcc /, "") { facts[cases[count]] = $0 }
of_case && sub(/^\/\/ lines /, "") { longest[cases[count]] = $0 }
of_case { next }

# GCC prints the surroundings of an error before it, Clang behind it. An error without any has those of the one before.
function begins() { return / error: / || /^In file included from / || /: (In|At) [a-z]/ }
begins() && error != "" { close_error() }
{
  if (/ error: / && error == "") error = $0
  if (!named && match($0, /\/rejects\/[a-z0-9_]+\.cpp:/)) {
    named = 1
    owner = substr($0, RSTART + 9, RLENGTH - 14)
  }
  block = block $0 "\n"
  ++lines
}

function program(path) {
  sub(/.*\//, "", path)
  sub(/\.cpp$/, "", path)
  return path
}
function close_error() {
  if (!(owner in first)) first[owner] = error
  text[owner] = text[owner] block
  printed[owner] += lines
  block = error = ""
  lines = named = 0
}
function wrong(name, why) {
  printf "%s: %s\n%s\n", name, why, text[name]
  failed = 1
}
END {
  if (error != "") close_error()
  for (i = 1; i <= count; ++i) {
    name = cases[i]
    if (!(name in first)) wrong(name, "it compiles")
    else if (first[name] !~ wanted[name] || wanted[name] == "") wrong(name, "its first error is not `" wanted[name] "`")
    else if (gcc && (name in facts) && text[name] !~ facts[name]) wrong(name, "nothing is said of `" facts[name] "`")
    else if (gcc && printed[name] > (name in longest ? longest[name] : 20)) wrong(name, printed[name] " lines")
  }
  if ("" in first) wrong("", "an error of no program")
  if (failed) exit 1
  printf "%d programs are rejected, each for its reason\n", count
}
