// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "edl/compute/data/reader.hpp"
#include "edl/compute/data/synthetic.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

/// One drawn record of a click log.
struct click {
  std::array<std::int64_t, 13> counts{};
  std::array<std::uint32_t, 26> ids{};  ///< of each column
  double probability = 0;               ///< of a click: a perfect model's prediction
  bool clicked = false;
};

/// Draws record `index` of the set. Ids are log-uniform: a few are frequent, and columns have 10 to 10,000 of
/// them. The logit of the probability has a weight for each id, and a part for two of the counts. It also has
/// products of short vectors of the columns 1 and 2, 3 and 4, 5 and 6. The weights are the same for all
/// seeds.
click draw_click(std::uint64_t seed, std::uint64_t index);

/// Click logs with a known signal, for where Criteo's are not at hand. Features are those of its files:
/// `label`, `i1` to `i13`, and `c1` to `c26`. Record i is a pure function of (seed, i).
class synthetic_clicks : public source {
 public:
  explicit synthetic_clicks(synthetic_options const& options);

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;

 private:
  synthetic_options options_;
  std::vector<shard> shards_;
};

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/synthetic_clicks.ipp"
#endif
