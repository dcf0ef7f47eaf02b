// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <string>

#include "compute/tokens/support.hpp"
#include "edl/core/error.hpp"
#include "edl/job/train/prediction/generation_batch.hpp"
#include "edl/job/train/prediction/growing_text.hpp"
#include "edl/job/train/prediction/token_codec.hpp"
#include "scratch_directory.hpp"

namespace generation_test {

using edl::sampling_options;
using edl::train::generation_batch, edl::train::sampler;
using ids = std::vector<std::int32_t>;

namespace {

/// After id i comes i + (id before it), of which it is sure; it checks that each row follows the last one.
class adder final : public edl::train::decoder {
 public:
  static constexpr int ids_known = 97;

  explicit adder(int places) : decoder(ids_known, places, 0) {}

  edl::view<float> decode(std::span<std::int32_t const> given,
                          std::span<edl::sequence_place const> rows) override {
    ++passes;
    most_rows = std::max(most_rows, rows.size());
    out_.assign(rows.size() * ids_known, 0);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ids& text = seen[rows[i].sequence];
      REQUIRE(std::size_t(rows[i].place) <= text.size());
      REQUIRE(rows[i].place < places());
      text.resize(std::size_t(rows[i].place));
      text.push_back(given[i]);
      int const before = text.size() > 1 ? text[text.size() - 2] : 1;
      out_[i * ids_known + std::size_t((given[i] + before) % ids_known)] = 50;
    }
    return out_;
  }

  std::map<int, ids> seen;
  int passes = 0;
  std::size_t most_rows = 0;

 private:
  std::vector<float> out_;
};

/// What the adder makes of a text.
ids continued(ids text, std::size_t more, int places) {
  std::size_t const begin = text.size();
  std::size_t first = 0;
  while (text.size() < begin + more) {
    if (text.size() - first > std::size_t(places)) first = text.size() - std::size_t(places + 1) / 2;
    int const before = text.size() - first > 1 ? text[text.size() - 2] : 1;
    text.push_back((text.back() + before) % adder::ids_known);
  }
  return ids(text.begin() + std::ptrdiff_t(begin), text.end());
}

std::int32_t chosen(std::vector<float> const& numbers, sampling_options const& by, float draw,
                    ids const& earlier = {}) {
  return sampler()(numbers, earlier, by, draw);
}

}  // namespace

TEST_CASE("an id is chosen by its probability, in the order of the options") {
  float const none = -1e9f;
  std::vector<float> const even{0, 0, 0, 0}, steps{3, 2, 1, 0};
  for (int k = 0; k < 4; ++k) CHECK(chosen(even, {}, 0.25f * float(k) + 0.1f) == k);
  CHECK(chosen(steps, {.temperature = 0}, 0.99f) == 0);
  CHECK(chosen({1, 7, 7, 2}, {.temperature = 0}, 0.99f) == 1);
  CHECK(chosen(even, {.top_k = 2}, 0.9f) == 1);
  CHECK(chosen(steps, {.top_k = 1}, 0.9f) == 0);
  // e³ / Σ = 0.64, with e² 0.88.
  CHECK(chosen(steps, {.top_p = 0.6f}, 0.99f) == 0);
  CHECK(chosen(steps, {.top_p = 0.7f}, 0.99f) == 1);
  CHECK(chosen(steps, {.min_p = 0.2f}, 0.99f) == 1);  // e⁻¹ = 0.37, e⁻² = 0.14
  CHECK(chosen(steps, {.temperature = 10}, 0.9f) == 3);
  CHECK(chosen({1, 2, none}, {.temperature = 0, .repetition_penalty = 3}, 0, {1}) == 0);
  CHECK(chosen({-1, -2, none}, {.temperature = 0, .repetition_penalty = 3}, 0, {0}) == 1);
  CHECK(chosen({none, none, 1}, {.temperature = 0.01f}, 0.999f) == 2);
  for (float const bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    CHECK_THROWS_AS(chosen({1, bad}, {}, 0), edl::error);
}

TEST_CASE("options out of range name themselves") {
  auto const refused = [](sampling_options const& o, char const* name) {
    CHECK_THROWS_WITH_AS(o.check(), doctest::Contains(name), edl::usage_error);
  };
  refused({.temperature = -1}, "temperature=-1");
  refused({.temperature = std::numeric_limits<float>::quiet_NaN()}, "temperature");
  refused({.top_k = -1}, "top_k");
  refused({.top_p = 0}, "top_p");
  refused({.top_p = 1.5f}, "top_p");
  refused({.min_p = 2}, "min_p");
  refused({.repetition_penalty = 0}, "repetition_penalty");
  refused({.repetition_penalty = 1e-40f}, "repetition_penalty");
  CHECK_NOTHROW(sampling_options{}.check());
}

TEST_CASE("texts side by side are what each would be alone, whenever they begin and end") {
  constexpr int places = 16, rows = 5;
  auto owned = std::make_unique<adder>(places);
  adder& model = *owned;
  generation_batch batch(std::move(owned), rows, 3);
  std::vector<ids> const prompts{{1, 2}, {5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, {3}, {90, 20, 4}};
  std::vector<std::size_t> const lengths{40, 3, 25, 7};
  std::map<int, std::size_t> text_of;
  std::vector<ids> made(prompts.size());
  std::size_t next = 0;
  auto const fill = [&] {
    while (next < prompts.size()) {
      auto const sequence = batch.begin(prompts[next], {.temperature = 0});
      if (!sequence) return;
      text_of[*sequence] = next++;
    }
  };
  fill();
  CHECK_FALSE(batch.begin({1}, {}).has_value());
  while (!batch.idle()) {
    batch.step([&](int sequence, std::int32_t id) {
      std::size_t const t = text_of.at(sequence);
      made[t].push_back(id);
      if (made[t].size() == lengths[t]) {
        CHECK(batch.forgot(sequence) == (prompts[t].size() + lengths[t] > places + 1));
        batch.end(sequence);
      }
    });
    fill();
  }
  for (std::size_t t = 0; t < prompts.size(); ++t)
    CHECK(made[t] == continued(prompts[t], lengths[t], places));
  CHECK(model.most_rows <= rows);
}

TEST_CASE("what is no text for the model is refused") {
  generation_batch batch(std::make_unique<adder>(4), 4, 1);
  CHECK_THROWS_WITH_AS(batch.begin({}, {}), doctest::Contains("a token at least"), edl::usage_error);
  CHECK_THROWS_WITH_AS(batch.begin({1, 2, 3, 4, 5}, {}), doctest::Contains("5 tokens"), edl::usage_error);
  CHECK_THROWS_WITH_AS(batch.begin({97}, {}), doctest::Contains("token 97"), edl::error);
  CHECK_THROWS_AS(batch.begin({-1}, {}), edl::error);
  CHECK_THROWS_AS(batch.begin({1}, {.top_k = -1}), edl::usage_error);
  CHECK(batch.idle());
  CHECK(batch.begin({1, 2, 3, 4}, {}) == 0);
}

TEST_CASE("the same seed makes the same choices, whoever is beside") {
  struct even final : edl::train::decoder {
    even() : decoder(50, 1000, 0) {}
    std::vector<float> out;
    edl::view<float> decode(std::span<std::int32_t const> given,
                            std::span<edl::sequence_place const>) override {
      out.assign(50 * given.size(), 1.0f);
      return out;
    }
  };
  auto const text = [](std::uint64_t seed, bool alone) {
    generation_batch batch(std::make_unique<even>(), 4, 2);
    if (!alone) batch.begin({1, 2, 3}, {.seed = 9});
    int const own = *batch.begin({1}, {.seed = seed});
    ids all;
    while (all.size() < 20)
      batch.step([&](int sequence, std::int32_t id) {
        if (sequence == own) all.push_back(id);
      });
    all.resize(20);
    return all;
  };
  CHECK(text(4, true) == text(4, false));
  CHECK(text(4, true) != text(5, true));
}

TEST_CASE("a text grows by whole characters, and ends before what stops it") {
  using edl::text_end;
  std::string said;
  std::vector<std::string> const stop{"\n\n", "END"};
  edl::detail::growing_text t(stop, [&](std::string_view piece) {
    said += std::string(piece) + "|";
    return true;
  });
  for (char const* piece : {"a", "\xC3", "\xA4", "E", "N", "d", "\n", "E", "N"}) CHECK_FALSE(t.add(piece));
  CHECK(said == "a|\xC3\xA4|ENd|\n|");
  CHECK(t.add("Dx") == text_end::stop);
  CHECK(t.text() ==
        "a\xC3\xA4"
        "ENd\n");
  t.finish();
  CHECK(said == "a|\xC3\xA4|ENd|\n|");

  edl::detail::growing_text cut(stop, [](std::string_view) { return false; });
  CHECK(cut.add("a") == text_end::caller);

  said.clear();
  edl::detail::growing_text held(stop, [&](std::string_view piece) { return said += piece, true; });
  CHECK_FALSE(held.add("x\n"));
  CHECK(said == "x");
  held.finish();
  CHECK(said == "x\n");
}

TEST_CASE("a tokenizer's file stands between texts and ids") {
  scratch const dir;
  auto file = tokens_test::hello();
  file["added_tokens"][0]["content"] = "<|endoftext|>";
  std::ofstream(dir / "tokenizer.json") << file;
  auto const codec = edl::file_codec(dir / "tokenizer.json");
  auto const end = file["added_tokens"][0]["id"].get<std::int32_t>();
  CHECK(codec->vocabulary() == end + 2);
  CHECK(codec->ends(end));
  CHECK_FALSE(codec->ends(end + 1));
  CHECK(codec->encode("") == ids{end});
  ids const prompt = codec->encode("hello hello");
  CHECK(prompt.size() == 2);
  auto const text = codec->decode();
  std::string said;
  for (std::int32_t const id : prompt) said += text->add(id);
  CHECK(said == "hello hello");
  CHECK(text->add(0xC3) == "");
  CHECK(text->add(0xA9) == "\xC3\xA9");
  CHECK(text->add(end) == "");  // it is special
  CHECK(text->add(0xC3) == "");
  CHECK(text->finish() == "\xEF\xBF\xBD");
  CHECK_THROWS_AS(edl::file_codec(dir / "absent"), edl::error);

  auto const bytes = edl::byte_codec();
  CHECK(bytes->vocabulary() == 256);
  CHECK(bytes->encode("") == ids{'\n'});
  CHECK(bytes->encode("\xC3") == ids{0xC3});
  CHECK(bytes->decode()->add(0xC3) == "\xC3");
}

}  // namespace generation_test
