// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace edl {

/// Far more than any text that edl reads has, and far less than what a stack bears.
inline constexpr std::size_t most_nesting = 200;

/// Whether lists and objects of a JSON text stand in each other deeper than `most`. It must be asked before
/// the text is parsed. Values are copied, printed and destroyed by recursion, so depth from outside would be
/// the depth of the stack. Brackets in strings do not count. Says something sensible of any bytes.
inline bool nested_too_deeply(std::string_view json, std::size_t most = most_nesting) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    char const c = json[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > most) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

}  // namespace edl
