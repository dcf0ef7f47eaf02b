// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstring>

#include "edl/core/inline.hpp"
#include "edl/job/platform/platform.hpp"

namespace edl::platform {

EDL_INLINE std::string describe(ending const& e) {
  if (!e.words.empty()) return e.words;
  if (e.memory)
    return "was killed because memory ran out (fewer processes or a smaller --minibatch_size need less)";
  if (e.signal) return fmt::format("was killed by signal {} ({})", e.signal, ::strsignal(e.signal));
  return fmt::format("exited with code {}", e.code);
}

EDL_INLINE std::vector<std::uint32_t> findings::ids(role of) const {
  std::vector<std::uint32_t> all;
  for (process_id const who : running)
    if (who.role == of) all.push_back(who.id);
  return all;
}

}  // namespace edl::platform
