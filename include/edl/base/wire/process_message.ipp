// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "edl/base/wire/process_message.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::wire {

EDL_INLINE void to_message(process_id const& who, Instance& m) {
  m.set_role(std::uint32_t(who.role));
  m.set_id(who.id);
}

EDL_INLINE process_id from_message(Instance const& m) {
  static_assert(int(role::master) == 0 && int(role::server) == 1 && int(role::worker) == 2);
  if (m.role() > std::uint32_t(role::worker)) throw error(fmt::format("no role {}", m.role()));
  return {role(m.role()), m.id()};
}

EDL_INLINE void to_message(trained const& all, Trained& m) {
  m.set_loss(all.loss);
  m.set_minibatches(all.minibatches);
  m.set_records(all.records);
  m.set_words(all.words);
  m.set_unknown(all.unknown);
}

EDL_INLINE trained from_message(Trained const& m) {
  return {m.loss(), m.minibatches(), m.records(), m.words(), m.unknown()};
}

}  // namespace edl::wire
