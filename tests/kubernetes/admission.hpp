// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kubernetes/store.hpp"

namespace edl::testing::kubernetes {

/// What the server does to an object before it keeps it: checks it and fills in defaults. `before`: what it
/// replaces, or null. Throws refusal in the server's words: 400, 403 (priority class, quota), 422.
void admit(store const& in, type const& of, json& o, json const* before);

}  // namespace edl::testing::kubernetes
