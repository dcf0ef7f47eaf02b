// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/clock.hpp"

namespace edl::master {

using edl::clock;
using edl::duration;
using edl::time_point;

}  // namespace edl::master
