// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "edl/compute/data/format/example_builder.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl {

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

  // Sizes of each feature's values, list, Feature and map entry, inside out.
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
