// SPDX-License-Identifier: Apache-2.0
#include "edl/core/printable.hpp"

#include <doctest/doctest.h>

#include <string>

namespace printable_test {

using edl::printable, edl::shortened;

TEST_CASE("text that may stand anywhere stays as it is") {
  for (char const* text : {"", "a plain line", "tab-less, with ümlauts, 漢字 and 🦆"})
    CHECK(printable(text) == text);
}

TEST_CASE("control characters become blanks: they drive terminals and forge lines") {
  CHECK(printable("a\nb\rc\td") == "a b c d");
  CHECK(printable("\x1b[31mred\x07") == " [31mred ");
  CHECK(printable(std::string_view("a\0b\x7f", 4)) == "a b ");
  CHECK(printable("\xc2\x9b"
                  "31m") == " 31m");  // U+009B does what ESC [ does
}

TEST_CASE("bytes that are no UTF-8 become question marks") {
  CHECK(printable("\xff\xfe") == "??");
  CHECK(printable("a\xc3") == "a?");
  CHECK(printable("\xc0\xaf") == "??");            // overlong
  CHECK(printable("\xed\xa0\x80") == "???");       // a surrogate
  CHECK(printable("\xf4\x90\x80\x80") == "????");  // beyond Unicode
}

TEST_CASE("long texts are cut") {
  CHECK(printable(std::string(10'000, 'x')).size() == 8192);
  CHECK(printable("abcdef", 3) == "abc");
  CHECK(printable("ab\xc3\xbc", 3) == "ab");
}

TEST_CASE("no cut goes through a character") {
  std::string const text = "aü漢🦆";
  CHECK(shortened(text, 100) == text);
  CHECK(shortened(text, 0).empty());
  for (std::size_t most = 0; most <= text.size(); ++most) {
    CAPTURE(most);
    std::string const cut = shortened(text, most);
    CHECK(cut.size() <= most);
    CHECK(cut.size() + 4 > most);
    CHECK(printable(cut) == cut);
  }
  CHECK(shortened("\x80\x80\x80\x80\x80", 4).size() == 1);  // no UTF-8 at all
}

TEST_CASE("UTF-8 is told from other bytes") {
  for (char const* good : {"", "a\n", "caf\xc3\xa9", "\xf0\x9f\x98\x80"}) CHECK(edl::is_utf8(good));
  for (char const* bad : {"caf\xe9", "\xc3", "\xff", "\xed\xa0\x80", "\xc0\xaf"})
    CHECK_FALSE(edl::is_utf8(bad));
}

}  // namespace printable_test
