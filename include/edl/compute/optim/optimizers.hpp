// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/optim/averages.hpp"
#include "edl/compute/optim/decay.hpp"
#include "edl/compute/optim/muon.hpp"
#include "edl/compute/optim/optimizer.hpp"
#include "edl/compute/optim/rule.hpp"
#include "edl/compute/optim/rules.hpp"
#include "edl/compute/optim/schedule.hpp"
