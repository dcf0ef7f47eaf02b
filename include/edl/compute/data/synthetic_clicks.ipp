// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "edl/compute/data/file.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/synthetic_clicks.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/random.hpp"

namespace edl::data {
namespace detail {

inline constexpr std::uint64_t click_truth = 0x636c69636b73;  // the key of weights and vectors

class click_reader final : public reader {
 public:
  click_reader(synthetic_options const& o, std::vector<shard> const& shards) : options_(o), shards_(shards) {}

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    if (shard >= shards_.size() || record >= shards_[shard].records)
      throw data_error(fmt::format("synthetic clicks: no record {} in shard {}", record, shard));
    click const c = draw_click(options_.seed, shard * options_.records_per_shard + record);
    example_builder build{into};
    build.integer("label", c.clicked);
    for (std::size_t i = 0; i < c.counts.size(); ++i) build.integer(fmt::format("i{}", i + 1), c.counts[i]);
    for (std::size_t i = 0; i < c.ids.size(); ++i)
      build.bytes(fmt::format("c{}", i + 1), fmt::format("{:08x}", c.ids[i]));
  }

 private:
  synthetic_options options_;
  std::vector<shard> const& shards_;
};

}  // namespace detail

EDL_INLINE click draw_click(std::uint64_t seed, std::uint64_t index) {
  random_stream const random = random_stream{mix(detail::click_truth, seed)}.child(index);
  random_stream const truth{detail::click_truth};
  click c;
  for (std::size_t i = 0; i < c.counts.size(); ++i)
    c.counts[i] = std::int64_t(std::exp(6 * random.uniform(i))) - 1;
  double logit = 0.4 * std::log1p(double(c.counts[0])) - 0.4 * std::log1p(double(c.counts[1])) - 0.5;
  std::array<std::array<double, 3>, 6> vectors{};
  for (std::size_t i = 0; i < c.ids.size(); ++i) {
    double const most = std::pow(10.0, 1 + double(i % 4));
    c.ids[i] = std::uint32_t(std::pow(most, double(random.uniform(64 + i))));
    random_stream const of_id = truth.child(i).child(c.ids[i]);
    logit += 0.25 * of_id.normal(0);
    if (i < vectors.size())
      for (std::size_t k = 0; k < 3; ++k) vectors[i][k] = of_id.normal(1 + k);
  }
  for (std::size_t i = 0; i < vectors.size(); i += 2)
    for (std::size_t k = 0; k < 3; ++k) logit += 0.35 * vectors[i][k] * vectors[i + 1][k];
  c.probability = 1 / (1 + std::exp(-logit));
  c.clicked = double(random.uniform(128)) < c.probability;
  return c;
}

EDL_INLINE synthetic_clicks::synthetic_clicks(synthetic_options const& options) : options_(options) {
  if (options_.records < 1 || options_.records_per_shard < 1)
    throw usage_error("a synthetic data set needs at least one record, and one per shard");
  for (std::uint64_t first = 0; first < options_.records; first += options_.records_per_shard)
    shards_.push_back({fmt::format("clicks-{:05}", shards_.size()),
                       std::min(options_.records_per_shard, options_.records - first)});
}

EDL_INLINE std::unique_ptr<reader> synthetic_clicks::open() const {
  return std::make_unique<detail::click_reader>(options_, shards_);
}

EDL_INLINE std::uint64_t synthetic_clicks::digest(std::size_t shard) const {
  detail::content_digest sum;
  for (std::uint64_t const number :
       {detail::click_truth, options_.seed, options_.records_per_shard, std::uint64_t(shard)})
    sum.add(number);
  return sum.value();
}

}  // namespace edl::data
