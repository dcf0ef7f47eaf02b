// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "edl/compute/device/device.hpp"
#include "edl/compute/device/geometry.hpp"
#include "edl/core/span.hpp"

namespace edl::train {

struct decoder_options {
  std::shared_ptr<backend> on;      ///< computes
  int rows = 1;                     ///< most rows of a pass
  int sequences = 1;                ///< most sequences at once
  std::span<float> variables = {};  ///< of the trained model, which must outlive the decoder
  view<float> frozen = {};          ///< likewise, its frozen ones
};

/// A trained model that says which id comes next, as the code that generates sees it. Thread safety: distinct
/// objects: safe. Shared objects: unsafe.
class decoder {
 public:
  decoder(decoder const&) = delete;
  virtual ~decoder() = default;

  int vocabulary() const { return vocabulary_; }
  int places() const { return places_; }          ///< most of a sequence
  std::size_t cached() const { return cached_; }  ///< bytes of keys and values that it keeps

  /// For each row, a number for each id of the vocabulary: the logarithm of its probability to be the next
  /// one, but for a constant. (rows, vocabulary), valid until the next pass. Rows of a sequence ascend in
  /// place; all earlier places were in earlier passes. Throws error for a row that is out of range.
  virtual view<float> decode(std::span<std::int32_t const> ids, std::span<sequence_place const> rows) = 0;

 protected:
  decoder(int vocabulary, int places, std::size_t cached)
      : vocabulary_(vocabulary), places_(places), cached_(cached) {}

 private:
  int vocabulary_, places_;
  std::size_t cached_;
};

}  // namespace edl::train
