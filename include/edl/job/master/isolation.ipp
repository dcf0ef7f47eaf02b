// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "edl/core/inline.hpp"
#include "edl/job/master/isolation.hpp"

namespace edl::master {
namespace detail {

// The time after which TCP_USER_TIMEOUT drops an unacknowledged connection (base/net/transport.ipp).
inline constexpr std::chrono::seconds connection_timeout{30};

// A member that gets no reply tries other connections for a few seconds, then pauses for as long.
inline constexpr std::chrono::seconds next_connection{10};

}  // namespace detail

EDL_INLINE bool isolation::suspected(std::size_t members, time_point now) const {
  return members > (lasts_ ? 0 : 1) && quiet(now) > silence_ / 2 && quiet(now) <= longest_;
}

EDL_INLINE void isolation::held_up(duration pause, time_point now) {
  heard_again_ = now;
  back_until_ = std::max(back_until_, now + std::min<duration>(pause, detail::next_connection));
}

EDL_INLINE isolation::news isolation::look(std::optional<time_point> newest, std::size_t members,
                                           time_point now) {
  news found;
  if (!newest) {
    heard_.reset();
    lasts_ = false;
    return found;
  }
  if (lasts_ && *newest > *heard_) {
    lasts_ = false;
    found.absence = *newest - *heard_;
    heard_again_ = now;
    // TCP retransmits what an outage has lost after pauses that double (RFC 6298). So a member may need as
    // long as the outage lasted to reconnect, unless it first replaces its connection.
    back_until_ = now + std::min<duration>(*found.absence, detail::connection_timeout);
  }
  if (!lasts_) heard_ = newest;
  if (!lasts_ && suspected(members, now)) lasts_ = found.began = true;
  return found;
}

}  // namespace edl::master
