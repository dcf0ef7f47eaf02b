// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace edl::tool {

/// A file of k8s/, as it was when the tool was built.
struct manifest_file {
  char const* name;  ///< "trainingjob-crd.yaml"
  char const* text;
};

/// Those that `edl controller install` makes, in that order.
std::span<manifest_file const> manifests();

/// k8s/serve.yaml, likewise.
char const* serve_manifest();

}  // namespace edl::tool
