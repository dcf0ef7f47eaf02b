// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "edl/compute/data/batch.hpp"
#include "edl/compute/device/device_buffer.hpp"
#include "edl/compute/device/pinned.hpp"
#include "edl/compute/device/placement.hpp"
#include "edl/core/mode.hpp"
#include "edl/core/shape.hpp"
#include "edl/job/worker/trainer.hpp"

namespace edl::train {

/// The properties of a model that determine a GPU's samples.
struct gpu_sample_options {
  shape input;
  std::size_t labels = 1;  ///< of a sample, four bytes each
  int max_batch = 1;
  bool placed = false;           ///< batches of training carry placements
  bool exact = false;            ///< they stay float32 for any precision: ids
  bool given_apart = false;      ///< the caller writes features into `given`
  bool fed_alike = true;         ///< a record's training sample is the same in every epoch
  std::vector<placement> views;  ///< of evaluation and prediction; empty: the sample itself
};

/// The samples of a network on a GPU: those of a minibatch, and, if they are kept, all earlier ones. Features
/// are on the GPU, labels on the host. Thread safety: `has` is safe from any thread. Use the rest on one
/// thread, which waits for the GPU between one `give` and the next.
class gpu_samples {
 public:
  gpu_samples(std::shared_ptr<accelerator> gpu, gpu_sample_options of);

  /// Allocates memory for this many samples; call before the first `give`. `automatic`: if a quarter of the
  /// free memory is enough, training first. Returns what it has done, for the log; empty: nothing. Throws
  /// usage_error if they must be kept but cannot be.
  std::string keep(worker::keep_samples how, std::uint64_t training, std::uint64_t evaluation);

  /// Whether all samples of these records are kept. If so, copies their labels into the batch.
  bool has(data::batch& b) const;

  /// Copies a minibatch to the GPU, as far as it is not there: features and, except in prediction, labels.
  void give(data::batch const& b);

  /// The given features, float32.
  std::span<float> given() { return given_.span(); }

  /// Converts the given samples to `x`, activations, or float32 if they are `exact`. May be recorded.
  void show(int rows, mode m, std::size_t view_index, std::span<float> x);

  /// For `show_chosen`: selects rows of the given samples, and views by their numbers.
  void choose(data::batch const& b, std::span<std::uint32_t const> rows,
              std::span<std::uint32_t const> view_indices);
  void show_chosen(int count, mode m, std::span<float> x);

  /// The given labels, of the model's type.
  float const* labels() const { return labels_.span().data(); }

 private:
  /// The samples of one kind that are kept.
  struct kept_kind {
    device_buffer<float> features;
    std::vector<std::uint32_t> labels;
    std::vector<std::atomic<std::uint8_t>> known;
  };

  std::uint64_t bytes(std::uint64_t samples) const;
  kept_kind const* kept(mode m) const {
    return m == mode::prediction ? nullptr : kept_[m == mode::training ? 0 : 1].get();
  }
  kept_kind* kept(mode m) { return const_cast<kept_kind*>(std::as_const(*this).kept(m)); }
  std::uint32_t const* list(device_buffer<float> const& of) const {
    return reinterpret_cast<std::uint32_t const*>(of.span().data());
  }
  void remember(kept_kind& in, data::batch const& b, std::span<std::uint32_t const> places);

  std::shared_ptr<accelerator> gpu_;
  gpu_sample_options options_;
  std::size_t size_;  // of a sample
  std::array<std::unique_ptr<kept_kind>, 2> kept_;
  device_buffer<float> given_, labels_;
  device_buffer<float> rows_, in_order_;     // where kept samples, and given ones, lie
  device_buffer<float> placements_, views_;  // of a minibatch; of each view; the first changes nothing
  pinned_buffer host_rows_, host_placements_;
};

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/trainers/gpu_samples.ipp"
#endif
