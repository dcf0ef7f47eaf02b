// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/base/wire/edl.pb.h"
#include "edl/core/process_id.hpp"
#include "edl/core/trained.hpp"

namespace edl::wire {

/// For a member, not a master.
inline JoinRequest::Role to_message(role of) {
  return of == role::server ? JoinRequest::SERVER : JoinRequest::WORKER;
}
inline role from_message(JoinRequest::Role of) {
  return of == JoinRequest::SERVER ? role::server : role::worker;
}

/// The process in a message with a member's role and id.
template <class Message>
process_id sender_of(Message const& m) {
  return {from_message(m.role()), m.id()};
}

void to_message(process_id const& who, Instance& m);

/// Throws error if there is no such role.
process_id from_message(Instance const& m);

void to_message(trained const& all, Trained& m);
trained from_message(Trained const& m);

}  // namespace edl::wire

#ifdef EDL_HEADER_ONLY
#include "edl/base/wire/process_message.ipp"
#endif
