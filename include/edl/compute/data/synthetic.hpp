// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

struct synthetic_options {
  std::uint64_t records = 60'000;
  std::uint64_t seed = 0;  ///< sets of different seeds are unrelated
  std::uint64_t records_per_shard = 10'000;
  bool pictures = false;  ///< coloured ones, with CIFAR-10's size
};

/// Digits drawn by a counter-based generator, for use without MNIST's files. They are strokes of the ten
/// digits, bent, rotated, scaled, shifted, of varying thickness, with noise. Features as in MNIST: `image`
/// (784 floats 0 to 255), `label` (one integer). As pictures they have 32 × 32 × 3 values, channels last, as
/// CIFAR-10's. Record i is a pure function of (seed, i).
class synthetic_source : public source {
 public:
  explicit synthetic_source(synthetic_options const& options = {});

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;

 private:
  synthetic_options options_;
  std::vector<shard> shards_;
};

/// Draws image `index` of the set and returns its label. `image` has 784 pixels, 28 rows of 28.
int draw_digit(std::uint64_t seed, std::uint64_t index, std::span<float> image);

/// The same digit in colour, on a gradient of two other colours. `picture` has 32 rows of 32 pixels of
/// 3.
int draw_picture(std::uint64_t seed, std::uint64_t index, std::span<float> picture);

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/synthetic.ipp"
#endif
