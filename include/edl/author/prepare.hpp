// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "edl/author/model_learner.hpp"
#include "edl/author/sample.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/job/train/setup/initial_variables.hpp"

namespace edl::author {

/// Calls feed(record, i) for the first `most` records, or as many as there are, and returns their number.
/// With `skip_damaged` it skips damaged records. Throws data_error, and what `feed` throws, with the record's
/// place.
std::size_t feed_first(data::source const& from, std::size_t most, bool skip_damaged,
                       std::function<void(example const& record, std::size_t i)> const& feed);

/// The largest number of records that a model's `prepare` gets: 5,000, and 256 MiB.
constexpr std::size_t prepared_records(std::size_t features) {
  std::size_t const fit = (std::size_t(64) << 20) / (features > 0 ? features : 1);
  return fit < 1 ? 1 : fit < 5000 ? fit : 5000;
}

/// Feeds records one by one, without a batch, and keeps only the network's input.
template <class Model>
class single_feed {
 public:
  using sample_type = sample<Model>;
  static constexpr std::size_t size = sample_type::input_shape.size();

  /// Throws as `worker::trainer::feed` does, but checks no label. `row`: `size` values.
  void operator()(example const& record, mode m, std::span<float> row) {
    static constexpr auto inputs = nn::input_places(Model::network.start);
    auto const feed_over = [&](std::uint64_t poison) {
      sample_type s(row, labels_, ids_, weights_, classes_, poison);
      call_feed([&] { Model::feed(record, s, m); });
    };
    feed_over(unfed_id);
    std::uint64_t const poison = poison_for(inputs, ids_);
    if (poison != unfed_id) feed_over(poison);
    check_inputs(record, inputs, row, ids_, poison);
  }

 private:
  std::vector<float> labels_ = std::vector<float>(sample_type::labels),
                     weights_ = std::vector<float>(sample_type::table_ids);
  std::vector<std::uint64_t> ids_ = std::vector<std::uint64_t>(sample_type::table_ids);
  std::vector<std::int32_t> classes_ = std::vector<std::int32_t>(sample_type::labels);
};

/// Runs a model's `prepare`.
template <class Model>
void prepare(data::source const& training, bool skip_damaged, initial_variables& into) {
  using sample_type = sample<Model>;
  constexpr std::size_t size = sample_type::input_shape.size();
  std::vector<float> features(prepared_records(size) * size);
  single_feed<Model> feed;
  std::size_t const n =
      feed_first(training, prepared_records(size), skip_damaged, [&](example const& record, std::size_t i) {
        feed(record, mode::evaluation, std::span<float>(features).subspan(i * size, size));
      });
  Model::prepare(first_samples{sample_type::input_shape, n, view<float>(features).first(n * size)}, into);
}

}  // namespace edl::author

#ifdef EDL_HEADER_ONLY
#include "edl/author/prepare.ipp"
#endif
