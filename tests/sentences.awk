# SPDX-License-Identifier: Apache-2.0
# awk -f sentences.awk PAGE...: no sentence of a page has more than 40 words. Code and the target of a link are one word, and
# so are names and numbers with punctuation inside; tables and fences are left out.
function flush(    count, words, i, length_of_it, sentence) {
  gsub(/`[^`]*`/, "X", paragraph)
  gsub(/\]\([^)]*\)/, "]", paragraph)
  count = split(paragraph, words, /[ \t]+/)
  length_of_it = 0
  sentence = ""
  for (i = 1; i <= count; ++i) {
    sentence = sentence " " words[i]
    if (words[i] ~ /[A-Za-z0-9]/) ++length_of_it
    if (words[i] ~ /[.!?][])*"_]*$/ || i == count) {
      if (length_of_it > 40) {
        printf "%s:%d: %d words:%s\n", file, first, length_of_it, sentence
        failed = 1
      }
      length_of_it = 0
      sentence = ""
    }
  }
  paragraph = ""
  item = 0
}
function take(text, starts_item) {
  if (starts_item) flush()
  if (starts_item) item = 1
  if (paragraph == "") {
    file = FILENAME
    first = FNR
  }
  paragraph = paragraph " " text
}
FNR == 1 { flush(); fenced = 0 }
/^ *```/ { flush(); fenced = !fenced; next }
fenced || /^ *$/ || /^[|#<>]/ || (/^    / && !item) { flush(); next }
{ take($0, $0 ~ /^ *([-*]|[0-9]+\.) /) }
END { flush(); exit failed }
