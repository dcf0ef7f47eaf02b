// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/trainers/gpu_rows.hpp"

#include <doctest/doctest.h>

#include "edl/core/error.hpp"

namespace gpu_rows_test {

// What it computes stands in tests/cuda/tables.cpp. Without numbers beside the rows it needs no memory.
TEST_CASE("a minibatch has as many numbers as 32 bits count, with the sums of parts of its rows") {
  edl::sparse::embedding_layout of;
  of.tables = {{.width = 1}};
  of.inputs = {{.ids = 128}};
  of.ids = 128;
  // 128 terms of gradients, as many rows at most, and two sums of 64 terms.
  int const most = int(0xffffffffu / (128 + 128 + 2));
  CHECK_NOTHROW(edl::train::gpu_rows(nullptr, of, 128, most));
  CHECK_THROWS_AS(edl::train::gpu_rows(nullptr, of, 128, most + 1), edl::usage_error);

  // One row of each sample: what counts are its features.
  of.inputs = {{.ids = 1, .combiner = edl::nn::combiner::sum},
               {.first_feature = 1, .combiner = edl::nn::combiner::sum}};
  of.ids = 1;
  CHECK_NOTHROW(edl::train::gpu_rows(nullptr, of, 2, 0x7fffffff));
  of.inputs.push_back({.first_feature = 2, .combiner = edl::nn::combiner::sum});
  CHECK_THROWS_AS(edl::train::gpu_rows(nullptr, of, 3, 0x7fffffff), edl::usage_error);
}

}  // namespace gpu_rows_test
