// SPDX-License-Identifier: Apache-2.0
// That the tokens are SentencePiece's own is the matter of tests/tokens.sh.
#include "edl/compute/tokens/sentence_pieces.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "edl/compute/onnx/message.hpp"
#include "edl/compute/tokens/tokenizer.hpp"
#include "scratch_directory.hpp"
#include "text.hpp"

namespace sentence_pieces_test {

using namespace edl::tokens;
using edl::onnx::message;
using ids = std::vector<token_id>;

constexpr std::uint64_t normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6;

std::string piece(std::string const& text, float score = 0, std::uint64_t type = normal) {
  return message().text(1, message().text(1, text).real(2, score).number(3, type).bytes()).bytes();
}

/// Pieces 0 to 2, of which 1 begins a text; then those of `more`.
std::string model(std::string const& more, std::string const& trainer = message().number(3, 2).bytes(),
                  std::string const& normalizer = message().number(4, 0).bytes()) {
  return piece("<unk>", 0, unknown) + piece("<s>", 0, control) + piece("</s>", 0, control) + more +
         message().text(2, trainer).text(3, normalizer).bytes();
}

/// 3: ▁, 4: a, 5: b, 6: c, 7: ab, 8: ▁a, 9: bc, 10: abc, 11: ▁▁, 12: [x].
std::string letters() {
  std::string all;
  float score = 0;
  for (char const* const text : {"▁", "a", "b", "c", "ab", "▁a", "bc", "abc", "▁▁"})
    all += piece(text, --score);
  return all + piece("[x]", 0, user_defined);
}

std::string bytes() {
  std::string all;
  for (int b = 0; b < 256; ++b) all += piece(fmt::format("<0x{:02X}>", b), 0, byte);
  return all;
}

tokenizer made(std::string const& content) { return tokenizer::from_content(content, "tokenizer.model"); }

TEST_CASE("neighbours become the piece of the greatest score, first the left ones") {
  auto const by = made(model(letters()));
  encoder from(by);
  CHECK(by.vocabulary() == 13);
  CHECK(by.find("</s>") == 2);
  CHECK(from.encode("abc") == ids{3, 10});          // ab goes before ▁a
  CHECK(from.encode("a", true) == ids{1, 8});       // <s> begins a text, ▁ its first word
  CHECK(from.encode("  a") == ids{11, 8});          // blanks are counted
  CHECK(from.encode("b[x]c") == ids{3, 5, 12, 6});  // never merged
  CHECK(from.encode("bé éc") == ids{3, 5, 0, 3, 0, 6});
  CHECK(from.encode("ééa") == ids{3, 0, 4});  // unknown ones after each other are one
  CHECK(from.encode("").empty());
  auto const trims = made(model(letters(), message().number(3, 2).bytes(), ""));
  CHECK(encoder(trims).encode("  a  b ") == ids{8, 3, 5});
  auto const plain =
      made(model(letters(), message().number(3, 2).bytes(), message().number(3, 0).number(4, 0).bytes()));
  CHECK(encoder(plain).encode("a a") == ids{4, 8});
  CHECK(plain.decode(ids{8}) == " a");
}

TEST_CASE("tokens are texts again, all at once and one at a time") {
  auto const by = made(model(letters() + bytes()));
  encoder from(by);
  for (std::string const text : {"abc ab", " a", "", "  b  ", "é", "a€ \n漢字", "[x]", "▁"}) {
    auto const tokens = from.encode(text, true);
    CHECK(by.decode(tokens, false) == (text == "▁" ? " " : text));
    std::string parts, after;
    decoder begins(by, false), goes_on(by, false, false);
    for (token_id const id : tokens) parts += begins.add(id), after += goes_on.add(id);
    CHECK(parts + begins.finish() == by.decode(tokens, false));
    // What continues a text keeps the blank before its first word.
    CHECK(after + goes_on.finish() == (text.empty() ? "" : " " + by.decode(tokens, false)));
  }
  decoder half(by);
  CHECK(half.add(13 + 0xe2) == "");
  CHECK(half.add(13 + 0x82) == "");
  CHECK(half.add(13 + 0xac) == "€");
  CHECK(half.add(13 + 0xe2) == "");
  CHECK(half.finish() == "\xEF\xBF\xBD");
  CHECK(by.decode(ids{1, 8, 0, 2}) == "<s>a ⁇ </s>");
  CHECK(contains(complaint([&] { by.decode(ids{5000}); }), "token 5000 is not in the vocabulary"));
}

TEST_CASE("a word's begin cuts a text only where no piece goes across it") {
  auto const across = made(model(letters() + piece("c▁", 1)));
  CHECK(encoder(across).encode("c a") == ids{3, 13, 4});
}

TEST_CASE("models that are not read, and damaged ones, are errors with the file") {
  auto const why = [](std::string const& content) {
    std::string const said = complaint([&] { made(content); });
    CHECK(said.starts_with("tokenizer.model: "));
    return said;
  };
  std::string const good = model(letters()), bpe = message().number(3, 2).bytes();
  CHECK(contains(why(model(letters(), "")), "spm_train --model_type=bpe"));
  CHECK(contains(why(model(letters(), bpe, message().text(1, "nmt_nfkc").text(2, "xy").bytes())),
                 "'nmt_nfkc'"));
  CHECK(contains(why(model(letters(), message().number(3, 2).number(24, 1).bytes())),
                 "blanks that end a piece"));
  CHECK(contains(why(good + message().text(5, message().text(2, "x").bytes()).bytes()), "denormalizer"));
  CHECK(contains(why(model(letters() + piece("a"))), "piece 13, 'a', occurs twice"));
  CHECK(contains(why(model(letters() + piece(""))), "piece 13, '', has no such length"));
  CHECK(contains(why(model(letters() + piece(std::string(257, 'x')))), "has no such length"));
  CHECK(contains(why(model(letters() + piece("x", std::nanf("")))), "a score that is no number"));
  CHECK(contains(why(model(letters() + piece("\xff"))), "is not UTF-8"));
  CHECK(contains(why(model(letters() + piece("<0xZZ>", 0, byte))), "is no byte"));
  CHECK(contains(why(model(letters() + piece("u", 0, unused))), "is unused, which is not supported"));
  CHECK(contains(why(model(letters() + piece("u", 0, 9))), "an unknown type"));
  CHECK(contains(why(model(letters() + piece("u", 0, unknown))), "a second unknown one"));
  CHECK(contains(why(piece("a") + message().text(2, bpe).bytes()), "no piece is the unknown one"));
  CHECK(contains(why(good + message().number(1, 1).bytes()), "a field has another type"));
  for (std::size_t n = 16; n < good.size() - 4; ++n)
    CHECK_THROWS_AS(made(good.substr(0, n)), edl::data_error);
}

TEST_CASE("a file is known by what is in it") {
  scratch const dir;
  std::ofstream(dir / "any", std::ios::binary) << model(letters());
  auto const by = tokenizer::from_file(dir / "any");
  CHECK(encoder(by).encode("a") == ids{8});
  CHECK(by.digest() != made(model(bytes())).digest());
}

}  // namespace sentence_pieces_test
