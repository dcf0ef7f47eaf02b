// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "edl/core/ledger.hpp"

namespace edl::wire {

class Ledger;  // edl/base/wire/edl.pb.h

/// Converts a ledger to the message that processes send.
void to_message(ledger const& from, Ledger& into);

/// The ledger of a message. Throws edl::error for runs that are empty, overlap or lack an end, a duplicate
/// task, or one both open and closed.
ledger from_message(Ledger const& from);

/// A ledger as JSON: {"closed":{"<epoch>":[begin,end,…]},"open":[[epoch,index,applied],…]}. If there are any,
/// also "skipped":[[epoch,index,records],…] and "tallies":[[epoch,minibatches,records],…].
std::string to_json(ledger const& from);

/// The ledger of a JSON text, checked like a message; `where` appears in errors.
ledger ledger_from_json(std::string_view text, std::string_view where);

}  // namespace edl::wire

#ifdef EDL_HEADER_ONLY
#include "edl/base/wire/ledger_message.ipp"
#endif
