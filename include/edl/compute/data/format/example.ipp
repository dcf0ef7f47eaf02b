// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "edl/compute/data/choosing_reader.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/table.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"

namespace edl {
namespace data::detail {

// Declared in table.hpp, which may be including this file.
EDL_INLINE std::string look_alike(std::string_view wanted, std::vector<std::string_view> const& names);

/// A name from a file, made safe for a line of text.
inline std::string printable(std::string_view name) {
  return edl::printable(name, 64) + (name.size() > 64 ? "…" : "");
}

inline constexpr std::string_view kind_names[]{"empty", "byte strings", "floats", "integers"};

}  // namespace data::detail

EDL_INLINE bool fits_extents(view<std::size_t> given, view<std::size_t> wanted) {
  auto const next = [](view<std::size_t>& of) {
    while (!of.empty() && of.front() == 1) of = of.subspan(1);
  };
  auto const is_flat = [](view<std::size_t> of) {
    return std::ranges::count_if(of, [](std::size_t e) { return e != 1; }) <= 1;
  };
  if (is_flat(given)) return true;
  for (next(given), next(wanted); !given.empty() && !wanted.empty(); next(given), next(wanted)) {
    if (given.front() != wanted.front()) return false;
    given = given.subspan(1), wanted = wanted.subspan(1);
  }
  return given.empty() && wanted.empty();
}

EDL_INLINE std::string shown_extents(view<std::size_t> extents) {
  return extents.empty() ? "1" : fmt::format("{}", fmt::join(extents, " × "));
}

EDL_INLINE void detail::check_extents(std::string_view name, std::size_t values, view<std::size_t> given,
                                      view<std::size_t> extents) {
  asked_features::note(name, example::kind::none, extents);
  std::size_t wanted = 1;
  for (std::size_t const e : extents) wanted *= e;
  auto const refuse = [&](std::string const& what) {
    throw feature_error(what, name, example::kind::none, {extents.begin(), extents.end()});
  };
  if (values != wanted)
    refuse(fmt::format("'{}' has {}{}, the network takes {}{}", data::detail::printable(name),
                       counted(values, "value"),
                       given.size() > 1 ? fmt::format(" ({})", shown_extents(given)) : "", wanted,
                       extents.size() > 1 ? fmt::format(" ({})", shown_extents(extents)) : ""));
  // A list that an author reads as flat may have any extents.
  if (extents.size() > 1 && !fits_extents(extents, {}) && !fits_extents(given, extents))
    refuse(fmt::format("'{}' is {}, the network takes {}: transpose it, or read it flat in `feed`",
                       data::detail::printable(name), shown_extents(given), shown_extents(extents)));
}

EDL_INLINE void detail::refuse_value(std::string_view name, std::int64_t at, std::size_t size) {
  throw feature_error(fmt::format("'{}' has no value {}, which `feed` reads: this record has {}, from 0 on",
                                  data::detail::printable(name), at, size),
                      name, example::kind::none, {std::size_t(at) + 1});
}

EDL_INLINE std::string_view example::bytes_at(entry const& f, std::size_t index) const {
  auto const& s = slices_[f.first + index];
  return std::string_view(text_).substr(s.first, s.size);
}

EDL_INLINE void example::clear() {
  features_.clear();
  floats_.clear();
  integers_.clear();
  slices_.clear();
  extents_.clear();
  text_.clear();
}

EDL_INLINE std::string_view example::name(std::size_t feature) const {
  data::feature_choice::list();
  return text_of(features_[feature]);
}

EDL_INLINE example::entry const* example::find(std::string_view name) const {
  asked_features::note(name);
  auto const found = std::ranges::find(features_, name, [&](entry const& f) { return text_of(f); });
  data::feature_choice::ask(name, found != features_.end());
  return found != features_.end() ? &*found : nullptr;
}

EDL_INLINE void example::refuse(std::string_view name, std::string_view wanted, kind what, bool one,
                                std::size_t values) const {
  std::string has;
  for (std::size_t i = 0; i < features_.size() && i < 20; ++i)
    has += fmt::format("{}{} ({} {})", i ? ", " : "", data::detail::printable(this->name(i)),
                       features_[i].count, data::detail::kind_names[std::size_t(features_[i].type)]);
  if (features_.size() > 20) has += fmt::format(" and {} more", features_.size() - 20);
  auto const* const found = find(name);
  std::string value;  // of a cell of a table, for one
  if (found && found->count == 1 && found->type == kind::floats)
    value = fmt::format(", but {}", floats_[found->first]);
  if (found && found->count == 1 && found->type == kind::strings)
    value = fmt::format(", but '{}'", data::detail::printable(bytes_at(*found, 0)));
  std::string way_out;
  if (found && found->count == 1 && found->type == kind::strings && what != kind::strings)
    if (auto const word = bytes_at(*found, 0);
        !word.empty() && word.size() <= 64 && word.find(',') == word.npos)
      way_out = fmt::format("; {} reads such cells of a table as missing",
                            shell_line({"--missing=auto," + data::detail::printable(word)}));
  throw feature_error(
      fmt::format("the record has {}{} as feature '{}'{}; it has {}", found ? "not " : "no ", wanted,
                  data::detail::printable(name), value, has.empty() ? "no features" : has) +
          (found ? way_out : data::detail::look_alike(name, names())),
      name, what, values > 1 ? std::vector{values} : std::vector<std::size_t>{}, one);
}

EDL_INLINE example::entry const& example::need(std::string_view name, kind what) const {
  auto const* const f = find(name);
  if (!f || f->type != what) refuse(name, data::detail::kind_names[std::size_t(what)], what, false);
  return *f;
}

EDL_INLINE value_list<float> example::float_values(std::string_view name) const {
  asked_features::note(name, kind::floats);
  if (auto const* const f = find(name); f && f->as_floats != none)
    return {{floats_.data() + f->as_floats, f->count}, text_of(*f), extents_of(*f)};
  auto const& f = need(name, kind::floats);
  return {{floats_.data() + f.first, f.count}, text_of(f), extents_of(f)};
}

EDL_INLINE value_list<std::int64_t> example::integer_values(std::string_view name) const {
  asked_features::note(name, kind::integers);
  if (auto const* const f = find(name); f && f->as_integers != none)
    return {{integers_.data() + f->as_integers, f->count}, text_of(*f), extents_of(*f)};
  auto const& f = need(name, kind::integers);
  return {{integers_.data() + f.first, f.count}, text_of(f), extents_of(f)};
}

EDL_INLINE std::int64_t example::integer(std::string_view name) const {
  auto const values = integer_values(name);
  if (values.size() != 1) refuse(name, "one integer", kind::integers);
  return values[0];
}

EDL_INLINE float example::floating(std::string_view name) const {
  asked_features::note(name, kind::floats);
  auto const* const f = find(name);
  if (f && f->count == 1 && f->type == kind::integers) return float(integers_[f->first]);
  if (!f || f->count != 1 || (f->type != kind::floats && f->as_floats == none))
    refuse(name, "one number", kind::floats);
  return floats_[f->type == kind::floats ? f->first : f->as_floats];
}

EDL_INLINE std::string_view example::bytes(std::string_view name) const {
  asked_features::note(name, kind::strings);
  if (need(name, kind::strings).count != 1) refuse(name, "one byte string", kind::strings);
  return bytes(name, 0);
}

EDL_INLINE std::string_view example::bytes(std::string_view name, std::size_t index) const {
  asked_features::note(name, kind::strings);
  auto const& f = need(name, kind::strings);
  if (index >= f.count)
    refuse(name, fmt::format("{} byte strings", index + 1), kind::strings, false, index + 1);
  return bytes_at(f, index);
}

EDL_INLINE std::size_t example::count(std::string_view name) const {
  auto const* const f = find(name);
  return f ? f->count : 0;
}

EDL_INLINE view<std::size_t> example::extents(std::string_view name) const {
  auto const* const f = find(name);
  return f ? extents_of(*f) : view<std::size_t>();
}

EDL_INLINE std::vector<std::string_view> example::names() const {
  std::vector<std::string_view> all;
  for (std::size_t i = 0; i < features_.size(); ++i) all.push_back(name(i));
  return all;
}

EDL_INLINE example::entry& example::add(std::string_view name) {
  entry f;
  f.name = text_.size();
  f.name_size = name.size();
  text_.append(name);
  return features_.emplace_back(f);
}

EDL_INLINE void example::add_floats() {
  for (entry& f : features_) {
    if (f.type != kind::integers) continue;
    f.as_floats = floats_.size();
    auto const from = integers_.begin() + std::ptrdiff_t(f.first);
    std::transform(from, from + std::ptrdiff_t(f.count), std::back_inserter(floats_),
                   [](std::int64_t i) { return float(i); });
  }
}

/// Parses protobuf's wire format with protobuf's low-level stream, without generated classes. Every function
/// returns false for malformed bytes. Lengths are checked against the remaining bytes before use.
class example_parser {
 public:
  example_parser(example& into, std::string_view serialised)
      : into_(into),
        whole_(serialised),
        in_(reinterpret_cast<std::uint8_t const*>(serialised.data()), int(serialised.size())) {}

  bool record() {
    in_.SetTotalBytesLimit(std::numeric_limits<int>::max());
    in_.PushLimit(int(whole_.size()));
    return fields([this](std::uint32_t tag) {
      return tag == delimited(1) ? nested([this] { return features(); }) : skip(tag);
    });
  }

  int position() const { return in_.CurrentPosition(); }

 private:
  static constexpr std::uint32_t delimited(std::uint32_t field) { return field << 3 | 2; }
  static constexpr std::uint32_t varint(std::uint32_t field) { return field << 3; }
  static constexpr std::uint32_t fixed32(std::uint32_t field) { return field << 3 | 5; }

  /// Calls `field` for each field up to the limit.
  template <class Field>
  bool fields(Field&& field) {
    while (in_.BytesUntilLimit() > 0) {
      std::uint32_t const tag = in_.ReadTagNoLastTag();
      if (tag >> 3 == 0 || !field(tag)) return false;
    }
    return true;
  }

  template <class Message>
  bool nested(Message&& message) {
    int size = 0;
    if (!length(size)) return false;
    auto const outer = in_.PushLimit(size);
    bool const good = message() && in_.BytesUntilLimit() == 0;
    in_.PopLimit(outer);
    return good;
  }

  bool length(int& size) {
    std::uint32_t n = 0;
    if (!in_.ReadVarint32(&n) || std::int64_t(n) > in_.BytesUntilLimit()) return false;
    size = int(n);
    return true;
  }

  bool text(std::string_view& bytes) {
    int size = 0;
    if (!length(size)) return false;
    bytes = whole_.substr(std::size_t(in_.CurrentPosition()), std::size_t(size));
    return in_.Skip(size);
  }

  bool skip(std::uint32_t tag) {
    std::uint64_t ignored = 0;
    int size = 0;
    switch (tag & 7) {
      case 0:
        return in_.ReadVarint64(&ignored);
      case 1:
        return in_.BytesUntilLimit() >= 8 && in_.Skip(8);
      case 2:
        return length(size) && in_.Skip(size);
      case 5:
        return in_.BytesUntilLimit() >= 4 && in_.Skip(4);
      default:
        return false;  // groups, which no writer of these messages has ever used
    }
  }

  bool features() {
    return fields([this](std::uint32_t tag) {
      return tag == delimited(1) ? nested([this] { return entry(); }) : skip(tag);
    });
  }

  bool entry() {
    std::string_view key;
    value_ = {};
    bool const good = fields([&](std::uint32_t tag) {
      if (tag == delimited(1)) return text(key);
      if (tag == delimited(2)) return nested([this] { return feature(); });
      return skip(tag);
    });
    if (!good) return false;
    auto& f = place(key);
    f.type = value_.type, f.first = value_.first, f.count = value_.count;
    return true;
  }

  /// The feature with this name; it is added if there is none. A linear search over many features would take
  /// quadratic time.
  example::entry& place(std::string_view key) {
    auto& features = into_.features_;
    if (features.size() < 64) {
      auto const* const earlier = into_.find(key);
      return earlier ? features[std::size_t(earlier - features.data())] : into_.add(key);
    }
    if (known_.empty())
      for (std::size_t i = 0; i < features.size(); ++i) known_.emplace(into_.name(i), i);
    auto const [it, fresh] = known_.try_emplace(std::string(key), features.size());
    return fresh ? into_.add(key) : features[it->second];
  }

  bool feature() {
    return fields([this](std::uint32_t tag) {
      switch (tag) {
        case delimited(1):
          return list(example::kind::strings, into_.slices_.size(), [this](auto t) { return bytes(t); });
        case delimited(2):
          return list(example::kind::floats, into_.floats_.size(), [this](auto t) { return floats(t); });
        case delimited(3):
          return list(example::kind::integers, into_.integers_.size(),
                      [this](auto t) { return integers(t); });
        default:
          return skip(tag);
      }
    });
  }

  /// Appends to what the same feature has so far; a list of another kind replaces it.
  template <class Field>
  bool list(example::kind what, std::size_t end, Field&& field) {
    if (value_.type != what) {
      value_.type = what;
      value_.first = end;
      value_.count = 0;
    }
    return nested([&] { return fields(field); });
  }

  bool bytes(std::uint32_t tag) {
    if (tag != delimited(1)) return skip(tag);
    std::string_view value;
    if (!text(value)) return false;
    into_.slices_.push_back({into_.text_.size(), value.size()});
    into_.text_.append(value);
    ++value_.count;
    return true;
  }

  bool floats(std::uint32_t tag) {
    static_assert(std::endian::native == std::endian::little);
    int size = 4;
    if (tag != fixed32(1) && tag != delimited(1)) return skip(tag);
    if (tag == delimited(1) && !length(size)) return false;
    if (size % 4 != 0 || size > in_.BytesUntilLimit()) return false;
    auto const count = std::size_t(size) / 4, before = into_.floats_.size();
    into_.floats_.resize(before + count);
    value_.count += count;
    return in_.ReadRaw(into_.floats_.data() + before, size);
  }

  bool integers(std::uint32_t tag) {
    auto const one = [this] {
      std::uint64_t value = 0;
      if (!in_.ReadVarint64(&value)) return false;
      into_.integers_.push_back(std::int64_t(value));
      ++value_.count;
      return true;
    };
    if (tag == varint(1)) return one();
    if (tag != delimited(1)) return skip(tag);
    return nested([&] {
      while (in_.BytesUntilLimit() > 0)
        if (!one()) return false;
      return true;
    });
  }

  example& into_;
  std::string_view whole_;
  google::protobuf::io::CodedInputStream in_;
  example::entry value_;
  std::unordered_map<std::string, std::size_t> known_;  // name → feature; empty while there are few
};

EDL_INLINE void example::parse(std::string_view serialised) {
  clear();
  if (serialised.size() > std::size_t(std::numeric_limits<int>::max()))
    throw data_error(
        fmt::format("a tf.train.Example of {} bytes is more than the format allows", serialised.size()));
  example_parser parser{*this, serialised};
  if (parser.record()) return add_floats();
  clear();
  throw data_error(fmt::format("is not a tf.train.Example: malformed at byte {} of {}", parser.position(),
                               serialised.size()));
}

EDL_INLINE example_builder::example_builder(example& into) : into_(into) { into_.clear(); }

EDL_INLINE example::entry& example_builder::add(std::string_view name, example::kind what, std::size_t first,
                                                std::size_t count) {
  if (into_.find(name)) throw error(fmt::format("feature '{}' is put into a record twice", name));
  auto& f = into_.add(name);
  f.type = what;
  f.first = first;
  f.count = count;
  return f;
}

EDL_INLINE std::span<float> example_builder::floats(std::string_view name, std::size_t count) {
  auto const first = into_.floats_.size();
  add(name, example::kind::floats, first, count);
  into_.floats_.resize(first + count);
  return {into_.floats_.data() + first, count};
}

EDL_INLINE std::span<std::int64_t> example_builder::integers(std::string_view name, std::size_t count) {
  auto const first = into_.integers_.size();
  add(name, example::kind::integers, first, count);
  into_.integers_.resize(first + count);
  return {into_.integers_.data() + first, count};
}

EDL_INLINE void example_builder::floats(std::string_view name, view<float> values) {
  std::copy(values.begin(), values.end(), floats(name, values.size()).begin());
}

EDL_INLINE void example_builder::integers(std::string_view name, view<std::int64_t> values) {
  std::copy(values.begin(), values.end(), integers(name, values.size()).begin());
}

EDL_INLINE void example_builder::bytes(std::string_view name, std::string_view value) {
  bytes(name, std::span<std::string_view const>(&value, 1));
}

EDL_INLINE void example_builder::bytes(std::string_view name, std::span<std::string_view const> values) {
  add(name, example::kind::strings, into_.slices_.size(), values.size());
  for (auto const value : values) {
    into_.slices_.push_back({into_.text_.size(), value.size()});
    into_.text_.append(value);
  }
}

EDL_INLINE void example_builder::extents(view<std::size_t> of) {
  into_.features_.back().first_extent = into_.extents_.size();
  into_.features_.back().rank = of.size();
  into_.extents_.insert(into_.extents_.end(), of.begin(), of.end());
}

EDL_INLINE void example_builder::also(view<std::int64_t> values) {
  into_.features_.back().as_integers = into_.integers_.size();
  into_.integers_.insert(into_.integers_.end(), values.begin(), values.end());
}

EDL_INLINE void example_builder::also(float value) {
  into_.features_.back().as_floats = into_.floats_.size();
  into_.floats_.push_back(value);
}

namespace data::detail {

constexpr std::size_t varint_size(std::uint64_t value) {
  return std::size_t(std::bit_width(value | 1) + 6) / 7;
}

inline void put_varint(std::uint64_t value, std::string& into) {
  for (; value >= 0x80; value >>= 7) into.push_back(char(value | 0x80));
  into.push_back(char(value));
}

constexpr std::size_t delimited_size(std::size_t size) { return 1 + varint_size(size) + size; }

inline void put_delimited(std::uint32_t field, std::size_t size, std::string& into) {
  into.push_back(char(field << 3 | 2));
  put_varint(size, into);
}

}  // namespace data::detail

EDL_INLINE void encode(example const& record, std::string& into) {
  using kind = example::kind;
  into.clear();
  std::vector<std::size_t> order(record.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return record.name(a) < record.name(b); });

  // Sizes of each feature's values, list, Feature and map entry, from the inside out.
  struct sizes {
    std::size_t values, list, feature, entry;
  };
  auto const measure = [&](std::size_t i) {
    auto const name = record.name(i);
    sizes s{};
    switch (record.kind_of(i)) {
      case kind::none:
        break;
      case kind::floats:
        s.values = record.count(name) * 4;
        break;
      case kind::integers:
        for (auto const v : record.integer_values(name))
          s.values += data::detail::varint_size(std::uint64_t(v));
        break;
      case kind::strings:
        for (std::size_t n = 0; n < record.count(name); ++n)
          s.list += data::detail::delimited_size(record.bytes(name, n).size());
    }
    if (s.values > 0) s.list = data::detail::delimited_size(s.values);
    if (record.kind_of(i) != kind::none) s.feature = data::detail::delimited_size(s.list);
    s.entry = data::detail::delimited_size(name.size()) + data::detail::delimited_size(s.feature);
    return s;
  };

  std::size_t features = 0;
  for (auto const i : order) features += data::detail::delimited_size(measure(i).entry);
  data::detail::put_delimited(1, features, into);
  for (auto const i : order) {
    auto const name = record.name(i);
    auto const s = measure(i);
    data::detail::put_delimited(1, s.entry, into);
    data::detail::put_delimited(1, name.size(), into);
    into.append(name);
    data::detail::put_delimited(2, s.feature, into);
    if (record.kind_of(i) != kind::none)
      data::detail::put_delimited(std::uint32_t(record.kind_of(i)), s.list, into);
    if (s.values > 0) data::detail::put_delimited(1, s.values, into);
    if (record.kind_of(i) == kind::floats) {
      auto const values = record.float_values(name);
      into.append(reinterpret_cast<char const*>(values.data()), values.size_bytes());
    } else if (record.kind_of(i) == kind::integers) {
      for (auto const v : record.integer_values(name)) data::detail::put_varint(std::uint64_t(v), into);
    } else if (record.kind_of(i) == kind::strings) {
      for (std::size_t n = 0; n < record.count(name); ++n) {
        data::detail::put_delimited(1, record.bytes(name, n).size(), into);
        into.append(record.bytes(name, n));
      }
    }
  }
}

}  // namespace edl
