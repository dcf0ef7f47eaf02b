// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstring>

#include "edl/core/inline.hpp"
#include "edl/platform/platform.hpp"

namespace edl::platform {

EDL_INLINE std::string name(instance const& who) {
  if (who.role == role::master) return "master";
  return fmt::format("{}-{}", who.role == role::server ? "ps" : "worker", who.id);
}

EDL_INLINE std::string describe(ending const& e) {
  if (!e.words.empty()) return e.words;
  if (e.memory)
    return "was killed because memory ran out (fewer processes or a smaller --minibatch_size need less)";
  if (e.signal) return fmt::format("was killed by signal {} ({})", e.signal, ::strsignal(e.signal));
  return fmt::format("exited with code {}", e.code);
}

}  // namespace edl::platform
