// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edl/compute/tokens/pattern.hpp"
#include "edl/compute/tokens/sentence_pieces.hpp"
#include "edl/compute/tokens/tokenizer.hpp"
#include "edl/compute/tokens/tokenizer_parts.hpp"
#include "edl/compute/tokens/unicode.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/input_file.hpp"
#include "edl/core/invariant.hpp"

namespace edl::tokens {
namespace detail {

inline constexpr std::uint64_t longest_tokenizer_file = 64u << 20;
inline constexpr std::size_t most_words = 1u << 17, longest_word = 64;  // that are remembered

inline std::string const& bytes_of(tokenizer_parts const& by, token_id id) {
  if (id >= by.is.size() || by.is[id] == 0)
    throw data_error(
        fmt::format("token {} is not in the vocabulary, whose ids are below {}", id, by.is.size()));
  return by.bytes[id];
}

/// The text of a token; of the first one of a text without SentencePiece's blank. `begins`: whether it is
/// that.
inline std::string_view text_of(tokenizer_parts const& by, token_id id, bool special, bool& begins) {
  std::string_view bytes = bytes_of(by, id);
  if (by.is[id] == 2) return special ? bytes : std::string_view();
  if (std::exchange(begins, false) && (by.begins_with_blank || by.trims) && bytes.starts_with(' '))
    bytes.remove_prefix(1);
  return bytes;
}

/// The first byte of the white space that ends at `end`, at least `least`.
inline std::size_t begin_of_space(std::string_view text, std::size_t least, std::size_t end) {
  while (end > least) {
    std::size_t before = end - 1;
    while (before > least && (static_cast<unsigned char>(text[before]) & 0xc0) == 0x80) --before;
    if (!is_white_space(character_at(text, before).code)) break;
    end = before;
  }
  return end;
}

inline std::size_t end_of_space(std::string_view text, std::size_t begin) {
  while (begin < text.size()) {
    character const c = character_at(text, begin);
    if (!is_white_space(c.code)) break;
    begin += c.bytes;
  }
  return begin;
}

/// Calls `gap` for what is between added tokens, and `found` for each of them.
template <class Gap, class Found>
void find_added(added_tokens const& among, std::string_view text, Gap const& gap, Found const& found) {
  std::size_t done = 0, at = 0;
  while (at < text.size() && !among.lengths.empty()) {
    if (!among.begins_with[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    added_tokens::token const* best = nullptr;
    std::size_t size = 1;
    for (std::size_t const length : among.lengths) {
      if (length > text.size() - at) continue;
      auto const it = among.by_content.find(text.substr(at, length));
      if (it == among.by_content.end()) continue;
      best = &it->second, size = length;
      break;
    }
    if (best == nullptr) {
      ++at;
      continue;
    }
    std::size_t const begin = best->strip_left ? begin_of_space(text, done, at) : at;
    if (begin > done) gap(text.substr(done, begin - done));
    found(best->id);
    done = at = best->strip_right ? end_of_space(text, at + size) : at + size;
  }
  if (done < text.size()) gap(text.substr(done));
}

}  // namespace detail

EDL_INLINE tokenizer tokenizer::from_file(std::string const& path) {
  input_file const file(path);
  if (file.size() > detail::longest_tokenizer_file)
    throw data_error(fmt::format("{}: has {} bytes; a tokenizer may have {}", path, file.size(),
                                 detail::longest_tokenizer_file));
  std::string content(std::size_t(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(content)));
  return from_content(content, path);
}

EDL_INLINE tokenizer tokenizer::from_content(std::string_view content, std::string const& name) {
  if (!is_sentence_pieces(content)) return from_json(content, name);
  return tokenizer(std::make_shared<tokenizer_parts>(read_sentence_pieces(content, name)));
}

EDL_INLINE tokenizer tokenizer::from_json(std::string_view content, std::string const& name) {
  return tokenizer(std::make_shared<tokenizer_parts>(read_tokenizer(content, name)));
}

EDL_INLINE std::size_t tokenizer::vocabulary() const { return parts_->is.size(); }
EDL_INLINE std::uint64_t tokenizer::digest() const { return parts_->digest; }

EDL_INLINE std::optional<token_id> tokenizer::find(std::string_view token) const {
  auto const it = parts_->written.find(token);
  return it == parts_->written.end() ? std::nullopt : std::optional(it->second);
}

EDL_INLINE std::string tokenizer::decode(std::span<token_id const> ids, bool special) const {
  std::string all, space;
  bool begins = true;
  for (token_id const id : ids) all += detail::text_of(*parts_, id, special, begins);
  return std::string(valid_utf8(all, space));
}

struct encoder::state {
  struct range {
    std::size_t begin = 0, count = 0;
  };
  std::shared_ptr<tokenizer_parts const> by;
  std::vector<pattern::matcher> matchers;  // of the cuts that have a pattern, else of none
  std::vector<std::size_t> matcher_of;
  text_map<range> known;
  std::vector<token_id> known_ids;
  merges::workspace space;
  std::vector<token_id> symbols;
  std::string valid, normal;
  std::vector<token_id>* to = nullptr;

  /// The tokens of the characters of a word, before anything is merged.
  void spell(std::string_view word) {
    symbols.clear();
    token_id last_unknown = no_token;  // not written yet
    auto const flush = [&] {
      if (last_unknown != no_token) symbols.push_back(std::exchange(last_unknown, no_token));
    };
    for (std::size_t at = 0, size = 1; at < word.size(); at += size) {
      token_id id = no_token;
      if (by->of_bytes) {
        id = by->byte_ids[static_cast<unsigned char>(word[at])];
      } else {
        size = character_at(word, at).bytes;
        auto const it = by->ids.find(word.substr(at, size));
        if (it != by->ids.end()) id = it->second;
      }
      if (id != no_token) {
        flush();
        symbols.push_back(id);
      } else if (by->byte_fallback && std::ranges::none_of(word.substr(at, size), [&](char c) {
                   return by->fallback_ids[static_cast<unsigned char>(c)] == no_token;
                 })) {
        flush();
        for (char const c : word.substr(at, size))
          symbols.push_back(by->fallback_ids[static_cast<unsigned char>(c)]);
      } else if (by->unknown != no_token) {
        if (!by->fuse_unknown) flush();
        last_unknown = by->unknown;
      }
    }
    flush();
  }

  void add_word(std::string_view word) {
    bool const short_one = word.size() <= detail::longest_word;
    if (short_one)
      if (auto const it = known.find(word); it != known.end()) {
        invariant(it->second.begin + it->second.count <= known_ids.size(),
                  "the ids of a known word are kept");
        auto const first = known_ids.begin() + std::ptrdiff_t(it->second.begin);
        to->insert(to->end(), first, first + std::ptrdiff_t(it->second.count));
        return;
      }
    std::size_t const before = to->size();
    auto const whole = by->whole_words ? by->ids.find(word) : by->ids.end();
    if (whole != by->ids.end()) {
      to->push_back(whole->second);
    } else {
      spell(word);
      by->rules.apply(symbols, space, *to);
    }
    if (!short_one) return;
    if (known.size() >= detail::most_words) known.clear(), known_ids.clear();
    known.emplace(word, range{known_ids.size(), to->size() - before});
    known_ids.insert(known_ids.end(), to->begin() + std::ptrdiff_t(before), to->end());
  }

  void add_piece(std::string_view piece, std::size_t step) {
    if (piece.empty()) return;
    if (step == by->cuts.size()) return add_word(piece);
    cut const& how = by->cuts[step];
    std::string longer;
    if (how.adds_blank && piece.front() != ' ') piece = longer.append(" ").append(piece);
    if (!how.by) return add_piece(piece, step + 1);
    auto& matcher = matchers[matcher_of[step]];
    for (std::size_t done = 0; done < piece.size();) {
      std::size_t begin = done, end = done;
      bool const found = matcher.next(piece, begin, end);
      if (how.keeps_gaps) add_piece(piece.substr(done, begin - done), step + 1);
      if (found) add_piece(piece.substr(begin, end - begin), step + 1);
      done = end;
    }
  }
};

EDL_INLINE encoder::encoder(tokenizer const& by) : state_(std::make_unique<state>()) {
  state_->by = by.parts_;
  for (cut const& c : state_->by->cuts) {
    state_->matcher_of.push_back(state_->matchers.size());
    if (c.by) state_->matchers.emplace_back(*c.by);
  }
}

EDL_INLINE encoder::encoder(encoder&&) noexcept = default;
EDL_INLINE encoder::~encoder() = default;

EDL_INLINE void encoder::encode(std::string_view text, std::vector<token_id>& to, bool template_tokens) {
  auto const& by = *state_->by;
  state_->to = &to;
  auto const put = [&](token_id id) { to.push_back(id); };
  if (template_tokens) to.insert(to.end(), by.before.begin(), by.before.end());
  std::string_view valid = valid_utf8(text, state_->valid);
  if (by.marks_blanks) valid = with_marked_blanks(by, valid, state_->normal);
  detail::find_added(
      by.as_given, valid,
      [&](std::string_view part) {
        detail::find_added(
            by.normalized, by.normalizes ? nfc(part, state_->normal) : part,
            [&](std::string_view piece) { state_->add_piece(piece, 0); }, put);
      },
      put);
  if (template_tokens) to.insert(to.end(), by.after.begin(), by.after.end());
}

EDL_INLINE std::string decoder::add(token_id id) {
  held_ += detail::text_of(*by_.parts_, id, special_, begins_);
  std::string const tail = held_.substr(held_.size() - incomplete_bytes(held_));
  held_.resize(held_.size() - tail.size());
  std::string space, complete(valid_utf8(held_, space));
  held_ = tail;
  invariant(held_.size() < 4, "less than a character is held back");
  return complete;
}

EDL_INLINE std::string decoder::finish() {
  std::string space, rest(valid_utf8(held_, space));
  held_.clear();
  begins_ = true;
  return rest;
}

}  // namespace edl::tokens
