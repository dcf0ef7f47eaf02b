// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "edl/compute/tokens/tokenizer_parts.hpp"
#include "edl/compute/tokens/unicode.hpp"
#include "edl/core/digest.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"

namespace edl::tokens {
namespace detail {

inline constexpr std::size_t most_tokens = 1u << 20, most_merges = 1u << 21, longest_token = 4096;
inline constexpr std::size_t most_steps_of_cutting = 16;

/// A value of the file, and where it is there.
class node {
 public:
  node(nlohmann::json const& value, std::string path) : value_(&value), path_(std::move(path)) {}

  [[noreturn]] void refuse(std::string const& why) const {
    throw data_error(path_ + (path_.ends_with(": ") ? "" : ": ") + why);
  }
  std::string const& path() const { return path_; }
  nlohmann::json const& value() const { return *value_; }

  bool is_null() const { return value_->is_null(); }

  /// A member of an object; null if it is missing.
  node at(char const* key) const {
    static nlohmann::json const none;
    if (!value_->is_object()) refuse("is not an object");
    auto const it = value_->find(key);
    return {it == value_->end() ? none : *it,
            path_ + (path_.ends_with(": ") ? "" : ".") + printable(key, 100)};
  }
  bool truth(bool otherwise = false) const {
    if (is_null()) return otherwise;
    if (!value_->is_boolean()) refuse("is not true or false");
    return value_->get<bool>();
  }
  std::string const& text() const {
    if (!value_->is_string()) refuse("is not a text");
    return value_->get_ref<std::string const&>();
  }
  std::string text_or_none() const { return is_null() ? std::string() : text(); }
  token_id id() const {
    if (!value_->is_number_unsigned() || value_->get<std::uint64_t>() >= most_tokens)
      refuse(fmt::format("is not a whole number below {}", most_tokens));
    return value_->get<token_id>();
  }
  std::size_t size(std::size_t most) const {
    if (!value_->is_array()) refuse("is not a list");
    if (value_->size() > most) refuse(fmt::format("has {} elements; {} are supported", value_->size(), most));
    return value_->size();
  }
  node element(std::size_t i) const { return {(*value_)[i], fmt::format("{}[{}]", path_, i)}; }

  /// Refuses members that nobody reads.
  void only(std::initializer_list<std::string_view> known) const {
    if (!value_->is_object()) refuse("is not an object");
    for (auto const& [key, ignored] : value_->items())
      if (std::ranges::find(known, std::string_view(key)) == known.end())
        refuse(fmt::format("'{}' is not supported", printable(key, 100)));
  }
  /// Refuses a member that would change the result.
  void must_be_unset(char const* key) const {
    node const n = at(key);
    if (n.is_null() || n.value() == "") return;
    n.refuse("is not supported; it must be null");
  }
  [[noreturn]] void refuse_type(std::string_view supported) const {
    refuse(fmt::format("'{}' is not supported; what is: {}", printable(at("type").text(), 100), supported));
  }
  template <class Act>
  auto guarded(Act&& act) const {
    try {
      return act();
    } catch (data_error const&) {
      throw;
    } catch (error const& e) {
      refuse(e.what());
    }
  }

 private:
  nlohmann::json const* value_;
  std::string path_;
};

inline void read_normalizer(node const& n, tokenizer_parts& into, int depth = 0) {
  if (n.is_null()) return;
  std::string const& type = n.at("type").text();
  if (type == "NFC") {
    n.only({"type"});
    into.normalizes = true;
  } else if (type == "Sequence" && depth == 0) {
    n.only({"type", "normalizers"});
    node const all = n.at("normalizers");
    for (std::size_t i = 0; i < all.size(most_steps_of_cutting); ++i)
      read_normalizer(all.element(i), into, depth + 1);
  } else {
    n.refuse_type("NFC, and a Sequence of it");
  }
}

inline void read_pre_tokenizer(node const& n, tokenizer_parts& into, int depth = 0) {
  if (n.is_null()) return;
  std::string const& type = n.at("type").text();
  if (into.of_bytes) n.refuse("stands behind ByteLevel, which must be the last");
  if (type == "ByteLevel") {
    n.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    cut c{.adds_blank = n.at("add_prefix_space").truth(true)};
    if (n.at("use_regex").truth(true)) c.by.emplace(gpt2_pattern);
    into.cuts.push_back(std::move(c));
    into.of_bytes = true;
  } else if (type == "Digits") {
    n.only({"type", "individual_digits"});
    into.cuts.push_back({.by = pattern(n.at("individual_digits").truth() ? R"(\p{N})" : R"(\p{N}+)")});
  } else if (type == "Split") {
    n.only({"type", "pattern", "behavior", "invert"});
    node const by = n.at("pattern");
    by.only({"Regex", "String"});
    std::string const& behavior = n.at("behavior").text();
    bool const invert = n.at("invert").truth();
    if (behavior != (invert ? "Removed" : "Isolated"))
      n.at("behavior")
          .refuse(fmt::format("'{}'{} is not supported; what is: Isolated, and Removed with invert",
                              printable(behavior, 100), invert ? " with invert" : ""));
    bool const literal = by.at("Regex").is_null();
    node const given = by.at(literal ? "String" : "Regex");
    cut c{.keeps_gaps = !invert};
    given.guarded([&] { c.by = literal ? pattern::literal(given.text()) : pattern(given.text()); });
    into.cuts.push_back(std::move(c));
  } else if (type == "Sequence" && depth == 0) {
    n.only({"type", "pretokenizers"});
    node const all = n.at("pretokenizers");
    for (std::size_t i = 0; i < all.size(most_steps_of_cutting); ++i)
      read_pre_tokenizer(all.element(i), into, depth + 1);
  } else {
    n.refuse_type("ByteLevel, Split, Digits, and a Sequence of these");
  }
}

inline void read_post_processor(node const& n, tokenizer_parts& into, int depth = 0) {
  if (n.is_null()) return;
  std::string const& type = n.at("type").text();
  if (type == "ByteLevel") {
    n.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});  // it changes offsets only
  } else if (type == "Sequence" && depth == 0) {
    n.only({"type", "processors"});
    node const all = n.at("processors");
    for (std::size_t i = 0; i < all.size(most_steps_of_cutting); ++i)
      read_post_processor(all.element(i), into, depth + 1);
  } else if (type == "TemplateProcessing") {
    n.only({"type", "single", "pair", "special_tokens"});
    if (!into.before.empty() || !into.after.empty()) n.refuse("is the second template; one is supported");
    node const pieces = n.at("single");
    bool seen = false;
    for (std::size_t i = 0; i < pieces.size(64); ++i) {
      node const piece = pieces.element(i);
      piece.only({"SpecialToken", "Sequence"});
      if (!piece.at("Sequence").is_null()) {
        if (std::exchange(seen, true)) piece.refuse("is the text once more");
        continue;
      }
      std::string const& name = piece.at("SpecialToken").at("id").text();
      node const ids = n.at("special_tokens").at(name.c_str()).at("ids");
      for (std::size_t k = 0; k < ids.size(64); ++k)
        (seen ? into.after : into.before).push_back(ids.element(k).id());
    }
    if (!seen) pieces.refuse("has no place for the text");
  } else {
    n.refuse_type("ByteLevel, TemplateProcessing, and a Sequence of these");
  }
}

struct decoders {
  bool bytes = false, fallback = false;
};

inline void read_decoder(node const& n, decoders& into, int depth = 0) {
  if (n.is_null())
    n.refuse("is null, so that the text of tokens is not known; it must be ByteLevel or ByteFallback");
  std::string const& type = n.at("type").text();
  if (type == "ByteLevel") {
    n.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    into.bytes = true;
  } else if (type == "ByteFallback" || type == "Fuse") {
    n.only({"type"});
    into.fallback |= type == "ByteFallback";
  } else if (type == "Sequence" && depth == 0) {
    n.only({"type", "decoders"});
    node const all = n.at("decoders");
    for (std::size_t i = 0; i < all.size(most_steps_of_cutting); ++i)
      read_decoder(all.element(i), into, depth + 1);
  } else {
    n.refuse_type("ByteLevel, ByteFallback, Fuse, and a Sequence of these");
  }
}

/// The bytes that a text in GPT-2's alphabet stands for; none: a character is not in the alphabet.
inline std::optional<std::string> bytes_in_alphabet(std::string_view text) {
  static std::array<std::int16_t, 512> const byte_of = [] {
    std::array<std::int16_t, 512> all{};
    all.fill(-1);
    auto const alphabet = byte_alphabet();
    for (std::size_t b = 0; b < 256; ++b) all[alphabet[b]] = std::int16_t(b);
    return all;
  }();
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    character const c = character_at(text, at);
    if (c.code >= byte_of.size() || byte_of[c.code] < 0) return std::nullopt;
    bytes += char(byte_of[c.code]);
    at += c.bytes;
  }
  return bytes;
}

inline void put_token(node const& n, token_id id, std::string written, std::string bytes, bool special,
                      tokenizer_parts& into) {
  if (written.empty() || written.size() > longest_token)
    n.refuse(
        fmt::format("the token {} has {} bytes; 1 to {} are supported", id, written.size(), longest_token));
  if (id >= into.is.size()) into.is.resize(id + 1), into.bytes.resize(id + 1);
  if (into.is[id] != 0) n.refuse(fmt::format("two tokens have the id {}", id));
  into.is[id] = special ? 2 : 1;
  into.bytes[id] = std::move(bytes);
  into.written.emplace(std::move(written), id);
}

/// `decodes`: how the texts of tokens are found.
inline void read_vocabulary(node const& model, decoders decodes, tokenizer_parts& into) {
  node const vocab = model.at("vocab");
  if (!vocab.value().is_object()) vocab.refuse("is not an object");
  if (vocab.value().size() > most_tokens)
    vocab.refuse(fmt::format("has {} tokens; {} are supported", vocab.value().size(), most_tokens));
  into.fallback_ids.fill(no_token);
  into.byte_ids.fill(no_token);
  for (auto const& [text, number] : vocab.value().items()) {
    token_id const id = node(number, fmt::format("{}.{}", vocab.path(), printable(text, 100))).id();
    auto const bytes = into.of_bytes || decodes.bytes ? bytes_in_alphabet(text) : std::nullopt;
    std::optional<unsigned> byte;  // that a token like <0x0A> stands for
    if (text.size() == 6 && text.starts_with("<0x") && text.ends_with(">"))
      byte = number_from<unsigned>(std::string_view(text).substr(3, 2), 16);
    if (byte) into.fallback_ids[*byte] = id;
    std::string meant = decodes.bytes && bytes     ? *bytes
                        : decodes.fallback && byte ? std::string(1, char(*byte))
                                                   : text;
    put_token(vocab, id, text, std::move(meant), false, into);
    if (!into.of_bytes) {
      into.ids.emplace(text, id);
    } else if (bytes) {
      into.ids.emplace(*bytes, id);
      if (bytes->size() == 1) into.byte_ids[static_cast<unsigned char>(bytes->front())] = id;
    }
  }
}

inline void read_merges(node const& model, tokenizer_parts& into) {
  node const list = model.at("merges");
  std::size_t const count = list.size(most_merges);
  into.rules = merges(count);
  std::string joined;
  for (std::size_t i = 0; i < count; ++i) {
    auto const& value = list.value()[i];
    auto const bad = [&](std::string const& why) { list.element(i).refuse(why); };
    std::string_view left, right;
    if (value.is_string()) {
      std::string_view const both = value.get_ref<std::string const&>();
      auto const blank = both.find(' ');
      if (blank == both.npos || both.find(' ', blank + 1) != both.npos)
        bad("is not two tokens with a blank between");
      left = both.substr(0, blank), right = both.substr(blank + 1);
    } else if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string()) {
      left = value[0].get_ref<std::string const&>(), right = value[1].get_ref<std::string const&>();
    } else {
      bad("is not a pair of tokens");
    }
    auto const id = [&](std::string_view token) {
      auto const it = into.written.find(token);
      if (it == into.written.end()) bad(fmt::format("'{}' is not in the vocabulary", printable(token, 100)));
      return it->second;
    };
    joined.assign(left).append(right);
    token_id const first = id(left), second = id(right);
    into.rules.add(first, second, {std::uint32_t(i), id(joined)});
  }
}

inline void read_model(node const& model, decoders decodes, tokenizer_parts& into) {
  // Files of the first versions do not name the type.
  if (!model.at("type").is_null() && model.at("type").text() != "BPE") model.refuse_type("BPE");
  model.only({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
              "byte_fallback", "ignore_merges", "vocab", "merges"});
  for (char const* const key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
    model.must_be_unset(key);
  into.fuse_unknown = model.at("fuse_unk").truth();
  into.byte_fallback = model.at("byte_fallback").truth();
  into.whole_words = model.at("ignore_merges").truth();
  read_vocabulary(model, decodes, into);
  read_merges(model, into);
  node const unknown = model.at("unk_token");
  if (std::string const name = unknown.text_or_none(); !name.empty()) {
    auto const it = into.written.find(name);
    if (it == into.written.end())
      unknown.refuse(fmt::format("'{}' is not in the vocabulary", printable(name, 100)));
    into.unknown = it->second;
  }
}

inline void read_added_tokens(node const& list, tokenizer_parts& into) {
  if (list.is_null()) return;
  for (std::size_t i = 0; i < list.size(most_tokens); ++i) {
    node const n = list.element(i);
    n.only({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    token_id const id = n.at("id").id();
    std::string const& content = n.at("content").text();
    bool const special = n.at("special").truth();
    if (n.at("single_word").truth()) n.at("single_word").refuse("true is not supported");
    if (auto const it = into.written.find(content); it == into.written.end()) {
      put_token(n, id, content, content, special, into);
    } else {
      if (it->second != id)
        n.refuse(fmt::format("'{}' has the id {} here, and {} in the vocabulary", printable(content, 100), id,
                             it->second));
      into.bytes[id] = content;
      if (special) into.is[id] = 2;
    }
    added_tokens::token const t{
        .id = id, .strip_left = n.at("lstrip").truth(), .strip_right = n.at("rstrip").truth()};
    std::string space;
    if (n.at("normalized").truth(!special))
      into.normalized.add(std::string(into.normalizes ? nfc(content, space) : content), t);
    else
      into.as_given.add(content, t);
  }
}

}  // namespace detail

EDL_INLINE void added_tokens::add(std::string const& content, token t) {
  by_content[content] = t;
  begins_with[static_cast<unsigned char>(content.front())] = true;
  auto const at = std::ranges::lower_bound(lengths, content.size(), std::ranges::greater{});
  if (at == lengths.end() || *at != content.size()) lengths.insert(at, content.size());
}

EDL_INLINE tokenizer_parts read_tokenizer(std::string_view content, std::string const& name) {
  auto const file = parse_json(content);
  if (file.is_discarded()) throw data_error(fmt::format("{}: is {}", name, why_no_json(content)));
  detail::node const root(file, name + ": ");
  if (!file.is_object()) root.refuse("is not an object of JSON, as a tokenizer.json is");
  tokenizer_parts parts;
  parts.digest = digest(std::as_bytes(std::span(content)));
  if (root.at("model").is_null())
    throw data_error(name +
                     ": has no member 'model'; it must be a tokenizer.json of Hugging Face's tokenizers");
  root.only({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
             "post_processor", "decoder", "model"});
  for (char const* const key : {"truncation", "padding"}) root.must_be_unset(key);
  detail::read_normalizer(root.at("normalizer"), parts);
  detail::read_pre_tokenizer(root.at("pre_tokenizer"), parts);
  detail::decoders decodes;
  detail::read_decoder(root.at("decoder"), decodes);
  detail::read_model(root.at("model"), decodes, parts);
  detail::read_added_tokens(root.at("added_tokens"), parts);
  detail::read_post_processor(root.at("post_processor"), parts);
  for (auto const* const list : {&parts.before, &parts.after})
    for (token_id const id : *list)
      if (id >= parts.is.size() || parts.is[id] == 0)
        root.at("post_processor").refuse(fmt::format("the token {} is not in the vocabulary", id));
  return parts;
}

}  // namespace edl::tokens
