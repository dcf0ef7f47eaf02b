// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace edl {

/// Totals of training over minibatches: the difference of two gives the mean loss between them.
struct trained {
  double loss = 0;  ///< the sum of the minibatches' losses
  std::uint64_t minibatches = 0, records = 0;
  std::uint64_t words = 0, unknown = 0;  ///< words that `feed` looked up; those in no vocabulary

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
