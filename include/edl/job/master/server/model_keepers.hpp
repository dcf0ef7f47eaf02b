// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "edl/base/net/channel.hpp"
#include "edl/job/master/coordinator.hpp"

namespace edl::master {

/// A keeper of a range of the model: its server, or a worker of the world.
struct keeper {
  std::shared_ptr<net::channel> to;
  std::uint32_t range = 0;
  std::uint32_t id = 0;
  std::uint64_t incarnation = 0;
};

/// Connections to the keepers of the model: servers or, with `replicas`, workers. `decisions` must outlive
/// it. Thread safety: distinct objects: safe. Shared objects: unsafe.
class model_keepers {
 public:
  model_keepers(coordinator const& decisions, bool replicas) : decisions_(decisions), replicas_(replicas) {}

  bool is_keeper(role of) const { return of == role::server || replicas_; }

  /// Call when a member has joined, with its addresses. Calls `connect` only for new members.
  template <class Connect>
  void joined(std::uint32_t id, std::uint64_t incarnation, Connect connect) {
    if (peer& mine = peers_[id]; mine.incarnation != incarnation) mine = {incarnation, connect()};
  }

  /// Closes the connections of members that are gone: pending calls to them fail.
  void forget_gone();

  /// Whether it is still a member.
  bool takes_part(keeper const& k) const;

  std::optional<keeper> find(std::uint32_t id, std::uint32_t range = 0) const;

  /// The keeper of each range. In a world these are all members or, with `one`, the first with the current
  /// copy.
  std::vector<keeper> all(bool one = false) const;

  /// The keepers that have frozen a version.
  std::vector<keeper> holders(std::uint64_t version) const;

 private:
  struct peer {
    std::uint64_t incarnation = 0;
    std::shared_ptr<net::channel> to;
  };

  coordinator const& decisions_;
  bool replicas_;
  std::map<std::uint32_t, peer> peers_;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/server/model_keepers.ipp"
#endif
