// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/tokens/unicode.hpp"

#include <doctest/doctest.h>

#include <set>

namespace unicode_test {

using namespace edl::tokens;

std::string valid(std::string_view text) {
  std::string space;
  return std::string(valid_utf8(text, space));
}

std::string composed(std::string_view text) {
  std::string space;
  return std::string(nfc(text, space));
}

TEST_CASE("each maximal part of an ill-formed sequence becomes one U+FFFD") {
  std::string const r = "\xef\xbf\xbd";
  CHECK(valid("") == "");
  CHECK(valid("plain, h\xc3\xa9, \xe4\xbd\xa0, \xf0\x9f\x98\x80") ==
        "plain, h\xc3\xa9, \xe4\xbd\xa0, \xf0\x9f\x98\x80");
  // The rows of table 3-8 to 3-11 of the Unicode Standard.
  CHECK(valid("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41") == r + r + r + r + r + r + r + r + "A");
  CHECK(valid("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41") == r + r + r + r + r + r + r + r + "A");
  CHECK(valid("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42") == r + r + r + r + r + "A" + r + r + "B");
  CHECK(valid("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41") == r + r + r + r + "A");
  CHECK(valid("0123456\xff"
              "89abcdef\xe4\xbd") == "0123456" + r + "89abcdef" + r);
}

TEST_CASE("an incomplete character at the end is told from a wrong one") {
  for (std::string const whole : {"\xc3\xa9", "\xe4\xbd\xa0", "\xf0\x9f\x98\x80"})
    for (std::size_t n = 0; n <= whole.size(); ++n)
      CHECK(incomplete_bytes("a" + whole.substr(0, n)) == (n == whole.size() ? 0 : n));
  CHECK(incomplete_bytes("") == 0);
  CHECK(incomplete_bytes("\xff") == 0);
  CHECK(incomplete_bytes("\xed\xa0") == 0);  // a surrogate
}

TEST_CASE("marks are composed, and nothing else is changed") {
  CHECK(composed("plain h\xc3\xa9") == "plain h\xc3\xa9");
  CHECK(composed("e\xcc\x81") == "\xc3\xa9");
  CHECK(composed("cafe\xcc\x81, na\xc3\xafve e\xcc\x81!") == "caf\xc3\xa9, na\xc3\xafve \xc3\xa9!");
  CHECK(composed("a\xcc\xa3\xcc\x88") == "\xe1\xba\xa1\xcc\x88");             // a, dot below, diaeresis
  CHECK(composed("a\xcc\x88\xcc\xa3") == "\xe1\xba\xa1\xcc\x88");             // in the other order
  CHECK(composed("\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8") == "\xea\xb0\x81");  // Hangul
  CHECK(composed("\xef\xac\x81 \xe2\x84\xab") ==
        "\xef\xac\x81 \xc3\x85");  // a ligature stays, Angstrom does not
  CHECK(composed("\xcc\x81"
                 "e\xcc\x81"
                 "e\xcc\x81") == "\xcc\x81\xc3\xa9\xc3\xa9");
}

TEST_CASE("white space is Unicode's") {
  for (char32_t const c :
       {0x09, 0x0a, 0x0b, 0x0d, 0x20, 0x85, 0xa0, 0x1680, 0x2003, 0x2028, 0x2029, 0x202f, 0x3000})
    CHECK_MESSAGE(is_white_space(c), std::uint32_t(c));
  for (char32_t const c : {0x00, 0x08, 0x41, 0x180e, 0x200b, 0xfeff, 0x1f600})
    CHECK_MESSAGE(!is_white_space(c), std::uint32_t(c));
}

TEST_CASE("each byte has a printable character") {
  auto const all = byte_alphabet();
  CHECK(std::set<char32_t>(all.begin(), all.end()).size() == 256);
  CHECK(all['A'] == U'A');
  CHECK(all[' '] == 0x120);
  CHECK(all['\n'] == 0x10a);
  CHECK(all[0xad] == 0x143);
  CHECK(all[0xff] == 0xff);
}

}  // namespace unicode_test
