// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kubernetes/store.hpp"

namespace edl::testing::kubernetes {

/// Makes the pods of deployments, and takes those that are too many.
void keep_deployments(store& in);

}  // namespace edl::testing::kubernetes
