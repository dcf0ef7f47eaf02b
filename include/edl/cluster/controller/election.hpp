// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "edl/core/clock.hpp"
#include "edl/core/invariant.hpp"

namespace edl::controller {

/// Elects the one controller that acts: the holder of a Lease (coordination.k8s.io/v1). A candidate measures
/// by its own clock how long ago it saw the Lease change. So the machines' clocks may differ; only their
/// rates must agree. A holder that fails to renew the Lease for `renew_deadline` stops acting, which is
/// before anybody else may take over.
///
/// Uses no clock, threads or requests. Thread safety: distinct objects: safe. Shared objects: unsafe.
class election {
 public:
  struct options {
    std::chrono::milliseconds duration{10'000};  ///< how long candidates wait after the last renewal seen
    std::chrono::milliseconds renew_deadline{5'000};  ///< less than `duration`
    std::chrono::milliseconds retry{1'000};           ///< between attempts to renew or to acquire
  };

  /// `identity`: unique among all controllers, past ones included. Throws usage_error unless 0 < retry <
  /// renew_deadline < duration, and duration is at least one second.
  election(std::string name, std::string space, std::string identity, options o);

  /// The Lease to write, given the current one (null: none exists). The caller creates it, or replaces the
  /// one that it read. Returns nothing while another candidate holds the Lease. `wall`: RFC 3339 with
  /// microseconds.
  std::optional<nlohmann::json> propose(nlohmann::json const& lease, time_point now, std::string const& wall);

  /// The server accepted the proposal, which was sent no earlier than `sent`.
  void accepted(time_point sent) {
    invariant(!renewed_ || *renewed_ <= sent, "a lease is renewed later each time");
    renewed_ = sent;
  }

  /// Another candidate was faster, or holds the Lease.
  void lost() { renewed_.reset(); }

  /// Whether this candidate may act at `now`.
  bool leads(time_point now) const { return renewed_ && now < *renewed_ + options_.renew_deadline; }

  /// When the right to act ends unless renewed.
  std::optional<time_point> until() const;

  /// The Lease to write to release it; nothing if this candidate does not hold it.
  std::optional<nlohmann::json> release(nlohmann::json const& lease, std::string const& wall) const;

  /// The holder according to the Lease last read; empty: nobody.
  std::string const& holder() const { return holder_; }
  std::string const& identity() const { return identity_; }

 private:
  std::string name_, space_, identity_;
  options options_;
  std::optional<time_point> renewed_;
  std::string holder_, seen_;  ///< `seen_`: the part that changes with each renewal
  std::optional<time_point> seen_at_;
};

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/election.ipp"
#endif
