// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/tokens/trainer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "compute/tokens/support.hpp"
#include "edl/core/error.hpp"
#include "edl/core/random.hpp"
#include "text.hpp"

namespace trainer_test {

using namespace edl::tokens;
using nlohmann::json;
using tokens_test::letters;

json trained(trainer_options options, std::vector<std::string> const& texts) {
  trainer t(std::move(options));
  for (auto const& text : texts) t.add(text);
  return json::parse(t.train());
}

/// The same by plain search: merges as the file writes them.
std::vector<std::string> by_search(std::map<std::string, int> const& counts, std::size_t merges) {
  std::vector<std::string> names(256), all;
  std::map<std::string, token_id> ids;
  for (unsigned b = 0; b < 256; ++b) names[b] = std::string(1, char(b)), ids[names[b]] = b;
  std::vector<std::pair<std::vector<token_id>, int>> words;
  for (auto const& [word, count] : counts) {
    words.push_back({{}, count});
    for (char const c : word) words.back().first.push_back(static_cast<unsigned char>(c));
  }
  while (names.size() < 256 + merges) {
    std::map<std::pair<token_id, token_id>, int> pairs;
    for (auto const& [word, count] : words)
      for (std::size_t k = 0; k + 1 < word.size(); ++k) pairs[{word[k], word[k + 1]}] += count;
    auto const best =
        std::ranges::max_element(pairs, [](auto const& a, auto const& b) { return a.second < b.second; });
    if (best == pairs.end() || best->second < 2) break;
    auto const [left, right] = best->first;
    all.push_back(letters(names[left]) + " " + letters(names[right]));
    auto const [it, fresh] = ids.emplace(names[left] + names[right], token_id(names.size()));
    if (fresh) names.push_back(it->first);
    for (auto& [word, count] : words)
      for (std::size_t k = 0; k + 1 < word.size(); ++k)
        if (word[k] == left && word[k + 1] == right)
          word[k] = it->second, word.erase(word.begin() + std::ptrdiff_t(k) + 1);
  }
  return all;
}

TEST_CASE("the most frequent pairs become tokens, as plain search finds them") {
  constexpr edl::random_stream random{11};
  for (std::uint64_t round = 0; round < 20; ++round) {
    std::map<std::string, int> counts;
    std::string text;
    for (std::uint64_t i = 0; i < 60; ++i) {
      std::string word;
      std::uint64_t const at = 100'000 * round + 100 * i;
      for (std::uint64_t k = 0; k < 1 + random.below(9, at); ++k)
        word += char('a' + random.below(3 + round % 3, at + k + 1));
      word.insert(0, 1, ' ');
      ++counts[word];
      text += word;
    }
    json const file = trained({.vocabulary = 300, .cuts_by = gpt2_pattern, .special = {}}, {text});
    CHECK(file["model"]["merges"].get<std::vector<std::string>>() == by_search(counts, 44));
  }
}

TEST_CASE("the file is a tokenizer's, and gives texts back") {
  std::string const text = "one two three, one two; h\xc3\xa9llo h\xc3\xa9llo 2024 2024\n\n";
  trainer t({.vocabulary = 275, .special = {"<|endoftext|>", "<pad>"}});
  t.add(text + text);
  auto const by = tokenizer::from_json(t.train());
  CHECK(by.vocabulary() == 275);
  CHECK(by.find("<pad>") == token_id{274});
  auto const ids = encoder(by).encode(text + "<|endoftext|>");
  CHECK(by.decode(ids) == text + "<|endoftext|>");
  CHECK(ids.back() == 273);
  CHECK(ids.size() < text.size());
}

TEST_CASE("the order of the texts does not matter, and rare pairs are not merged") {
  trainer_options const o{.vocabulary = 400, .least_count = 3};
  json const file = trained(o, {"abab abab", " abab cd", " cd"});
  CHECK(file == trained(o, {" cd", " abab cd", "abab abab"}));
  CHECK(file["model"]["merges"] == json{"a b", "ab ab"});
  CHECK(file["added_tokens"][0]["id"] == 258);
  trainer t(o);
  t.add(std::string(257, 'x') + " y y");
  CHECK(t.words() == 1);  // the long one is left out
}

TEST_CASE("a token that a special one is written like is left out") {
  json const file = trained({.vocabulary = 300, .special = {"abc"}}, {"abcd abcd abcd abcd"});
  auto const by = tokenizer::from_json(file.dump());
  CHECK(by.find("abc") == token_id(by.vocabulary() - 1));
  CHECK(by.decode(encoder(by).encode("abcd abcd")) == "abcd abcd");
}

TEST_CASE("impossible options are refused") {
  auto const why = [](trainer_options o) { return refusal([&] { trainer const t(o); }); };
  CHECK(why({.vocabulary = 256}) ==
        "a vocabulary of 256 is not possible: 256 bytes and 1 special tokens need 257, and 1048576 are the "
        "most");
  CHECK(contains(why({.vocabulary = 2'000'000}), "1048576 are the most"));
  CHECK(contains(why({.special = {"<a>", "<a>"}}), "the special token '<a>'"));
  CHECK(contains(why({.special = {"a"}}), "does not have 3 to 256 bytes"));
}

}  // namespace trainer_test
