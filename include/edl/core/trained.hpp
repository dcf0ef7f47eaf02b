// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace edl {

/// What has been trained, added up over minibatches: the mean loss between two looks follows from both.
struct trained {
  double loss = 0;  ///< the sum of the minibatches' losses
  std::uint64_t minibatches = 0, records = 0;
  std::uint64_t words = 0, unknown = 0;  ///< that `feed` looked up for them; those that no vocabulary has

  trained& operator+=(trained const& more) {
    loss += more.loss, minibatches += more.minibatches, records += more.records;
    words += more.words, unknown += more.unknown;
    return *this;
  }
  friend trained operator-(trained const& a, trained const& b) {
    return {a.loss - b.loss, a.minibatches - b.minibatches, a.records - b.records, a.words - b.words,
            a.unknown - b.unknown};
  }
};

}  // namespace edl
