// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace edl {

/// The beginning of a text, at most `most` bytes of it. A character of UTF-8 is kept whole or left out, so
/// that a text that was UTF-8 still is.
std::string shortened(std::string_view text, std::size_t most);

/// A text from outside as it may stand in a log, on a terminal or in a protobuf string. It is UTF-8 of at
/// most `most` bytes, with '?' for each byte that is none, and a blank for each control character.
std::string printable(std::string_view text, std::size_t most = 8192);

/// A command as a shell reads it, with quotes where they are needed, printable. What is not printable in a
/// word is written as in C, which dash does not read before 0.5.13.
std::string shell_line(std::vector<std::string> const& words);

/// Whether a text is UTF-8: what neither JSON nor a protobuf string takes otherwise.
bool is_utf8(std::string_view text);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/core/printable.ipp"
#endif
