// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace edl::tokens {

/// What begins at a place of a text that should be UTF-8. Of an ill-formed sequence these are its maximal
/// subpart (Unicode 15.0, section 3.9, "U+FFFD Substitution of Maximal Subparts"), and the code is U+FFFD.
struct character {
  char32_t code = 0xfffd;
  std::size_t bytes = 1;
  bool well_formed = false;
  bool cut = false;  ///< the text ends within a character
};

/// The character at `at`, which must be within the text.
character character_at(std::string_view text, std::size_t at);

/// The text as valid UTF-8: one U+FFFD for each maximal subpart of an ill-formed sequence, as browsers,
/// Node.js and Python (errors="replace") do. The result is the text itself, or lies in `space`.
std::string_view valid_utf8(std::string_view text, std::string& space);

/// Bytes at the end of a text that begin a character without completing it: 0 to 3.
std::size_t incomplete_bytes(std::string_view text);

/// Normalization Form C (Unicode Standard Annex 15) of valid UTF-8. The result is the text itself, or lies in
/// `space`. The time for a sequence of combining marks grows with the square of its length.
std::string_view nfc(std::string_view text, std::string& space);

/// Whether a character has the property White_Space.
bool is_white_space(char32_t code);

/// GPT-2's alphabet of bytes: a printable Latin-1 character stands for its own byte, and characters from
/// U+0100 on stand for the others, in order. Entry b is the character of byte b.
std::array<char32_t, 256> byte_alphabet();

/// Appends a character as UTF-8.
void append_utf8(char32_t code, std::string& to);

}  // namespace edl::tokens

#ifdef EDL_HEADER_ONLY
#include "edl/compute/tokens/unicode.ipp"
#endif
