// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "edl/compute/data/reader.hpp"
#include "edl/job/author/model_learner.hpp"
#include "edl/job/author/sample.hpp"
#include "edl/job/train/initial_variables.hpp"

namespace edl::author {

/// Calls feed(record, i) for the first `most` records, or as many as there are, and returns how many it were.
/// With `skip_damaged` those that are damaged are left out. Throws data_error, and what `feed` throws, with
/// the record's place.
std::size_t feed_first(data::source const& from, std::size_t most, bool skip_damaged,
                       std::function<void(example const& record, std::size_t i)> const& feed);

/// Records that a model's `prepare` sees, at most: 5,000 of them, and 256 MiB.
constexpr std::size_t prepared_records(std::size_t features) {
  std::size_t const fit = (std::size_t(64) << 20) / (features > 0 ? features : 1);
  return fit < 1 ? 1 : fit < 5000 ? fit : 5000;
}

/// Does a model's `prepare`.
template <class Model>
void prepare(data::source const& training, bool skip_damaged, initial_variables& into) {
  using sample_type = sample<Model>;
  constexpr std::size_t size = sample_type::input_shape.size();
  static constexpr auto inputs = nn::input_places(Model::network.start);
  std::vector<float> features(prepared_records(size) * size), labels(sample_type::labels),
      weights(sample_type::table_ids);
  std::vector<std::uint64_t> ids(sample_type::table_ids);
  std::vector<std::int32_t> classes(sample_type::labels);
  std::size_t const n =
      feed_first(training, prepared_records(size), skip_damaged, [&](example const& record, std::size_t i) {
        auto const row = std::span<float>(features).subspan(i * size, size);
        auto const feed_over = [&](std::uint64_t poison) {
          sample_type s(row, labels, ids, weights, classes, poison);
          Model::feed(record, s, mode::evaluation);
        };
        feed_over(unfed_id);
        std::uint64_t const poison = poison_for(inputs, ids);
        if (poison != unfed_id) feed_over(poison);
        check_inputs(record, inputs, row, ids, poison);
      });
  Model::prepare(first_samples{sample_type::input_shape, n, view<float>(features).first(n * size)}, into);
}

}  // namespace edl::author

#ifdef EDL_HEADER_ONLY
#include "edl/job/author/prepare.ipp"
#endif
