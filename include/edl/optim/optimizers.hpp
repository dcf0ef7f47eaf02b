// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/optim/adagrad.hpp"
#include "edl/optim/adam.hpp"
#include "edl/optim/adamw.hpp"
#include "edl/optim/decay.hpp"
#include "edl/optim/lamb.hpp"
#include "edl/optim/lion.hpp"
#include "edl/optim/lookahead.hpp"
#include "edl/optim/muon.hpp"
#include "edl/optim/optimizer.hpp"
#include "edl/optim/rates.hpp"
#include "edl/optim/rmsprop.hpp"
#include "edl/optim/rule.hpp"
#include "edl/optim/schedule.hpp"
#include "edl/optim/sgd.hpp"
