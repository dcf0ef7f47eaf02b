// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/nn/expression/loss.hpp"
#include "edl/compute/nn/loss/classification.hpp"
#include "edl/compute/nn/loss/distance.hpp"
#include "edl/compute/nn/loss/heads.hpp"
#include "edl/compute/nn/loss/loss.hpp"
