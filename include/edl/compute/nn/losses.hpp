// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/nn/loss/class_weights.hpp"
#include "edl/compute/nn/loss/heads.hpp"
#include "edl/compute/nn/loss/hinge.hpp"
#include "edl/compute/nn/loss/huber.hpp"
#include "edl/compute/nn/loss/kullback_leibler.hpp"
#include "edl/compute/nn/loss/loss.hpp"
#include "edl/compute/nn/loss/mean_squared_error.hpp"
#include "edl/compute/nn/loss/sample_weighted.hpp"
#include "edl/compute/nn/loss/sequence_cross_entropy.hpp"
#include "edl/compute/nn/loss/sigmoid_cross_entropy.hpp"
#include "edl/compute/nn/loss/sigmoid_focal.hpp"
#include "edl/compute/nn/loss/softmax_cross_entropy.hpp"
#include "edl/compute/nn/loss/softmax_focal.hpp"
#include "edl/compute/nn/loss/triplet.hpp"
