// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kubernetes/status.hpp"

namespace edl::testing::kubernetes {

/// `is`, changed by a patch of that media type. That is merge (RFC 7386), JSON (RFC 6902), strategic merge,
/// or apply, which is merged like a strategic one. Throws refusal: 400, 415 or 422.
json patched(json const& is, std::string const& media_type, std::string const& body);

/// A strategic merge: lists whose elements have a key (containers by name, ports by number, …) are merged
/// by it, and others are replaced.
void merge_strategically(json& into, json const& patch);

}  // namespace edl::testing::kubernetes
