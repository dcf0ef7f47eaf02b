// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "edl/compute/data/format/example_builder.hpp"
#include "edl/core/bfloat16.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/job/http/message.hpp"
#include "edl/job/serve/tensor.hpp"

namespace edl::serve {
namespace detail {

inline http::failure bad(std::string const& what) { return {400, what}; }

inline http::failure beyond(std::string const& name, std::uint64_t value) {
  return bad(fmt::format("input '{}' has {}, which does not fit 64 bits with a sign", name, value));
}

/// Brain floating point, 16 bits.
struct bfloat16 {
  std::uint16_t bits;
  explicit operator float() const { return from_bfloat16(bits); }
};

template <class T>
void append_values(tensor& to, std::string_view bytes, std::size_t count) {
  if (bytes.size() / sizeof(T) != count || bytes.size() % sizeof(T) != 0)
    throw bad(fmt::format("input '{}' has {} bytes, and its shape wants {} values of {}", to.name,
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
      to.floats.push_back(float(value));
    else if constexpr (std::is_integral_v<T>)
      to.integers.push_back(std::in_range<std::int64_t>(value) ? std::int64_t(value)
                                                               : throw beyond(to.name, std::uint64_t(value)));
    else
      throw bad(fmt::format("input '{}' is of whole numbers", to.name));
  }
}

inline void append_texts(tensor& to, std::string_view bytes, std::size_t count) {
  if (to.kind != example::kind::strings)
    throw bad(fmt::format("input '{}' is of numbers, and not BYTES", to.name));
  while (!bytes.empty()) {
    std::uint32_t size = 0;
    if (bytes.size() >= sizeof size) std::memcpy(&size, bytes.data(), sizeof size);
    if (bytes.size() < sizeof size || size > bytes.size() - sizeof size)
      throw bad(fmt::format("input '{}' is cut off", to.name));
    to.strings.emplace_back(bytes.substr(sizeof size, size));
    bytes.remove_prefix(sizeof size + size);
  }
  if (to.strings.size() != count)
    throw bad(
        fmt::format("input '{}' has {} texts, and its shape wants {}", to.name, to.strings.size(), count));
}

/// {"b64": "aGk="}, as TensorFlow Serving's clients write bytes.
inline std::string bytes_of(nlohmann::json const& value, std::string const& of) {
  auto const text = value.find("b64");
  if (value.size() != 1 || text == value.end() || !text->is_string())
    throw bad(fmt::format("input '{}' is of texts, or of bytes as {{\"b64\": …}}", of));
  auto const& coded = text->get_ref<std::string const&>();
  std::string bytes(coded.size() / 4 * 3, '\0');
  auto const end = coded.find_last_not_of('=') + 1;
  bool const good =
      coded.size() % 4 == 0 && coded.size() - end <= 2 && coded.size() < std::size_t(1) << 31 &&
      coded.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") >= end;
  if (!good || EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                               reinterpret_cast<unsigned char const*>(coded.data()), int(coded.size())) < 0)
    throw bad(fmt::format("input '{}' has a \"b64\" that is no Base64", of));
  bytes.resize(bytes.size() - (coded.size() - end));
  return bytes;
}

}  // namespace detail

EDL_INLINE std::size_t tensor::size() const {
  return kind == example::kind::floats     ? floats.size() + float_bytes.size() / sizeof(float)
         : kind == example::kind::integers ? integers.size()
                                           : strings.size();
}

EDL_INLINE void tensor::append(nlohmann::json const& values, int depth) {
  if (values.is_array()) {
    if (depth == 8) throw detail::bad(fmt::format("input '{}' has lists within more than 8", name));
    for (auto const& one : values) append(one, depth + 1);
  } else if (kind == example::kind::strings && values.is_object()) {
    strings.push_back(detail::bytes_of(values, name));
  } else if (kind == example::kind::strings) {
    if (!values.is_string()) throw detail::bad(fmt::format("input '{}' is of texts", name));
    strings.push_back(values.get<std::string>());
  } else if (kind == example::kind::integers) {
    if (!values.is_number_integer() && !values.is_boolean())
      throw detail::bad(fmt::format("input '{}' is of whole numbers", name));
    if (values.is_number_unsigned() && !std::in_range<std::int64_t>(values.get<std::uint64_t>()))
      throw detail::beyond(name, values.get<std::uint64_t>());
    integers.push_back(values.is_boolean() ? values.get<bool>() : values.get<std::int64_t>());
  } else {
    if (!values.is_number() && !values.is_boolean())
      throw detail::bad(fmt::format("input '{}' is of numbers", name));
    floats.push_back(values.is_boolean() ? float(values.get<bool>()) : values.get<float>());
  }
}

EDL_INLINE void tensor::append(std::string_view datatype, std::string_view bytes, std::size_t count) {
  using namespace detail;
  if (datatype == "BYTES") return append_texts(*this, bytes, count);
  if (kind == example::kind::strings)
    throw bad(fmt::format("input '{}' is of BYTES, and not {}", name, printable(datatype)));
  if (datatype == "FP32") return append_values<float>(*this, bytes, count);
  if (datatype == "FP64") return append_values<double>(*this, bytes, count);
  if (datatype == "FP16") return append_values<_Float16>(*this, bytes, count);
  if (datatype == "BF16") return append_values<bfloat16>(*this, bytes, count);
  if (datatype == "INT64") return append_values<std::int64_t>(*this, bytes, count);
  if (datatype == "INT32") return append_values<std::int32_t>(*this, bytes, count);
  if (datatype == "INT16") return append_values<std::int16_t>(*this, bytes, count);
  if (datatype == "INT8") return append_values<std::int8_t>(*this, bytes, count);
  if (datatype == "UINT64") return append_values<std::uint64_t>(*this, bytes, count);
  if (datatype == "UINT32") return append_values<std::uint32_t>(*this, bytes, count);
  if (datatype == "UINT16") return append_values<std::uint16_t>(*this, bytes, count);
  if (datatype == "UINT8" || datatype == "BOOL") return append_values<std::uint8_t>(*this, bytes, count);
  throw bad(
      fmt::format("input '{}' has the datatype '{}', which is not taken: FP16, FP32, FP64, BF16, INT8 to "
                  "INT64, UINT8 to UINT64, BOOL, BYTES",
                  name, printable(datatype)));
}

EDL_INLINE tensor tensor_for(std::string const& name, std::span<record_feature const> inputs) {
  std::string all;
  for (record_feature const& f : inputs) {
    if (f.name == name) return {name, f.kind == example::kind::none ? example::kind::floats : f.kind};
    all += (all.empty() ? "" : ", ") + f.name;
  }
  throw detail::bad(fmt::format("the model takes no input '{}'; it takes {}", printable(name), all));
}

EDL_INLINE void check_shares(std::span<tensor const> inputs, std::size_t rows) {
  for (tensor const& t : inputs)
    if (rows == 0 || t.size() % rows != 0)
      throw detail::bad(
          fmt::format("input '{}' has {} values, which {} records cannot share", t.name, t.size(), rows));
}

EDL_INLINE void to_record(std::span<tensor const> inputs, std::size_t rows, std::size_t row, example& into) {
  example_builder to(into);
  for (tensor const& t : inputs) {
    std::size_t const n = t.size() / rows, first = row * n;
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
  }
}

}  // namespace edl::serve
