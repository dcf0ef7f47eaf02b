// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace edl::kubernetes {

/// Reads objects of an API server without trusting them: an absent value, or one of the wrong type, counts as
/// empty. Thread safety: safe.

/// The value at the end of a path of members; null if there is none.
nlohmann::json const& field(nlohmann::json const& of, std::initializer_list<char const*> path);

/// The first element of a list; null if there is none.
nlohmann::json const& first(nlohmann::json const& list);

std::string text(nlohmann::json const& value);

/// A number written as text, as in labels and annotations.
std::optional<std::uint32_t> number(nlohmann::json const& value);
std::optional<std::uint32_t> number(std::string const& digits);

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/fields.ipp"
#endif
