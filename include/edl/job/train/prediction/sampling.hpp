// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "edl/core/span.hpp"

namespace edl {

/// How the next id of a text is chosen from the probabilities that a model gives.
struct sampling_options {
  float temperature = 1;         ///< above 1: more varied texts; 0: always the likeliest id
  int top_k = 0;                 ///< only so many of the likeliest ids; 0: all
  float top_p = 1;               ///< only the likeliest ids that together have this probability
  float min_p = 0;               ///< only ids with at least this share of the likeliest one's probability
  float repetition_penalty = 1;  ///< above 1: less of ids that the text already has
  std::uint64_t seed = 1;        ///< the same seed makes the same choices

  /// Throws usage_error, which names the option, unless all are in range.
  void check() const;
};

namespace train {

/// Chooses ids. The order is that of the field's other programs: the penalty (Keskar et al., "CTRL", 2019: a
/// number above 0 is divided by it, another one multiplied), temperature, top_k, top_p (Holtzman et al., "The
/// curious case of neural text degeneration", 2020), min_p. Thread safety: distinct objects: safe. Shared
/// objects: unsafe.
class sampler {
 public:
  /// `numbers`: a model's output, one number for each id. `earlier`: the text so far. `draw`: in [0, 1).
  /// Throws error if a number is not finite. Of equally likely ids the lower one comes first.
  std::int32_t operator()(view<float> numbers, std::span<std::int32_t const> earlier,
                          sampling_options const& by, float draw);

 private:
  struct candidate {
    float weight;
    std::int32_t id;
  };
  std::vector<candidate> all_;
  std::vector<bool> seen_;
};

}  // namespace train
}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/prediction/sampling.ipp"
#endif
