// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "edl/core/clock.hpp"
#include "edl/core/invariant.hpp"

namespace edl::controller {

/// Who of several controllers acts: the one whose name stands in a Lease (coordination.k8s.io/v1). Whether a
/// holder is still there is judged by the reader's own clock, from when it saw the Lease change. So clocks
/// may differ between machines, and only their pace counts. A holder stops when it could not renew for
/// `renew_deadline`, which is before anybody can take its place.
///
/// Without clock, threads and requests. Thread safety: distinct objects: safe. Shared objects: unsafe.
class election {
 public:
  struct options {
    std::chrono::milliseconds duration{10'000};  ///< others wait so long after the last renewal that they saw
    std::chrono::milliseconds renew_deadline{5'000};  ///< less than `duration`
    std::chrono::milliseconds retry{1'000};           ///< between tries to renew, or to take it
  };

  /// `identity`: unique among all controllers that there ever were. Throws usage_error unless
  /// 0 < retry < renew_deadline < duration, and duration is at least a second.
  election(std::string name, std::string space, std::string identity, options o);

  /// What to write, given the Lease as it is now (null: there is none). It is an object to create, or to put
  /// in the place of the one that was read. Nothing: another holds it. `wall`: RFC 3339 with microseconds.
  std::optional<nlohmann::json> propose(nlohmann::json const& lease, time_point now, std::string const& wall);

  /// The proposal was taken; it was sent at `sent` or later.
  void accepted(time_point sent) {
    invariant(!renewed_ || *renewed_ <= sent, "a lease is renewed later each time");
    renewed_ = sent;
  }

  /// Another was faster, or the Lease says that somebody else holds it.
  void lost() { renewed_.reset(); }

  /// Whether this one may act at `now`.
  bool leads(time_point now) const { return renewed_ && now < *renewed_ + options_.renew_deadline; }

  /// The end of its right, unless it is renewed.
  std::optional<time_point> until() const;

  /// What gives a Lease that this one holds to whoever comes; nothing where it does not hold it.
  std::optional<nlohmann::json> release(nlohmann::json const& lease, std::string const& wall) const;

  /// As the Lease said last; empty: nobody.
  std::string const& holder() const { return holder_; }
  std::string const& identity() const { return identity_; }

 private:
  std::string name_, space_, identity_;
  options options_;
  std::optional<time_point> renewed_;
  std::string holder_, seen_;  ///< `seen_`: what changes with each renewal
  std::optional<time_point> seen_at_;
};

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/election.ipp"
#endif
