// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kubernetes/double.hpp"
#include "kubernetes/store.hpp"

namespace edl::testing::kubernetes {

/// Gives waiting pods a node, the most important first. Where there is no room, it says so in their
/// condition, and preempts pods of less priority, as few and as unimportant as possible.
void schedule(store& in, options const& o);

}  // namespace edl::testing::kubernetes
