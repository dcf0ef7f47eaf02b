// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace edl {

/// Far more than any text that edl reads needs, and far less than a stack can hold.
inline constexpr std::size_t most_nesting = 200;

/// Whether lists and objects in a JSON text are nested deeper than `most`. Brackets in strings do not count.
/// Accepts any bytes.
bool nested_too_deeply(std::string_view json, std::size_t most = most_nesting);

/// The value of a JSON text from outside. It `is_discarded()` if the text is not valid JSON, or an object has
/// a key twice (either value may be the one that was meant), or it is nested deeper than `most`: values are
/// copied and printed by recursion, so nesting from outside would determine the depth of the stack.
nlohmann::json parse_json(std::string_view text, std::size_t most = most_nesting);

/// What is wrong with a text that `parse_json` discards, to follow "is": "not JSON: …" with line and column,
/// "JSON with the key '…' twice in one object", "nested deeper than … levels".
std::string why_no_json(std::string_view text, std::size_t most = most_nesting);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/core/json.ipp"
#endif
