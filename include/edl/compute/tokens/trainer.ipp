// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "edl/compute/tokens/tokenizer_parts.hpp"
#include "edl/compute/tokens/trainer.hpp"
#include "edl/compute/tokens/unicode.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"

namespace edl::tokens {
namespace detail {

inline constexpr std::size_t longest_trained_word = 256, most_trained_tokens = 1u << 20;

/// Which pairs are merged, in order: pair i becomes token 256 + i.
class pair_merger {
 public:
  explicit pair_merger(text_map<std::uint64_t> const& counts) {
    for (auto const& [text, count] : counts) {
      word w{.count = count};
      for (char const c : text) w.ids.push_back(static_cast<unsigned char>(c));
      words_.push_back(std::move(w));
    }
    for (std::uint32_t i = 0; i < words_.size(); ++i)
      for (std::size_t k = 0; k + 1 < words_[i].ids.size(); ++k) note(i, k);
    for (auto const& [key, where] : places_) heap_.push_back({where.count, key});
    std::make_heap(heap_.begin(), heap_.end());
  }

  /// Merges the most frequent pair that occurs `least` times and that `name` gives an id; it may give
  /// `no_token`. False: there is none.
  template <class Name>
  bool merge_next(std::uint64_t least, Name const& name) {
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end());
      candidate const best = heap_.back();
      heap_.pop_back();
      std::uint64_t const now = count_of(best.key);
      if (now < std::max<std::uint64_t>(least, 1)) continue;
      if (now < best.count) {  // it has become rarer since
        consider(best.key);
        continue;
      }
      token_id const becomes = name(token_id(best.key >> 32), token_id(best.key));
      if (becomes != no_token) merge(best.key, becomes);
      places_.erase(best.key);
      if (becomes != no_token) return true;
    }
    return false;
  }

 private:
  struct word {
    std::vector<token_id> ids;
    std::uint64_t count = 0;
  };
  struct place_list {
    std::uint64_t count = 0;
    std::vector<std::uint32_t> words;  // that have the pair, or had it
  };
  struct candidate {
    std::uint64_t count = 0, key = 0;
    bool operator<(candidate const& other) const {
      return count != other.count ? count < other.count : key > other.key;
    }
  };

  static std::uint64_t key_of(token_id left, token_id right) { return std::uint64_t{left} << 32 | right; }

  std::uint64_t count_of(std::uint64_t key) const {
    auto const it = places_.find(key);
    return it == places_.end() ? 0 : it->second.count;
  }

  void consider(std::uint64_t key) {
    heap_.push_back({count_of(key), key});
    std::push_heap(heap_.begin(), heap_.end());
  }

  /// Counts the pair at place `k` of a word.
  std::uint64_t note(std::uint32_t index, std::size_t k) {
    word const& w = words_[index];
    std::uint64_t const key = key_of(w.ids[k], w.ids[k + 1]);
    place_list& places = places_[key];
    places.count += w.count;
    if (places.words.empty() || places.words.back() != index) places.words.push_back(index);
    return key;
  }

  void merge(std::uint64_t key, token_id becomes) {
    auto const left = token_id(key >> 32), right = token_id(key);
    std::vector<std::uint32_t> const found = std::move(places_.find(key)->second.words);
    std::vector<std::uint64_t> more;  // pairs that there are more of now
    std::vector<token_id> shorter;
    std::vector<std::size_t> made;  // places of the new token in it
    for (std::uint32_t const index : found) {
      word& w = words_[index];
      shorter.clear(), made.clear();
      auto const forget = [&](std::size_t k) {
        if (auto const it = places_.find(key_of(w.ids[k], w.ids[k + 1])); it != places_.end())
          it->second.count -= w.count;
      };
      for (std::size_t k = 0, last = w.ids.size(); k < w.ids.size();
           ++k) {  // `last`: the end of the last merge
        if (k + 1 == w.ids.size() || w.ids[k] != left || w.ids[k + 1] != right) {
          shorter.push_back(w.ids[k]);
          continue;
        }
        if (k > 0 && k != last) forget(k - 1);
        forget(k);
        if (k + 2 < w.ids.size()) forget(k + 1);
        made.push_back(shorter.size());
        shorter.push_back(becomes);
        last = ++k + 1;
      }
      w.ids = shorter;
      std::size_t noted = w.ids.size();  // of the pairs, the last that is counted
      for (std::size_t const at : made)
        for (std::size_t const k : {at - 1, at})
          if (k + 1 < w.ids.size() && k + 1 != 0 && k != noted) {
            more.push_back(note(index, k));
            noted = k;
          }
    }
    std::ranges::sort(more);
    more.erase(std::ranges::unique(more).begin(), more.end());
    for (std::uint64_t const each : more) consider(each);
  }

  std::vector<word> words_;
  std::unordered_map<std::uint64_t, place_list> places_;
  std::vector<candidate> heap_;
};

}  // namespace detail

struct trainer::state {
  trainer_options options;
  pattern by;
  pattern::matcher matcher;
  text_map<std::uint64_t> counts;
  std::string valid;

  explicit state(trainer_options o) : options(std::move(o)), by(options.cuts_by), matcher(by) {}
};

EDL_INLINE trainer::trainer(trainer_options options) : state_(std::make_unique<state>(std::move(options))) {
  auto const& special = state_->options.special;
  for (std::string const& token : special)
    if (token.size() < 3 || token.size() > 256 || !is_utf8(token) || std::ranges::count(special, token) > 1)
      throw usage_error(
          fmt::format("the special token '{}' does not have 3 to 256 bytes, is not UTF-8, or is there twice",
                      printable(token, 100)));
  std::size_t const least = 256 + special.size();
  if (state_->options.vocabulary < least || state_->options.vocabulary > detail::most_trained_tokens)
    throw usage_error(
        fmt::format("a vocabulary of {} is not possible: 256 bytes and {} special tokens need {}, and {} are "
                    "the most",
                    state_->options.vocabulary, special.size(), least, detail::most_trained_tokens));
}
EDL_INLINE trainer::~trainer() = default;

EDL_INLINE std::size_t trainer::words() const { return state_->counts.size(); }

EDL_INLINE void trainer::add(std::string_view given) {
  std::string_view const text = valid_utf8(given, state_->valid);
  for (std::size_t begin = 0, end = 0; state_->matcher.next(text, begin, end); begin = end) {
    std::string_view const word = text.substr(begin, end - begin);
    if (word.size() > detail::longest_trained_word) continue;
    auto const it = state_->counts.find(word);
    if (it == state_->counts.end())
      state_->counts.emplace(word, 1);
    else
      ++it->second;
  }
}

EDL_INLINE std::string trainer::train(std::function<void(std::size_t, std::size_t)> const& progress) const {
  using nlohmann::json;
  auto const& o = state_->options;
  auto const alphabet = byte_alphabet();
  std::vector<std::string> tokens(256);  // as the file writes them
  text_map<token_id> ids;
  for (token_id b = 0; b < 256; ++b) {
    append_utf8(alphabet[b], tokens[b]);
    ids.emplace(tokens[b], b);
  }
  for (std::string const& token : o.special) ids.emplace(token, no_token);
  std::string rules;
  detail::pair_merger merger(state_->counts);
  std::size_t const wanted = o.vocabulary - o.special.size();
  auto const name = [&](token_id left, token_id right) {
    std::string const both = tokens[left] + tokens[right];
    auto const [it, fresh] = ids.emplace(both, token_id(tokens.size()));
    if (it->second == no_token) return no_token;  // a special token is written like this
    rules += fmt::format("{}\n{}", rules.empty() ? "" : ",", json(tokens[left] + " " + tokens[right]).dump());
    if (fresh) tokens.push_back(both);  // otherwise two other parts have become the same before
    return it->second;
  };
  while (tokens.size() < wanted && merger.merge_next(o.least_count, name))
    if (progress && tokens.size() % 256 == 0) progress(tokens.size(), wanted);
  if (progress) progress(wanted, wanted);
  json special = json::array();
  for (std::size_t i = 0; i < o.special.size(); ++i)
    special.push_back({{"id", tokens.size() + i},
                       {"content", o.special[i]},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", true}});
  json const bytes{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  json const cuts{
      {"type", "Split"}, {"pattern", {{"Regex", o.cuts_by}}}, {"behavior", "Isolated"}, {"invert", false}};
  std::string vocabulary;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    vocabulary += fmt::format("{}\n{}:{}", i == 0 ? "" : ",", json(tokens[i]).dump(), i);
  return fmt::format(
      "{{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n\"added_tokens\":{},\n\"normalizer\":"
      "null,\n"
      "\"pre_tokenizer\":{},\n\"post_processor\":{},\n\"decoder\":{},\n"
      "\"model\":{{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":null,"
      "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":false,\n"
      "\"vocab\":{{{}}},\n\"merges\":[{}]}}}}\n",
      special.dump(), json({{"type", "Sequence"}, {"pretokenizers", {cuts, bytes}}}).dump(), bytes.dump(),
      bytes.dump(), vocabulary, rules);
}

}  // namespace edl::tokens
