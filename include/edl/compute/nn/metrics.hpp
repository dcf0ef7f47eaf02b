// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/nn/metric/accuracy.hpp"
#include "edl/compute/nn/metric/auc.hpp"
#include "edl/compute/nn/metric/class_scores.hpp"
#include "edl/compute/nn/metric/confusion.hpp"
#include "edl/compute/nn/metric/list.hpp"
#include "edl/compute/nn/metric/mae.hpp"
#include "edl/compute/nn/metric/mean_loss.hpp"
#include "edl/compute/nn/metric/metric.hpp"
#include "edl/compute/nn/metric/mse.hpp"
#include "edl/compute/nn/metric/of_head.hpp"
#include "edl/compute/nn/metric/perplexity.hpp"
#include "edl/compute/nn/metric/r2.hpp"
#include "edl/compute/nn/metric/scores.hpp"
#include "edl/compute/nn/metric/top_k.hpp"
#include "edl/compute/nn/metric/values.hpp"
