// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/nn/metric/accuracy.hpp"
#include "edl/nn/metric/auc.hpp"
#include "edl/nn/metric/class_scores.hpp"
#include "edl/nn/metric/confusion.hpp"
#include "edl/nn/metric/list.hpp"
#include "edl/nn/metric/mae.hpp"
#include "edl/nn/metric/mean_loss.hpp"
#include "edl/nn/metric/metric.hpp"
#include "edl/nn/metric/mse.hpp"
#include "edl/nn/metric/of_head.hpp"
#include "edl/nn/metric/perplexity.hpp"
#include "edl/nn/metric/r2.hpp"
#include "edl/nn/metric/scores.hpp"
#include "edl/nn/metric/top_k.hpp"
#include "edl/nn/metric/values.hpp"
