// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/nn/loss/class_weights.hpp"
#include "edl/nn/loss/heads.hpp"
#include "edl/nn/loss/hinge.hpp"
#include "edl/nn/loss/huber.hpp"
#include "edl/nn/loss/kullback_leibler.hpp"
#include "edl/nn/loss/loss.hpp"
#include "edl/nn/loss/mean_squared_error.hpp"
#include "edl/nn/loss/sample_weighted.hpp"
#include "edl/nn/loss/sequence_cross_entropy.hpp"
#include "edl/nn/loss/sigmoid_cross_entropy.hpp"
#include "edl/nn/loss/sigmoid_focal.hpp"
#include "edl/nn/loss/softmax_cross_entropy.hpp"
#include "edl/nn/loss/softmax_focal.hpp"
#include "edl/nn/loss/triplet.hpp"
