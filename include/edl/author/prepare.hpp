// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "edl/author/model_learner.hpp"
#include "edl/author/sample.hpp"
#include "edl/data/reader.hpp"
#include "edl/train/initial_variables.hpp"

namespace edl::author {

/// Calls feed(record, i) for the first `most` records, or as many as there are, and returns how many it were.
/// With `skip_damaged` those that are damaged are left out. Throws data_error.
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
  std::vector<float> features(prepared_records(size) * size), labels(sample_type::labels);
  std::size_t const n =
      feed_first(training, prepared_records(size), skip_damaged, [&](example const& record, std::size_t i) {
        sample_type s(std::span<float>(features).subspan(i * size, size), labels);
        Model::feed(record, s, mode::evaluation);
        if (s.features.size() != size) detail::refuse_features(s.features.size(), size);
      });
  Model::prepare(first_samples{sample_type::input_shape, n, view<float>(features).first(n * size)}, into);
}

}  // namespace edl::author

#ifdef EDL_HEADER_ONLY
#include "edl/author/prepare.ipp"
#endif
