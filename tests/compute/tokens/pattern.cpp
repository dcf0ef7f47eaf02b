// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/tokens/pattern.hpp"

#include <doctest/doctest.h>

#include <string>

#include "edl/core/error.hpp"
#include "text.hpp"

namespace pattern_test {

using namespace edl::tokens;

/// The matches in a text, with "|" between.
std::string cut(pattern const& by, std::string_view text) {
  pattern::matcher matcher(by);
  std::string all;
  for (std::size_t begin = 0, end = 0; matcher.next(text, begin, end); begin = end)
    all += (all.empty() ? "" : "|") + std::string(text.substr(begin, end - begin));
  return all;
}

TEST_CASE("the expressions of models cut texts") {
  std::string const text = "I'll say:  don'T 12345x \n\n  h\xc3\xa9llo!!\n end  ";
  CHECK(cut(pattern(gpt2_pattern), text) ==
        "I|'ll| say|:| | don|'|T| 12345|x| \n\n | h\xc3\xa9llo|!!|\n| end|  ");
  CHECK(cut(pattern(llama3_pattern), text) ==
        "I|'ll| say|:| | don|'T| |123|45|x| \n\n| | h\xc3\xa9llo|!!\n| end|  ");
  CHECK(cut(pattern(qwen2_pattern), text) ==
        "I|'ll| say|:| | don|'T| |1|2|3|4|5|x| \n\n| | h\xc3\xa9llo|!!\n| end|  ");
}

TEST_CASE("letters and numbers of all scripts are recognized, in either case") {
  CHECK(cut(pattern(R"(\p{N})"), "a1\xc2\xbd\xd9\xa1\xe2\x85\xa7") == "1|\xc2\xbd|\xd9\xa1|\xe2\x85\xa7");
  CHECK(cut(pattern(R"((?i:'s))"), "'s'S'\xc5\xbf't") == "'s|'S|'\xc5\xbf");  // the long s
  CHECK(cut(pattern::literal("a.b"), "a.b axb a.b") == "a.b|a.b");
  CHECK(cut(pattern("a*"), "baab") == "aa");
}

TEST_CASE("what other libraries read otherwise is refused, as what cannot be compiled") {
  auto const why = [](std::string const& expression) {
    return complaint([&] { pattern const p(expression); });
  };
  CHECK(why(R"(\h+)") == R"(the expression '\h+' has '\h', which is not supported)");
  CHECK(contains(why("[a-z&&[^b]]"), "has '&&'"));
  CHECK(contains(why("(*NO_JIT)a"), "has '(*'"));
  CHECK(contains(why("(a"), "the expression '(a' cannot be compiled: byte 2: missing closing parenthesis"));
  CHECK(contains(why(""), "0 bytes"));
  CHECK(contains(why(std::string(5000, 'a')), "5000 bytes; 1 to 4096"));
}

TEST_CASE("a search that takes too many steps is given up") {
  pattern const slow("(a|aa)+[bc]");
  CHECK(contains(
      complaint([&] { cut(slow, std::string(60, 'a')); }),
      "the expression '(a|aa)+[bc]' cannot be searched from byte 0 of a text of 60: match limit exceeded"));
  CHECK(cut(pattern(gpt2_pattern), std::string(3'000'000, ' ')).size() == 3'000'000);
}

}  // namespace pattern_test
