// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <farmhash.h>
#include <fmt/format.h>

#include "edl/compute/features/hashing.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::features {

EDL_INLINE std::uint64_t fingerprint(std::string_view bytes) {
  return util::Fingerprint64(bytes.data(), bytes.size());
}

EDL_INLINE std::int64_t hashing::operator()(std::string_view text) const {
  if (buckets < 1) throw usage_error(fmt::format("hashing into {} buckets: at least one is needed", buckets));
  return std::int64_t(fingerprint(text) % std::uint64_t(buckets));
}

EDL_INLINE std::int64_t hashing::operator()(std::int64_t number) const {
  fmt::format_int const digits(number);
  return (*this)(std::string_view(digits.data(), digits.size()));
}

EDL_INLINE std::int64_t crossing::operator()(std::initializer_list<std::string_view> values) const {
  return (*this)(std::span(values.begin(), values.size()));
}

EDL_INLINE std::int64_t crossing::operator()(std::span<std::string_view const> values) const {
  return hashing{buckets}(fmt::format("{}", fmt::join(values, "_X_")));
}

}  // namespace edl::features
