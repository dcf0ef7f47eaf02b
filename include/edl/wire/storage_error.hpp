// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/storage_error.hpp"

namespace edl::wire {

using edl::storage_error;

}  // namespace edl::wire
