// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/ledger_message.hpp"
#include "edl/base/wire/message.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/ps/copy.hpp"

namespace edl::ps {

EDL_INLINE std::string describe_copy(full_snapshot const& what) {
  wire::CopyReply reply;
  auto const add = [&](checkpoint::segment const& s, bool of_rows) {
    auto& out = *reply.add_segments();
    out.set_first(s.elements.first);
    out.set_last(s.elements.last);
    out.set_steps(s.steps);
    out.set_of_rows(of_rows);
    wire::to_message(s.ledger, *out.mutable_ledger());
  };
  for (checkpoint::segment const& s : what.segments) add(s, false);
  for (checkpoint::segment const& s : what.row_segments) add(s, true);
  return wire::pack(reply);
}

EDL_INLINE copied_segments segments_of_copy(std::string const& message, std::string_view from) {
  auto const reply = wire::unpack<wire::CopyReply>(message, from);
  copied_segments all;
  for (auto const& s : reply.segments())
    (s.of_rows() ? all.row_segments : all.segments)
        .push_back(
            {{std::size_t(s.first()), std::size_t(s.last())}, s.steps(), wire::from_message(s.ledger())});
  return all;
}

}  // namespace edl::ps
