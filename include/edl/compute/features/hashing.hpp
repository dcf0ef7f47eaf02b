// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

namespace edl::features {

/// FarmHash's Fingerprint64 of some bytes, which never changes (github.com/google/farmhash). TensorFlow's
/// `to_hash_bucket_fast` uses it, too.
std::uint64_t fingerprint(std::string_view bytes);

/// The bucket of a text or a whole number, by the fingerprint of the text or of the decimal digits. Throws
/// usage_error if there are no buckets.
struct hashing {
  std::int64_t buckets = 1;

  std::int64_t operator()(std::string_view text) const;
  std::int64_t operator()(std::int64_t number) const;
  constexpr std::int64_t size() const { return buckets; }
};

/// The bucket of several values together: a cross of columns, for the wide part of a network. Joins values
/// with `_X_`, as TensorFlow's `sparse.cross` does.
struct crossing {
  std::int64_t buckets = 1;

  std::int64_t operator()(std::initializer_list<std::string_view> values) const;
  std::int64_t operator()(std::span<std::string_view const> values) const;
  constexpr std::int64_t size() const { return buckets; }
};

}  // namespace edl::features

#ifdef EDL_HEADER_ONLY
#include "edl/compute/features/hashing.ipp"
#endif
