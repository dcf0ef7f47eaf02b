// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/json_lines.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"

namespace edl::data {
namespace detail {

inline constexpr std::size_t json_line_limit = 16u << 20, json_columns = 16'384, json_block = 1u << 20,
                             json_depth = 64;

/// The values of one feature in one line. Reuses its storage.
struct json_values {
  std::string name;
  example::kind type = example::kind::none;
  std::vector<std::int64_t> integers;
  std::vector<double> floats;  // as many, where they are integers
  std::vector<std::string> texts;
  std::string too_long;   // the first whole number that does not fit an integer
  bool fraction = false;  // has another float
};

/// Collects the members of a line from the events of the library's parser, which does not recurse.
class json_row {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  /// False: `refused` has the reason, and `place` the column if it is known; 0 otherwise.
  bool parse(std::string_view text) {
    used_ = 0;
    scopes_.clear();
    refused.clear();
    place = 0;
    text_ = text;
    within_ = false;
    return nlohmann::json::sax_parse(text.begin(), text.end(), this) && refused.empty();
  }

  std::size_t size() const { return used_; }
  json_values const& operator[](std::size_t i) const { return values_[i]; }

  std::string refused;
  std::size_t place = 0;
  bool spells = false;  // also keeps the texts of numbers

  bool null() {
    if (!in_list()) return finish();
    return refuse(fmt::format("expected a value in the list '{}', found null", shown()));
  }
  bool boolean(bool value) { return integer(value ? 1 : 0); }
  bool number_integer(number_integer_t value) { return integer(value); }
  bool number_unsigned(number_unsigned_t value) {
    if (value > std::uint64_t(std::numeric_limits<std::int64_t>::max()))
      return floating(double(value), true, std::to_string(value));
    return integer(std::int64_t(value));
  }
  bool number_float(number_float_t value, string_t const& text) {
    return floating(value, text.find_first_of(".eE") == text.npos, text);
  }
  bool string(string_t& value) {
    if (!take(example::kind::strings)) return false;
    now().texts.push_back(value);
    return finish();
  }
  bool binary(binary_t&) { return refuse("expected no binary value"); }  // JSON has none

  bool start_object(std::size_t) {
    if (in_list()) return refuse(fmt::format("expected no object in the list '{}'", shown()));
    return enter(false);
  }
  bool key(string_t& name) {
    path_.resize(scopes_.back().path);
    if (!path_.empty()) path_ += '.';
    path_ += name;
    within_ = true;
    return true;
  }
  bool end_object() {
    scopes_.pop_back();
    return scopes_.empty() || finish();
  }
  bool start_array(std::size_t) {
    if (scopes_.empty()) return refuse("expected an object, found a list");
    bool const within = in_list();
    return enter(true) && (within || begin_feature());
  }
  bool end_array() {
    scopes_.pop_back();
    return finish();
  }
  bool parse_error(std::size_t position, std::string const& token, nlohmann::json::exception const& e) {
    if (!refused.empty()) return false;
    place = std::clamp<std::size_t>(position, 1, text_.size() + 1);
    refused = described(token, e);
    if (within_) refused = fmt::format("feature '{}': {}", shown(), refused);
    return false;
  }

 private:
  struct scope {
    bool list = false;
    std::size_t path = 0;  // how much of the path leads here
  };

  /// Describes the text that is not valid JSON; sets `place` to its beginning.
  std::string described(std::string const& token, nlohmann::json::exception const& e) {
    constexpr int out_of_range = 406;
    constexpr std::string_view around = " \t\r,:[]{}\"";
    if (place > text_.size()) return "expected JSON, found the end of the line";
    if (std::string_view(e.what()).find("UTF-8") != std::string_view::npos)
      return "expected UTF-8, found other bytes in a text";
    if (around.find(text_[place - 1]) == around.npos || e.id == out_of_range)
      while (place > 1 && around.find(text_[place - 2]) == around.npos) --place;
    if (e.id == out_of_range)
      return fmt::format("{} is more than a number can be", edl::printable(token, 64));
    std::string_view const rest = text_.substr(place - 1);
    for (std::string_view const word :
         {"NaN", "Infinity", "-Infinity", "nan", "inf", "-inf", "None", "True", "False"})
      if (rest.starts_with(word))
        return fmt::format("{} is not JSON: write null, true, false or a number, or leave the feature out",
                           word);
    if (rest[0] == '\'') return "a text is in double quotes in JSON, and this is in single ones";
    auto const before = text_.substr(0, place - 1).find_last_not_of(" \t\r");
    if ((rest[0] == '}' || rest[0] == ']') && before != text_.npos && text_[before] == ',')
      return fmt::format("expected a value behind the comma, found {}", rest[0]);
    return fmt::format("expected JSON, found {}", edl::printable(rest, 20));
  }

  bool refuse(std::string why) {
    if (refused.empty()) refused = std::move(why);
    return false;
  }
  std::string shown() const { return edl::printable(path_, 64); }
  bool in_list() const { return !scopes_.empty() && scopes_.back().list; }
  json_values& now() { return values_[used_ - 1]; }

  bool enter(bool list) {
    if (scopes_.size() == json_depth)
      return refuse(fmt::format("expected at most {} objects and lists in one another", json_depth));
    if (scopes_.empty()) path_.clear();
    scopes_.push_back({list, path_.size()});
    return true;
  }

  bool begin_feature() {
    if (used_ == json_columns) return refuse(fmt::format("expected at most {} features", json_columns));
    if (used_ == values_.size()) values_.emplace_back();
    json_values& v = values_[used_++];
    v.name = path_;
    v.type = example::kind::none;
    v.integers.clear();
    v.floats.clear();
    v.texts.clear();
    v.too_long.clear();
    v.fraction = false;
    return true;
  }

  /// Makes room for a value of this kind in the feature that the path names.
  bool take(example::kind what) {
    if (scopes_.empty()) return refuse("expected an object");
    if (!in_list() && !begin_feature()) return false;
    auto& kind = now().type;
    if (kind != example::kind::none && (kind == example::kind::strings) != (what == example::kind::strings))
      return refuse(fmt::format("expected numbers or texts in the list '{}', found both", shown()));
    kind = wider(kind, what);
    return true;
  }
  bool integer(std::int64_t value) {
    if (!take(example::kind::integers)) return false;
    now().integers.push_back(value);
    now().floats.push_back(double(value));
    if (spells) now().texts.push_back(std::to_string(value));
    return finish();
  }
  bool floating(double value, bool whole, std::string const& text) {
    if (!take(example::kind::floats)) return false;
    if (!whole)
      now().fraction = true;
    else if (now().too_long.empty())
      now().too_long = text;
    now().floats.push_back(value);
    if (spells) now().texts.push_back(text);
    return finish();
  }
  bool finish() {
    if (scopes_.empty()) return refuse("expected an object");
    within_ = in_list();
    return true;
  }

  std::vector<json_values> values_;
  std::size_t used_ = 0;
  std::vector<scope> scopes_;
  std::string path_;
  std::string_view text_;
  bool within_ = false;  // the value of a feature
};

class json_reader final : public reader {
 public:
  explicit json_reader(json_lines_source const& from) : from_(from) {
    row_.spells = std::ranges::any_of(from.columns_, &table_column::spelled);
  }

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    auto const& path = from_.file_.path();
    if (shard != 0 || record >= from_.lines_.size())
      throw data_error(fmt::format("{}: no line {}: the file has {}", path, record, from_.lines_.size()));
    auto const [begin, size] = from_.lines_[std::size_t(record)];
    auto const number = from_.numbers_[std::size_t(record)];
    text_.resize(size);
    from_.file_.read(begin, text_.data(), size);
    from_.file_.check_unchanged();
    if (!row_.parse(text_))
      throw data_error(row_.place > 0 ? fmt::format("{}:{}:{}: {}", path, number, row_.place, row_.refused)
                                      : fmt::format("{}:{}: {}", path, number, row_.refused));
    example_builder build{into};
    for (std::size_t i = 0; i < row_.size(); ++i) {
      json_values const& v = row_[i];
      if (into.contains(v.name))
        throw data_error(
            fmt::format("{}:{}: feature '{}' occurs twice", path, number, edl::printable(v.name, 64)));
      auto const known = from_.places_.find(v.name);
      auto const what = known == from_.places_.end() ? v.type : from_.columns_[known->second].kind;
      bool const text = what == example::kind::strings, empty = v.type == example::kind::none;
      bool const spelled = known != from_.places_.end() && from_.columns_[known->second].spelled;
      if (!empty && !spelled && text != (v.type == example::kind::strings))
        throw data_error(fmt::format("{}:{}: expected a {} in feature '{}', found a {}", path, number,
                                     text ? "text" : "number", edl::printable(v.name, 64),
                                     text ? "number" : "text"));
      if (text) {
        texts_.assign(v.texts.begin(), v.texts.end());
        build.bytes(v.name, texts_);
      } else if (what == example::kind::integers) {
        build.integers(v.name, v.integers);
      } else {
        std::ranges::transform(v.floats, build.floats(v.name, v.floats.size()).begin(),
                               [](double d) { return float(d); });
        if (v.type == example::kind::integers) build.also(v.integers);
      }
    }
  }

 private:
  json_lines_source const& from_;
  std::string text_;
  json_row row_;
  std::vector<std::string_view> texts_;
};

}  // namespace detail

EDL_INLINE json_lines_source::json_lines_source(std::string const& path) : file_(path) {
  detail::json_row row;
  std::string block, text;
  std::uint64_t begin = 0, number = 0;
  struct seen {
    example::kind number = example::kind::none;
    std::uint64_t numbers = 0, texts = 0;  // records
    std::uint64_t long_line = 0;           // the first line with a whole number that is too large
    std::string too_long;
    bool fraction = false;
  };
  std::vector<seen> of;  // each column
  auto const finish = [&] {
    ++number;
    if (text.size() > detail::json_line_limit)
      throw data_error(fmt::format("{}:{}: is longer than {} bytes", path, number, detail::json_line_limit));
    if (text.find_first_not_of(" \t\r") != text.npos) {
      lines_.push_back({begin, std::uint32_t(text.size())});
      numbers_.push_back(number);
      // An error in a line is reported when the line is read.
      for (std::size_t i = 0, n = row.parse(text) ? row.size() : 0; i < n; ++i) {
        auto const [known, fresh] = places_.try_emplace(row[i].name, columns_.size());
        if (fresh) columns_.push_back({row[i].name, example::kind::none});
        if (fresh) of.emplace_back();
        auto& s = of[known->second];
        if (!row[i].too_long.empty() && s.long_line == 0) s.long_line = number, s.too_long = row[i].too_long;
        s.fraction = s.fraction || row[i].fraction;
        if (row[i].type == example::kind::none) continue;
        (row[i].type == example::kind::strings ? s.texts : s.numbers) += 1;
        if (row[i].type != example::kind::strings) s.number = wider(s.number, row[i].type);
      }
      if (columns_.size() > detail::json_columns)
        throw data_error(fmt::format("{}:{}: more than {} features are in the lines up to here", path, number,
                                     detail::json_columns));
    }
    text.clear();
  };
  for (std::uint64_t at = 0; at < file_.size(); at += block.size()) {
    block.resize(std::size_t(std::min<std::uint64_t>(detail::json_block, file_.size() - at)));
    file_.read(at, block.data(), block.size());
    std::size_t copied = 0;
    for (std::size_t end; (end = block.find('\n', copied)) != block.npos; copied = end + 1) {
      text.append(block, copied, end - copied);
      finish();
      begin = at + end + 1;
    }
    text.append(block, copied, block.npos);
    if (text.size() > detail::json_line_limit) finish();
  }
  if (!text.empty()) finish();
  file_.check_unchanged();
  for (std::size_t i = 0; i < of.size(); ++i)
    columns_[i].kind = of[i].texts > of[i].numbers ? example::kind::strings : of[i].number;
  for (std::size_t i = 0; i < of.size(); ++i)
    if (of[i].long_line > 0 && !of[i].fraction) {
      columns_[i].kind = example::kind::strings;
      columns_[i].spelled = true;
      if (notes_.size() < detail::table_notes)
        notes_.push_back(detail::spelled_note(path, of[i].long_line, of[i].too_long, columns_[i].name));
    }
  shards_.push_back({path.substr(path.find_last_of('/') + 1), lines_.size()});
}

EDL_INLINE void json_lines_source::agree(std::vector<table_column> const& with) {
  for (auto const& [name, what, spelled, says_nothing] : with) {
    auto const own = places_.find(name);
    if (own == places_.end()) continue;
    auto& kind = columns_[own->second].kind;
    columns_[own->second].spelled |= spelled;
    if (!spelled && what == example::kind::strings && kind != what && kind != example::kind::none)
      throw data_error(
          fmt::format("{}: has numbers in feature '{}', which is a text in other files of the set",
                      file_.path(), edl::printable(name, 64)));
    kind = wider(kind, what);
  }
}

EDL_INLINE std::unique_ptr<reader> json_lines_source::open() const {
  return std::make_unique<detail::json_reader>(*this);
}

EDL_INLINE std::uint64_t json_lines_source::digest(std::size_t shard) const {
  if (shard != 0) return 0;
  detail::content_digest sum;
  sum.add(file_.digest());
  for (auto const& [begin, size] : lines_) sum.add(begin);
  return sum.value();
}

}  // namespace edl::data
