// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kubernetes/store.hpp"

namespace edl::testing::kubernetes {

/// The kinds that are there without a CustomResourceDefinition.
void define_types(store& into);

/// What `path` says of the groups and kinds: /api, /apis, /api/v1, /apis/GROUP/VERSION, /version, /healthz;
/// null for other paths.
json discovery(store const& of, std::string const& path, int minor);

}  // namespace edl::testing::kubernetes
