// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/nn/layer/layer_norm.hpp"

#ifndef EDL_HEADER_ONLY
namespace edl::nn::expression {

template void run<compiled<layer_norm>::forward, float>(basic_backend<float>&, call<float> const&);
template void run<compiled<layer_norm>::backward, float>(basic_backend<float>&, call<float> const&);

}  // namespace edl::nn::expression
#endif
