// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "edl/core/error.hpp"

namespace edl::net {

/// How a call ended. The values are the protocol's (`Failure.code`).
enum class status : std::uint32_t {
  ok = 0,
  cancelled = 1,          ///< by the caller, or because this side is stopping
  deadline_exceeded = 2,  ///< no reply in time; the peer may have acted or not
  unavailable = 3,        ///< the peer cannot be reached, or was lost before it replied
  unauthenticated = 4,    ///< a side could not prove that it knows the job's token
  invalid = 5,            ///< the request makes no sense to the peer, or its reply none to the caller
  unknown_method = 6,
  stale_generation = 7,  ///< the caller's view of the cluster is out of date: ask the master
  not_ready = 8,         ///< the peer cannot serve this yet; retry
  internal = 9,          ///< the peer's handler failed
};

/// The name of a status in logs; "unknown" for numbers that a newer peer may send.
std::string_view name(status s);

/// A call that got no reply. The text names the peer. If a handler throws it, the caller gets its code.
class call_error : public error {
 public:
  call_error(status code, std::string const& text) : error(text), code_(code) {}
  status code() const { return code_; }

 private:
  status code_;
};

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/status.ipp"
#endif
