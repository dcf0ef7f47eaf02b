// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "edl/base/http/message.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/core/bfloat16.hpp"
#include "edl/core/float16.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/job/serve/tensor.hpp"

namespace edl::serve {
namespace detail {

inline http::failure bad(std::string const& what) { return {400, what}; }

inline http::failure beyond(std::string const& name, std::uint64_t value) {
  return bad(fmt::format("input '{}' has {}, which does not fit 64 bits with a sign", name, value));
}

/// Brain floating point, 16 bits: the upper half of a float32.
struct bfloat16 {
  std::uint16_t bits;
  explicit operator float() const { return from_bfloat16(bits); }
};

/// The 16 bits of IEEE 754, for which GCC 12 has no type on ARM.
struct float16 {
  std::uint16_t bits;
  explicit operator float() const { return from_float16(bits); }
};

/// Throws if a number does not fit into float32, which records use.
template <class T>
float as_float(std::string const& name, T value) {
  auto const made = float(value);
  if constexpr (std::is_same_v<T, double>)
    if (std::isinf(made) && !std::isinf(value))
      throw bad(fmt::format("input '{}' has {}, which float32 cannot hold", name, value));
  return made;
}

template <class T>
void append_values(tensor& to, std::string_view bytes, std::size_t count) {
  if (bytes.size() / sizeof(T) != count || bytes.size() % sizeof(T) != 0)
    throw bad(fmt::format("input '{}' has {} bytes, but its shape needs {} values of {}", to.name,
                          bytes.size(), count, sizeof(T)));
  if constexpr (std::is_same_v<T, float>)
    if (to.kind == example::kind::floats && to.size() == 0) {
      to.float_bytes = bytes;
      return;
    }
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    if (to.kind == example::kind::floats)
      to.floats.push_back(as_float(to.name, value));
    else if constexpr (std::is_integral_v<T>)
      to.integers.push_back(std::in_range<std::int64_t>(value) ? std::int64_t(value)
                                                               : throw beyond(to.name, std::uint64_t(value)));
    else
      throw bad(fmt::format("input '{}' takes whole numbers", to.name));
  }
}

inline void append_texts(tensor& to, std::string_view bytes, std::size_t count) {
  if (to.kind != example::kind::strings)
    throw bad(fmt::format("input '{}' takes numbers, not BYTES", to.name));
  while (!bytes.empty()) {
    std::uint32_t size = 0;
    if (bytes.size() >= sizeof size) std::memcpy(&size, bytes.data(), sizeof size);
    if (bytes.size() < sizeof size || size > bytes.size() - sizeof size)
      throw bad(fmt::format(
          "input '{}' is truncated in string {}: 4 bytes with its length, little-endian, precede each one",
          to.name, to.strings.size()));
    to.strings.emplace_back(bytes.substr(sizeof size, size));
    bytes.remove_prefix(sizeof size + size);
  }
  if (to.strings.size() != count)
    throw bad(
        fmt::format("input '{}' has {} strings, but its shape needs {}", to.name, to.strings.size(), count));
}

/// Decodes {"b64": "aGk="}, the form in which TensorFlow Serving's clients write bytes.
inline std::string bytes_of(nlohmann::json const& value, std::string const& of) {
  auto const text = value.find("b64");
  if (value.size() != 1 || text == value.end() || !text->is_string())
    throw bad(fmt::format("input '{}' takes strings, or bytes as {{\"b64\": …}}", of));
  auto const& coded = text->get_ref<std::string const&>();
  std::string bytes(coded.size() / 4 * 3, '\0');
  auto const end = coded.find_last_not_of('=') + 1;
  bool const good =
      coded.size() % 4 == 0 && coded.size() - end <= 2 && coded.size() < std::size_t(1) << 31 &&
      coded.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") >= end;
  if (!good || EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                               reinterpret_cast<unsigned char const*>(coded.data()), int(coded.size())) < 0)
    throw bad(fmt::format("input '{}' has a \"b64\" that is not Base64", of));
  bytes.resize(bytes.size() - (coded.size() - end));
  return bytes;
}

}  // namespace detail

EDL_INLINE std::size_t tensor::size() const {
  return kind == example::kind::floats     ? floats.size() + float_bytes.size() / sizeof(float)
         : kind == example::kind::integers ? integers.size()
                                           : strings.size();
}

namespace detail {

/// Appends one value of JSON. Texts may be `true` and `false`, the words that a table has for them.
inline void append_value(tensor& to, nlohmann::json const& value) {
  using enum example::kind;
  auto const other = [&](char const* wanted) {
    std::string const where = to.starts.empty() ? fmt::format("value {}", to.size())
                                                : fmt::format("instance {}", to.starts.size() - 1);
    return bad(fmt::format("input '{}' takes {}, and {} has {}: send null where a record lacks it", to.name,
                           wanted, where, printable(value.dump(), 64)));
  };
  if (value.is_null()) {
    to.nulls.push_back(to.size());
    if (to.kind == strings) to.strings.emplace_back();
    if (to.kind == integers) to.integers.push_back(0);
    if (to.kind == floats) to.floats.push_back(std::numeric_limits<float>::quiet_NaN());
  } else if (to.kind == strings && value.is_object()) {
    to.strings.push_back(bytes_of(value, to.name));
  } else if (to.kind == strings) {
    if (!value.is_string() && !value.is_boolean()) throw other("strings");
    to.strings.push_back(value.is_string() ? value.get<std::string>() : value.dump());
  } else if (to.kind == integers) {
    if (!value.is_number_integer() && !value.is_boolean()) throw other("whole numbers");
    if (value.is_number_unsigned() && !std::in_range<std::int64_t>(value.get<std::uint64_t>()))
      throw beyond(to.name, value.get<std::uint64_t>());
    to.integers.push_back(value.is_boolean() ? value.get<bool>() : value.get<std::int64_t>());
  } else {
    if (!value.is_number() && !value.is_boolean()) throw other("numbers");
    to.floats.push_back(value.is_boolean() ? float(value.get<bool>())
                                           : as_float(to.name, value.get<double>()));
  }
}

/// Appends nested lists and determines their extents. All lists at one depth must have the same length.
class nested_values {
 public:
  explicit nested_values(tensor& to) : to_(to) {}

  void append(nlohmann::json const& values, std::size_t depth = 0) {
    if (!values.is_array()) {
      if (extents.size() != depth) refuse("values and lists side by side");
      leaves_ = true;
      return append_value(to_, values);
    }
    if (depth == 8) refuse("lists nested more than 8 deep");
    if (depth == extents.size()) {
      if (leaves_) refuse("values and lists side by side");
      extents.push_back(values.size());
    } else if (extents[depth] != values.size()) {
      refuse(fmt::format("lists of {} and of {} values side by side", extents[depth], values.size()));
    }
    for (auto const& one : values) append(one, depth + 1);
  }

  std::vector<std::size_t> extents{};

 private:
  [[noreturn]] void refuse(std::string const& what) const {
    throw bad(fmt::format("input '{}' has {}", to_.name, what));
  }

  tensor& to_;
  bool leaves_ = false;
};

inline void resize(tensor& t, std::size_t size) {
  if (t.kind == example::kind::floats) t.floats.resize(size);
  if (t.kind == example::kind::integers) t.integers.resize(size);
  if (t.kind == example::kind::strings) t.strings.resize(size);
}

inline std::size_t values_in(std::vector<std::size_t> const& extents) {
  std::size_t n = 1;
  for (std::size_t const e : extents) n *= e;
  return n;
}

}  // namespace detail

EDL_INLINE std::vector<std::size_t> tensor::append(nlohmann::json const& values) {
  detail::nested_values all(*this);
  all.append(values);
  return std::move(all.extents);
}

EDL_INLINE void tensor::append_none() {
  if (starts.empty()) starts.push_back(0);
  starts.push_back(starts.back());
  absent.push_back(true);
}

EDL_INLINE void tensor::append_record(nlohmann::json const& values) {
  if (starts.empty()) starts.push_back(0);
  std::size_t const before = size(), row = starts.size() - 1;
  nulls.clear();
  auto const shape = append(values);
  std::size_t const n = size() - before;
  if (nulls.size() == n) {
    detail::resize(*this, before);
    append_none();
    absent.back() = !nulls.empty();  // otherwise it is an empty list
    return;
  }
  if (!nulls.empty())
    throw detail::bad(
        fmt::format("instance {} has null for {} of {} values of input '{}': a record has all of "
                    "them, or lacks the feature",
                    row, nulls.size(), n, name));
  if (before == 0)
    extents = shape;
  else if (detail::values_in(shape) != detail::values_in(extents))
    throw detail::bad(
        fmt::format("instance {} has another number of values of input '{}' than the first: {} instead of {}",
                    row, name, n, detail::values_in(extents)));
  else if (shape != extents)
    throw detail::bad(
        fmt::format("instance {} has another shape of input '{}' than the first: {} instead of {}", row, name,
                    shown_extents(shape), shown_extents(extents)));
  starts.push_back(size());
  absent.push_back(false);
}

EDL_INLINE void tensor::append(std::string_view datatype, std::string_view bytes, std::size_t count) {
  using namespace detail;
  if (datatype == "BYTES") return append_texts(*this, bytes, count);
  if (kind == example::kind::strings)
    throw bad(fmt::format("input '{}' takes BYTES, not {}", name, printable(datatype)));
  if (datatype == "FP32") return append_values<float>(*this, bytes, count);
  if (datatype == "FP64") return append_values<double>(*this, bytes, count);
  if (datatype == "FP16") return append_values<float16>(*this, bytes, count);
  if (datatype == "BF16") return append_values<bfloat16>(*this, bytes, count);
  if (datatype == "INT64") return append_values<std::int64_t>(*this, bytes, count);
  if (datatype == "INT32") return append_values<std::int32_t>(*this, bytes, count);
  if (datatype == "INT16") return append_values<std::int16_t>(*this, bytes, count);
  if (datatype == "INT8") return append_values<std::int8_t>(*this, bytes, count);
  if (datatype == "UINT64") return append_values<std::uint64_t>(*this, bytes, count);
  if (datatype == "UINT32") return append_values<std::uint32_t>(*this, bytes, count);
  if (datatype == "UINT16") return append_values<std::uint16_t>(*this, bytes, count);
  if (datatype == "BOOL" && std::ranges::any_of(bytes, [](char c) { return c != 0 && c != 1; }))
    throw bad(fmt::format("input '{}' has a byte that is neither 0 nor 1, and so not a BOOL", name));
  if (datatype == "UINT8" || datatype == "BOOL") return append_values<std::uint8_t>(*this, bytes, count);
  throw bad(
      fmt::format("input '{}' has the unsupported datatype '{}'; supported are FP16, FP32, FP64, BF16, INT8 "
                  "to INT64, UINT8 to UINT64, BOOL, BYTES",
                  name, printable(datatype)));
}

EDL_INLINE tensor tensor_for(std::string const& name, std::span<record_feature const> inputs,
                             example::kind otherwise) {
  for (record_feature const& f : inputs) {
    if (f.name == name) {
      tensor t{name, f.kind == example::kind::none ? example::kind::floats : f.kind};
      t.may_be_empty = may_be_empty(f);
      return t;
    }
  }
  return {name, otherwise};
}

EDL_INLINE void check_names(std::span<tensor const> given, std::span<record_feature const> inputs) {
  std::vector<std::string_view> names;
  for (tensor const& t : given) names.emplace_back(t.name);
  if (std::string const stray = stray_feature(names, inputs); !stray.empty()) throw detail::bad(stray);
}

EDL_INLINE void share_out(std::span<tensor> inputs, std::size_t rows) {
  for (tensor& t : inputs) {
    if (!t.starts.empty()) continue;
    if (rows == 0 || t.size() % rows != 0)
      throw detail::bad(fmt::format("input '{}' has {} values, which cannot be divided among {} records",
                                    t.name, t.size(), rows));
    if (t.nulls.empty()) continue;
    std::size_t const each = t.size() / rows;
    std::vector<std::size_t> missing(rows);
    for (std::size_t const at : t.nulls) ++missing[at / each];
    auto const part = std::ranges::find_if(missing, [&](std::size_t n) { return n != 0 && n != each; });
    if (part != missing.end())
      throw detail::bad(
          fmt::format("record {} has null for {} of {} values of input '{}': a record has all of "
                      "them, or lacks the feature",
                      part - missing.begin(), *part, each, t.name));
    auto const keep = [&](auto& values) {
      std::size_t at = 0;
      std::erase_if(values, [&](auto const&) { return missing[at++ / each] > 0; });
    };
    keep(t.floats), keep(t.integers), keep(t.strings);
    t.starts.push_back(0);
    for (std::size_t const n : missing) {
      t.starts.push_back(t.starts.back() + (n > 0 ? 0 : each));
      t.absent.push_back(n > 0);
    }
  }
}

EDL_INLINE void to_record(std::span<tensor const> inputs, std::size_t rows, std::size_t row, example& into) {
  example_builder to(into);
  for (tensor const& t : inputs) {
    bool const alike = t.starts.empty();
    std::size_t const first = alike ? row * (t.size() / rows) : t.starts[row],
                      n = alike ? t.size() / rows : t.starts[row + 1] - first;
    auto const number = [&](std::size_t i) {
      if (t.float_bytes.empty()) return t.floats[first + i];
      float x;
      std::memcpy(&x, t.float_bytes.data() + (first + i) * sizeof x, sizeof x);
      return x;
    };
    std::size_t none = 0;
    if (t.kind == example::kind::floats)
      while (none < n && std::isnan(number(none))) ++none;
    bool const absent = !t.absent.empty() && t.absent[row];
    if (absent || (n > 0 && none == n) || (n == 0 && !t.may_be_empty)) continue;  // the record lacks it
    if (!t.float_bytes.empty()) {
      std::memcpy(to.floats(t.name, n).data(), t.float_bytes.data() + first * sizeof(float),
                  n * sizeof(float));
    } else if (t.kind == example::kind::floats) {
      to.floats(t.name, view<float>(t.floats).subspan(first, n));
    } else if (t.kind == example::kind::integers) {
      to.integers(t.name, view<std::int64_t>(t.integers).subspan(first, n));
    } else {
      auto const from = t.strings.begin() + std::ptrdiff_t(first);
      to.bytes(t.name, std::vector<std::string_view>(from, from + std::ptrdiff_t(n)));
    }
    if (t.extents.size() > 1) to.extents(t.extents);
  }
}

}  // namespace edl::serve
