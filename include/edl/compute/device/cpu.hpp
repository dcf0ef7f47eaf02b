// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/cpu/basic_cpu.hpp"
