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

/// Where others reach a member of a group, and what errors call it.
struct participant {
  std::string name;
  std::vector<net::address> addresses;
};

/// Where processes meet to form groups. Of two partners, the one of lower rank opens the link. What is opened
/// before this process forms its group waits here. Groups are numbered; a number is used for one group of
/// all, and greater numbers come later. Thread safety: safe; `form` on a thread that is not the node's.
class meeting {
 public:
  explicit meeting(net::node& on);
  meeting(meeting const&) = delete;
  meeting& operator=(meeting const&) = delete;
  ~meeting();

  /// Takes what peers open: the listener of this process hands it over.
  net::stream_handler handler();

  /// Links this process, member `rank` of `all`, to its partners. Throws `broken` when one does not come
  /// within `timeout`, or `interrupt` is called with this number or a greater one.
  std::unique_ptr<group> form(std::uint64_t number, int rank, std::vector<participant> const& all,
                              std::chrono::milliseconds timeout, group_options o = {});

  /// No group with this number, or a lower one, is formed any more.
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
