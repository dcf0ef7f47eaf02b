// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace edl {

/// The beginning of a text, at most `most` bytes of it. It never cuts a UTF-8 character, so valid UTF-8 stays
/// valid.
std::string shortened(std::string_view text, std::size_t most);

/// A text from outside, made safe for a log, a terminal or a protobuf string: valid UTF-8 of at most `most`
/// bytes, with '?' for each invalid byte and a blank for each control character.
std::string printable(std::string_view text, std::size_t most = 8192);

/// A command quoted for a shell where necessary, and printable. Unprintable characters of a word are written
/// as in C ($'…'), which dash supports from 0.5.13 on.
std::string shell_line(std::vector<std::string> const& words);

/// Whether a text is valid UTF-8, as JSON and protobuf strings must be.
bool is_utf8(std::string_view text);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/core/printable.ipp"
#endif
