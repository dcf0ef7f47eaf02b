// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Includes everything that a model author needs.
#include <xtensor/xmanipulation.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xoperation.hpp>

#include "edl/author/model_traits.hpp"  // first: GCC lists by which headers it came to a sentence
#include "edl/author/predictor.hpp"
#include "edl/author/run.hpp"
#include "edl/author/text_generator.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/picture.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/features/features.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/losses.hpp"
#include "edl/compute/nn/metrics.hpp"
#include "edl/compute/optim/optimizers.hpp"
#include "edl/core/error.hpp"
#include "edl/version.hpp"
