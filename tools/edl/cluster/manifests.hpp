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

}  // namespace edl::tool
