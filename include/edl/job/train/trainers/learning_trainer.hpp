// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "edl/compute/nn/trace.hpp"
#include "edl/job/train/trainers/learner.hpp"
#include "edl/job/worker/trainer.hpp"

namespace edl::train {

/// A learner as the runtime's `trainer`, without the passes: the processing of records that all devices
/// share.
class learning_trainer : public worker::trainer {
 public:
  data::batch make_batch() const override;
  std::string expect(std::uint64_t, std::uint64_t) override { return of().plan(); }
  void feed(example const& record, data::batch& b, int row, mode m) const override;
  sparse::embedding_layout const& embeddings() const override { return facts().embeddings; }
  view<float> input_gradients() const override { return of().input_gradient(); }
  std::size_t totals() const override { return facts().totals; }
  nn::trace const* profile() const override { return trace_ ? &*trace_ : nullptr; }

 protected:
  learning_trainer(std::unique_ptr<learner> of, worker::trainer_options const& o);

  learner& of() const { return *learner_; }
  learner_facts const& facts() const { return learner_->facts(); }
  int max_batch() const { return max_batch_; }

  view<float> features(data::batch const& b) const {
    return view<float>(b.features).first(std::size_t(b.rows) * b.feature_size);
  }

  /// The loss of a training minibatch, timed for the profile.
  double loss(data::batch const& b, view<float> outputs, std::span<float> gradients);
  nn::trace::scope time_loss();

  /// The rows of a minibatch to evaluate on all views, by their outputs on the first.
  std::vector<std::uint32_t> in_doubt(view<float> said) const;

  /// Sets the augmentation of a training row, for the device.
  void place(data::batch& b, int row) const;

 private:
  record_stream stream_of(data::batch const& b, int row) const;

  std::unique_ptr<learner> learner_;
  std::uint64_t seed_;
  int max_batch_;
  std::optional<nn::trace> trace_;
};

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/trainers/learning_trainer.ipp"
#endif
