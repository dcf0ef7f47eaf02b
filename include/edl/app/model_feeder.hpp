// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <limits>
#include <span>

#include "edl/app/model_traits.hpp"
#include "edl/app/sample.hpp"
#include "edl/core/error.hpp"
#include "edl/core/random.hpp"
#include "edl/data/example.hpp"
#include "edl/nn/takes_ids.hpp"
#include "edl/worker/trainer.hpp"

namespace edl::app {

namespace detail {

/// Throws data_error: a label is not one of the network's outputs.
[[noreturn]] void refuse_label(std::int64_t label, std::size_t outputs);
[[noreturn]] void refuse_label(float label);
[[noreturn]] void refuse_features(std::size_t got, std::size_t wanted);

/// Throws data_error unless all are whole numbers below the vocabulary.
void check_ids(view<float> features, int vocabulary);

/// Throws data_error: the feed failed with an error that names neither the record nor the model.
[[noreturn]] void refuse_feed(char const* why, std::size_t wanted);

}  // namespace detail

/// What a user's Model says of records, as a part of a `trainer`, whatever computes.
template <class Model>
class model_feeder : public worker::trainer {
 protected:
  using traits = model_traits<Model>;
  using sample_type = sample<Model>;
  static constexpr shape input = sample_type::input, output = sample_type::output;
  static constexpr bool classes = traits::loss_type::class_labels;
  static constexpr std::size_t labels = sample_type::labels;

  static constexpr int vocabulary = nn::vocabulary_of(Model::network.body, input);  // 0: of no ids

  explicit model_feeder(worker::trainer_options const& o) : seed_(o.seed), max_batch_(o.max_batch) {}

  static view<float> features(data::batch const& b) {
    return view<float>(b.features).first(std::size_t(b.rows) * b.feature_size);
  }
  static auto truth(data::batch const& b) {
    if constexpr (classes)
      return view<std::int32_t>(b.classes).first(std::size_t(b.rows) * labels);
    else
      return view<float>(b.targets).first(std::size_t(b.rows) * labels);
  }
  int max_batch() const { return max_batch_; }

 public:
  data::batch make_batch() const override {
    return data::make_batch(max_batch_, input.size(), classes ? 0 : labels, classes ? labels : 0);
  }

  std::size_t totals() const override { return traits::metrics::totals; }

  void feed(example const& record, data::batch& b, int row, mode m) const override {
    sample_type s(b.feature_row(row), b.target_row(row));
    try {
      Model::feed(record, s, m);
    } catch (error const&) {
      throw;
    } catch (std::exception const& e) {
      detail::refuse_feed(e.what(), input.size());
    }
    if (s.features.size() != input.size()) detail::refuse_features(s.features.size(), input.size());
    if constexpr (Model::network.of_ids) detail::check_ids(b.feature_row(row), vocabulary);
    if (m == mode::training) augment(b, row);
    if (m == mode::prediction) return;
    if constexpr (classes) {
      auto const label = std::int64_t(s.label);
      if (label < 0 || label > std::numeric_limits<std::int32_t>::max() ||
          !traits::loss_type::valid(std::int32_t(label), output))
        detail::refuse_label(label, output.size());
      b.class_row(row)[0] = std::int32_t(label);
    } else {
      if constexpr (labels == 1) b.target_row(row)[0] = s.label;
      for (float label : b.target_row(row))
        if (!traits::loss_type::valid(label, output)) detail::refuse_label(label);
    }
  }

 protected:
  /// Sets what is to be done to a row in training, by whoever computes.
  void place(data::batch& b, int row) const {
    if constexpr (traits::places) {
      placement& at = b.placements[std::size_t(row)];
      at = {};
      Model::augmentation.place(input, stream_of(b, row), at);
    }
  }

 private:
  void augment(data::batch& b, int row) const {
    if constexpr (traits::augments) {
      if (b.placements.empty())
        Model::augmentation(input, b.feature_row(row), stream_of(b, row));
      else
        place(b, row);
    }
  }

  /// A record's random numbers in an epoch, and its own in all of them, whoever reads it and whenever.
  record_stream stream_of(data::batch const& b, int row) const {
    task_key const& t = b.identity.key.task;
    std::uint64_t const record = b.records[std::size_t(row)];
    return {random_stream{mix(mix(seed_, 2), mix(t.epoch, t.index)), record},
            random_stream{mix(seed_, 3), b.first_place + record}, t.epoch};
  }

  std::uint64_t seed_;
  int max_batch_;
};

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/model_feeder.ipp"
#endif
