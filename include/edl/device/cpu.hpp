// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/device/cpu/activation.hpp"
#include "edl/device/cpu/basic_cpu.hpp"
#include "edl/device/cpu/batch_norm.hpp"
#include "edl/device/cpu/conv2d.hpp"
#include "edl/device/cpu/dense.hpp"
#include "edl/device/cpu/dropout.hpp"
#include "edl/device/cpu/elementwise.hpp"
#include "edl/device/cpu/embedding.hpp"
#include "edl/device/cpu/gelu.hpp"
#include "edl/device/cpu/pool.hpp"
#include "edl/device/cpu/softmax.hpp"
#include "edl/device/device.hpp"

namespace edl {

/// The processor at hand, in single precision.
using cpu = basic_cpu<float>;

static_assert(device<basic_cpu<float>> && device<basic_cpu<double>>);

}  // namespace edl
