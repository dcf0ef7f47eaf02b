// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/optim/adagrad.hpp"
#include "edl/compute/optim/adam.hpp"
#include "edl/compute/optim/adamw.hpp"
#include "edl/compute/optim/decay.hpp"
#include "edl/compute/optim/lamb.hpp"
#include "edl/compute/optim/lion.hpp"
#include "edl/compute/optim/lookahead.hpp"
#include "edl/compute/optim/muon.hpp"
#include "edl/compute/optim/optimizer.hpp"
#include "edl/compute/optim/rates.hpp"
#include "edl/compute/optim/rmsprop.hpp"
#include "edl/compute/optim/rule.hpp"
#include "edl/compute/optim/schedule.hpp"
#include "edl/compute/optim/sgd.hpp"
