// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "edl/core/ledger.hpp"

namespace edl::wire {

class Ledger;  // edl/base/wire/edl.pb.h

/// A ledger as the message that processes send.
void to_message(ledger const& from, Ledger& into);

/// The ledger of a message. Runs that are empty, overlap or lack an end, a task named twice, or one both open
/// and closed are an edl::error.
ledger from_message(Ledger const& from);

/// A ledger as JSON: {"closed":{"<epoch>":[begin,end,…]},"open":[[epoch,index,applied],…]}. Where there are
/// any, "skipped":[[epoch,index,records],…] and "tallies":[[epoch,minibatches,records],…] stand there, too.
std::string to_json(ledger const& from);

/// The ledger of such a text, checked as a message is; `where` stands in errors.
ledger ledger_from_json(std::string_view text, std::string_view where);

}  // namespace edl::wire

#ifdef EDL_HEADER_ONLY
#include "edl/base/wire/ledger_message.ipp"
#endif
