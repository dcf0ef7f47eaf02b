// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "edl/base/net/security/identity.hpp"
#include "edl/core/inline.hpp"

namespace edl::net {

EDL_INLINE std::string to_string(identity const& who) {
  return who.incarnation == 0 ? who.name : fmt::format("{}/{:016x}", who.name, who.incarnation);
}

EDL_INLINE bool answers_to(std::string_view self, std::string_view wanted) {
  return wanted.empty() || wanted == self || wanted == self.substr(0, self.find('/'));
}

EDL_INLINE bool is_identity(std::string_view text) {
  auto const plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  auto const slash = text.find('/');
  std::string_view const name = text.substr(0, slash),
                         rest = slash == text.npos ? "0" : text.substr(slash + 1);
  return text.size() <= 80 && !name.empty() && !rest.empty() && std::ranges::all_of(name, plain) &&
         std::ranges::all_of(rest, plain);
}

}  // namespace edl::net
