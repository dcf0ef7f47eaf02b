// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "edl/compute/nn/model.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::nn::detail {

EDL_INLINE void check_input(int batch, int max_batch, std::size_t elements, shape sample) {
  if (batch < 1 || batch > max_batch)
    throw error(fmt::format("model: a batch of {} samples, but this model takes 1 to {}; raise max_batch",
                            batch, max_batch));
  if (elements != std::size_t(batch) * sample.size())
    throw error(fmt::format("model: {} elements of input, but {} samples of {}x{}x{} have {}", elements,
                            batch, sample.height, sample.width, sample.channels,
                            std::size_t(batch) * sample.size()));
}

EDL_INLINE void check_backward(int batch, int forward_batch) {
  if (batch != forward_batch)
    throw error(fmt::format("model: backward over {} samples, but the forward pass before it took {}", batch,
                            forward_batch));
}

EDL_INLINE void refuse_budget_elsewhere() {
  throw usage_error("--memory_budget works on processors only: leave it out, or compute with --device=cpu");
}

EDL_INLINE void check_range(std::size_t first, std::size_t count, std::size_t variables) {
  if (first > variables || count > variables - first)
    throw error(fmt::format("model: elements {} to {} of the variables, but the model has only {}", first,
                            first + count, variables));
}

}  // namespace edl::nn::detail
