// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kubernetes/store.hpp"

namespace edl::testing::kubernetes {

/// Makes the pods of deployments, and takes those that are too many.
void keep_deployments(store& in);

/// Deletes what belongs to objects that are gone.
void collect_garbage(store& in);

}  // namespace edl::testing::kubernetes
