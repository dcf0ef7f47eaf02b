// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <span>

#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/row_copy.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::wire {

EDL_INLINE std::string row_copy::request() const {
  CopyRowsRequest r;
  r.set_generation(generation_);
  r.set_range(range_);
  r.set_table(table_);
  r.set_slot(std::uint32_t(slot_));
  r.set_row(row_);
  r.set_last(std::uint32_t(last_));
  return pack(r);
}

EDL_INLINE void row_copy::take(std::string const& answer, std::string_view from, sink const& to) {
  auto const reply = unpack<CopyRowsReply>(answer, from);
  if (reply.slot() < slot_ || (reply.slot() == slot_ && reply.row() <= row_))
    throw error(fmt::format("{} does not continue its rows of hash slot {}", from, slot_));
  to(std::as_bytes(std::span(reply.rows())), reply.values(), std::as_bytes(std::span(reply.candidates())));
  slot_ = reply.slot();
  row_ = reply.row();
}

}  // namespace edl::wire
