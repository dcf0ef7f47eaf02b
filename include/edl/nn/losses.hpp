// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/nn/loss/heads.hpp"
#include "edl/nn/loss/loss.hpp"
#include "edl/nn/loss/mean_squared_error.hpp"
#include "edl/nn/loss/sequence_cross_entropy.hpp"
#include "edl/nn/loss/sigmoid_cross_entropy.hpp"
#include "edl/nn/loss/softmax_cross_entropy.hpp"
