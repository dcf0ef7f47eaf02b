// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/nn/metric/classification.hpp"
#include "edl/compute/nn/metric/list.hpp"
#include "edl/compute/nn/metric/metric.hpp"
#include "edl/compute/nn/metric/regression.hpp"
