// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "edl/base/net/call.hpp"
#include "edl/base/net/channel.hpp"

namespace edl::net {

/// A call that runs on the node's thread while this thread does something else. Thread safety: distinct
/// objects: safe. Shared objects: unsafe, except `cancel`.
class started_call {
 public:
  started_call(started_call&&) noexcept;
  started_call& operator=(started_call&&) noexcept;
  ~started_call();  ///< cancels an unfinished call and waits until its memory is no longer in use

  /// Sleeps until the call has ended; throws `call_error`. Once.
  reply get();

  void wait() const;                                 ///< sleeps until the call has ended
  bool wait_for(std::chrono::milliseconds d) const;  ///< likewise, at most for `d`: whether it has ended
  bool ready() const;
  void cancel();  ///< it ends soon, with `cancelled` unless it has ended already

 private:
  friend started_call start(channel&, outgoing);
  struct state;
  explicit started_call(std::shared_ptr<state> s);
  std::shared_ptr<state> state_;
};

/// Starts a call from any thread but the node's. The channel must outlive it.
started_call start(channel& to, outgoing what);

/// Makes a call from any thread but the node's and sleeps until it has ended; throws `call_error`.
reply wait(channel& to, outgoing what);

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/blocking.ipp"
#endif
