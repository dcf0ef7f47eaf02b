// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kubernetes/store.hpp"

namespace edl::testing::kubernetes {

/// Objects as the server prints them for kubectl: a Table of meta.k8s.io/v1.
json table(type const& of, std::vector<object> const& objects);

/// The STATUS of a pod: "Running", "Terminating", "OOMKilled", "ErrImageNeverPull", ….
std::string status_in_words(json const& pod);

}  // namespace edl::testing::kubernetes
