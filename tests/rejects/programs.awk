# SPDX-License-Identifier: Apache-2.0
# usage: awk -v work=DIR -v first=I -v step=N -f programs.awk programs.txt
# Writes each N-th program of the table, from the I-th on, to DIR/NAME.cpp and prints its path.

function is_member(line) { return match(line, /^  [a-z].* (network|loss|feed)( =|[{(])/) }
function member_name(line) {
  sub(/( =|[{(]).*/, "", line)
  sub(/.* /, "", line)
  return line
}
function close_case() {
  if (path == "") return
  printf "%s", notes > path
  if (text ~ /(^|\n)int main\(/) {
    printf "%s", text > path
  } else {
    if (!("network" in own)) text = common["network"] text
    if (!("loss" in own)) text = common["loss"] text
    if (!("feed" in own)) text = text common["feed"]
    printf "%sstruct net {\n%s};\n", outside, text > path
    print "int main(int argc, char** argv) { return edl::run<net>(argc, argv); }" > path
  }
  close(path)
  print path
  path = ""
}

/^#/ || /^$/ { next }
$1 == "common" { in_common = 1; next }
$1 == "case" {
  close_case()
  in_common = 0
  notes = text = outside = ""
  split("", own)
  if (++count % step == first % step) path = work "/" $2 ".cpp"
  next
}
in_common {
  if (is_member($0)) name = member_name($0)
  common[name] = common[name] $0 "\n"
  next
}
$1 == "error" || $1 == "gcc" || $1 == "lines" { notes = notes "// " $0 "\n"; next }
$1 == "no" { own[$2]; next }
$0 == "net:" { outside = text; text = ""; split("", own); next }
{
  if (is_member($0)) own[member_name($0)]
  text = text $0 "\n"
}
END { close_case() }
