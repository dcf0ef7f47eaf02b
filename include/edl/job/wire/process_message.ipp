// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/wire/process_message.hpp"

namespace edl::wire {

EDL_INLINE void to_message(process_id const& who, Instance& m) {
  m.set_role(std::uint32_t(who.role));
  m.set_id(who.id);
}

EDL_INLINE process_id from_message(Instance const& m) {
  static_assert(int(role::master) == 0 && int(role::server) == 1 && int(role::worker) == 2);
  if (m.role() > std::uint32_t(role::worker)) throw error(fmt::format("there is no role {}", m.role()));
  return {role(m.role()), m.id()};
}

}  // namespace edl::wire
