// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "edl/base/net/address.hpp"
#include "edl/base/net/node.hpp"
#include "edl/base/net/stream.hpp"
#include "edl/job/collective/group.hpp"

namespace edl::collective {

/// The addresses of a member of a group, and its name in errors.
struct participant {
  std::string name;
  std::vector<net::address> addresses;
};

/// Forms groups of processes. Of two partners, the one with the lower rank opens the link. Links opened
/// before this process forms its group wait here. Groups are numbered; a number is used for one group only,
/// and later groups have greater numbers. Thread safety: safe; call `form` on a thread other than the node's.
class meeting {
 public:
  explicit meeting(net::node& on);
  meeting(meeting const&) = delete;
  meeting& operator=(meeting const&) = delete;
  ~meeting();

  /// Accepts peers' links: pass it to this process's listener.
  net::stream_handler handler();

  /// Links this process, member `rank` of `all`, to its partners. Throws `broken` if one does not connect
  /// within `timeout`, or `interrupt` is called with this number or a greater one.
  std::unique_ptr<group> form(std::uint64_t number, int rank, std::vector<participant> const& all,
                              std::chrono::milliseconds timeout, group_options o = {});

  /// Forms no group with this number, or a lower one, any more.
  void interrupt(std::uint64_t number);

 private:
  struct state;
  net::node& node_;
  std::shared_ptr<state> state_;
};

}  // namespace edl::collective

#ifdef EDL_HEADER_ONLY
#include "edl/job/collective/meeting.ipp"
#endif
