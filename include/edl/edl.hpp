// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Everything that a model author needs.
#include <xtensor/xmanipulation.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xoperation.hpp>

#include "edl/author/model_traits.hpp"  // first: GCC lists by which headers it came to a sentence
#include "edl/author/run.hpp"
#include "edl/core/error.hpp"
#include "edl/data/example.hpp"
#include "edl/data/example_builder.hpp"
#include "edl/data/picture.hpp"
#include "edl/data/reader.hpp"
#include "edl/device/cpu/basic_cpu.hpp"
#include "edl/features/features.hpp"
#include "edl/nn/layers.hpp"
#include "edl/nn/losses.hpp"
#include "edl/nn/metrics.hpp"
#include "edl/optim/optimizers.hpp"
#include "edl/version.hpp"
