// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "edl/compute/tokens/sentence_pieces.hpp"
#include "edl/compute/tokens/unicode.hpp"
#include "edl/core/digest.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"

namespace edl::tokens {
namespace detail {

inline constexpr std::string_view marked_blank = "\xE2\x96\x81";  // U+2581

/// A message of Protocol Buffers by the numbers of its fields, of which the last one counts.
class piece_message {
 public:
  using field = google::protobuf::UnknownField;

  piece_message(std::string_view bytes, std::string const& file) : file_(file) {
    if (!all_.ParseFromArray(bytes.data(), int(bytes.size()))) refuse("is no whole model of SentencePiece");
  }
  [[noreturn]] void refuse(std::string const& why) const {
    throw data_error(fmt::format("{}: {}", file_, why));
  }
  template <class Visit>
  void each(int number, field::Type type, Visit const& visit) const {
    for (int i = 0; i < all_.field_count(); ++i)
      if (field const& f = all_.field(i); f.number() == number) {
        if (f.type() != type) refuse("is no model of SentencePiece: a field has another type");
        visit(f);
      }
  }
  std::string text(int number, std::string otherwise) const {
    each(number, field::TYPE_LENGTH_DELIMITED, [&](field const& f) { otherwise = f.length_delimited(); });
    return otherwise;
  }
  std::uint64_t number(int number, std::uint64_t otherwise) const {
    each(number, field::TYPE_VARINT, [&](field const& f) { otherwise = f.varint(); });
    return otherwise;
  }
  float real(int number) const {
    float value = 0;
    each(number, field::TYPE_FIXED32, [&](field const& f) { value = std::bit_cast<float>(f.fixed32()); });
    return value;
  }

 private:
  google::protobuf::UnknownFieldSet all_;
  std::string const& file_;
};

/// How texts become pieces.
inline void read_piece_options(piece_message const& trainer, piece_message const& normalizer,
                               tokenizer_parts& into) {
  constexpr std::uint64_t bpe = 2;
  if (trainer.number(3, 1) != bpe)
    trainer.refuse("a model of SentencePiece is read if it is BPE; spm_train --model_type=bpe makes one");
  if (!normalizer.text(2, "").empty())
    normalizer.refuse(
        fmt::format("its normalization '{}' is not supported; spm_train --normalization_rule_name=identity "
                    "makes a model without one",
                    printable(normalizer.text(1, ""), 100)));
  if (trainer.number(24, 0) != 0 || normalizer.number(5, 1) == 0)
    trainer.refuse("blanks that end a piece, or are not marked, are not supported");
  into.marks_blanks = true;
  into.begins_with_blank = normalizer.number(3, 1) != 0;
  into.trims = normalizer.number(4, 1) != 0;
}

/// Which neighbours are merged: those that are a piece together; first the piece of the greatest score.
inline void read_piece_merges(piece_message const& of, std::vector<float> const& scores,
                              tokenizer_parts& into) {
  constexpr std::size_t most = 1u << 21;
  struct merge {
    token_id left, right;
    merges::result becomes;
  };
  std::vector<float> order = scores;
  std::ranges::sort(order, std::ranges::greater{});
  std::vector<merge> all;
  for (auto const& [piece, id] : into.ids) {
    auto const rank = std::ranges::lower_bound(order, scores[id], std::ranges::greater{}) - order.begin();
    for (std::size_t at = character_at(piece, 0).bytes; at < piece.size();
         at += character_at(piece, at).bytes) {
      auto const left = into.ids.find(std::string_view(piece).substr(0, at)),
                 right = into.ids.find(std::string_view(piece).substr(at));
      if (left == into.ids.end() || right == into.ids.end()) continue;
      if (all.size() == most) of.refuse(fmt::format("has more than {} merges", most));
      all.push_back({left->second, right->second, {std::uint32_t(rank), id}});
    }
  }
  into.rules = merges(all.size());
  for (merge const& m : all) into.rules.add(m.left, m.right, m.becomes);
}

}  // namespace detail

EDL_INLINE bool is_sentence_pieces(std::string_view content) {
  // Each piece has the field of its score, whose tag is no character of a text.
  return std::ranges::any_of(content.substr(0, 64),
                             [](char c) { return c >= 0 && c < ' ' && c != '\n' && c != '\r' && c != '\t'; });
}

EDL_INLINE tokenizer_parts read_sentence_pieces(std::string_view content, std::string const& name) {
  using detail::piece_message;
  constexpr std::size_t most_pieces = 1u << 20, longest_normal = 256, longest = 4096;
  enum : std::uint64_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  piece_message const file(content, name);
  piece_message const trainer(file.text(2, ""), name), normalizer(file.text(3, ""), name),
      denormalizer(file.text(5, ""), name);
  if (!denormalizer.text(2, "").empty()) file.refuse("has a denormalizer, which is not supported");
  tokenizer_parts parts;
  detail::read_piece_options(trainer, normalizer, parts);
  parts.digest = digest(std::as_bytes(std::span(content)));
  parts.fallback_ids.fill(no_token);
  parts.byte_ids.fill(no_token);
  parts.fuse_unknown = true;
  std::vector<float> scores;
  bool blanks_begin = true;  // a blank inside a piece follows only blanks
  file.each(1, piece_message::field::TYPE_LENGTH_DELIMITED, [&](auto const& f) {
    piece_message const one(f.length_delimited(), name);
    std::string const piece = one.text(1, "");
    auto const id = token_id(scores.size());
    auto const type = one.number(3, normal);
    auto const bad = [&](std::string const& why) {
      one.refuse(fmt::format("piece {}, '{}', {}", id, printable(piece, 100), why));
    };
    if (id == most_pieces) bad(fmt::format("is one more than {}", most_pieces));
    std::string space;
    if (piece.empty() || piece.size() > (type == normal ? longest_normal : longest))
      bad("has no such length");
    if (valid_utf8(piece, space) != piece) bad("is not UTF-8");
    if (!parts.written.emplace(piece, id).second) bad("occurs twice");
    if (!std::isfinite(scores.emplace_back(one.real(2)))) bad("has a score that is no number");
    std::string bytes = piece;
    for (std::size_t at = 0; (at = bytes.find(detail::marked_blank, at)) != bytes.npos; ++at)
      bytes.replace(at, detail::marked_blank.size(), " ");
    if (type == normal) {
      parts.ids.emplace(piece, id);
      auto const first = bytes.find_first_not_of(' ');
      blanks_begin = blanks_begin && (first == bytes.npos || bytes.find(' ', first) == bytes.npos);
    } else if (type == unknown) {
      if (parts.unknown != no_token) bad("is a second unknown one");
      parts.unknown = id;
      bytes = trainer.text(44, " \xE2\x81\x87 ");
    } else if (type == user_defined) {
      parts.normalized.add(piece, {.id = id});
    } else if (type == byte) {
      bool const whole = piece.size() == 6 && piece.starts_with("<0x") && piece.ends_with(">");
      auto const of = whole ? number_from<unsigned>(std::string_view(piece).substr(3, 2), 16) : std::nullopt;
      if (!of) bad("is no byte");
      parts.fallback_ids[*of] = id;
      parts.byte_fallback = true;
      bytes = std::string(1, char(*of));
    } else if (type != control) {
      bad(type == unused ? "is unused, which is not supported" : "has an unknown type");
    }
    parts.is.push_back(type == control ? 2 : 1);
    parts.bytes.push_back(std::move(bytes));
  });
  if (parts.unknown == no_token) file.refuse("is no model of SentencePiece: no piece is the unknown one");
  detail::read_piece_merges(file, scores, parts);
  auto const begin = parts.written.find(trainer.text(46, "<s>"));
  if (begin != parts.written.end() && parts.is[begin->second] == 2) parts.before = {begin->second};
  // Then nothing is merged across the begin of a word.
  if (blanks_begin) parts.cuts.push_back({.by = pattern("\xE2\x96\x81+[^\xE2\x96\x81]*+|[^\xE2\x96\x81]++")});
  return parts;
}

EDL_INLINE std::string_view with_marked_blanks(tokenizer_parts const& by, std::string_view text,
                                               std::string& space) {
  space.clear();
  bool after_blank = by.trims;
  for (char const c : text) {
    if (c == ' ' && after_blank) continue;
    if (space.empty() && by.begins_with_blank) space += detail::marked_blank;
    if (c == ' ')
      space += detail::marked_blank;
    else
      space += c;
    after_blank = by.trims && c == ' ';
  }
  while (by.trims && space.ends_with(detail::marked_blank))
    space.resize(space.size() - detail::marked_blank.size());
  return space;
}

}  // namespace edl::tokens
