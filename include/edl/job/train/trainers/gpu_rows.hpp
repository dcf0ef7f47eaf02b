// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "edl/compute/data/batch.hpp"
#include "edl/compute/device/accelerator.hpp"
#include "edl/compute/device/device_buffer.hpp"
#include "edl/compute/sparse/minibatch_rows.hpp"

namespace edl::train {

/// A minibatch's rows of tables on a GPU, which looks them up for the samples and sums their gradients. Each
/// row is copied there once, for any number of samples, and its gradient is copied back once. Sums have a
/// fixed order. Thread safety: unsafe.
class gpu_rows {
 public:
  /// `feature_size`: numbers of a sample; the layout determines which are rows. Throws usage_error if a
  /// minibatch has more than 2³² numbers.
  gpu_rows(std::shared_ptr<accelerator> gpu, sparse::embedding_layout const& of, std::size_t feature_size,
           int max_batch);

  /// Writes the features of a minibatch, float32 on the GPU: the batch's, with sums of rows in their places.
  void give(data::batch const& b, sparse::minibatch_rows const& rows, std::span<float> features);

  /// Gradients of the given rows, from those of the features (activations); on the host on return.
  std::span<sparse::row_gradients const> sum(view<float> features, sparse::minibatch_rows& rows);

 private:
  /// Lists on the GPU, as large as they have ever been.
  struct lists {
    device_buffer<float> memory;
    row_sums sums;
  };
  struct table {
    std::size_t width = 0;
    device_buffer<float> rows, gradients;
    lists features, parts, joined;
  };

  void bring(sparse::row_terms const& terms, std::size_t width, lists& to);
  void reserve(device_buffer<float>& memory, std::size_t floats);
  void give_numbers(data::batch const& b, std::span<float> features);

  std::shared_ptr<accelerator> gpu_;
  std::size_t feature_size_;
  std::vector<table> tables_;
  std::vector<sparse::row_terms> terms_;
  sparse::row_terms turned_, joined_;
  std::vector<lists> numbers_;       // features that are not rows, a list for each contiguous group
  std::size_t numbers_of_one_ = 0;   // of a sample
  std::vector<std::size_t> places_;  // of them, in a sample
  std::vector<float> packed_;
  device_buffer<float> packed_there_;
};

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/trainers/gpu_rows.ipp"
#endif
