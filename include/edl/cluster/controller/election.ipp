// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "edl/cluster/controller/election.hpp"
#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::controller {

EDL_INLINE election::election(std::string name, std::string space, std::string identity, options o)
    : name_(std::move(name)), space_(std::move(space)), identity_(std::move(identity)), options_(o) {
  using namespace std::chrono_literals;
  if (o.retry <= 0ms || o.retry >= o.renew_deadline || o.renew_deadline >= o.duration || o.duration < 1s)
    throw usage_error(fmt::format(
        "--lease_duration={} s, --lease_renew_deadline={} s, --lease_retry={} s: each must be less than the "
        "one before it, and the first at least 1 s",
        double(o.duration.count()) / 1000, double(o.renew_deadline.count()) / 1000,
        double(o.retry.count()) / 1000));
}

EDL_INLINE std::optional<time_point> election::until() const {
  if (!renewed_) return std::nullopt;
  return *renewed_ + options_.renew_deadline;
}

EDL_INLINE std::optional<nlohmann::json> election::propose(nlohmann::json const& lease, time_point now,
                                                           std::string const& wall) {
  using kubernetes::field;
  using kubernetes::text;
  auto const seconds = std::chrono::ceil<std::chrono::seconds>(options_.duration).count();
  nlohmann::json const fresh{
      {"holderIdentity", identity_}, {"leaseDurationSeconds", seconds}, {"renewTime", wall}};
  if (lease.is_null()) {
    holder_.clear();
    nlohmann::json made{{"apiVersion", "coordination.k8s.io/v1"},
                        {"kind", "Lease"},
                        {"metadata", {{"name", name_}, {"namespace", space_}}},
                        {"spec", fresh}};
    made["spec"]["acquireTime"] = wall;
    made["spec"]["leaseTransitions"] = 0;
    return made;
  }
  holder_ = text(field(lease, {"spec", "holderIdentity"}));
  bool const mine = holder_ == identity_;
  std::string const seen = holder_ + " " + text(field(lease, {"spec", "renewTime"})) + " " +
                           text(field(lease, {"metadata", "resourceVersion"}));
  if (!seen_at_ || seen != seen_) seen_ = seen, seen_at_ = now;
  if (!mine) {
    renewed_.reset();
    // Honour the duration that the holder wrote if it is longer than ours.
    auto const& given = field(lease, {"spec", "leaseDurationSeconds"});
    auto const theirs =
        given.is_number_integer() ? std::clamp<std::int64_t>(given.get<std::int64_t>(), 0, 3600) : 0;
    auto const wait = std::max<std::chrono::milliseconds>(options_.duration, std::chrono::seconds(theirs));
    if (!holder_.empty() && now < *seen_at_ + wait) return std::nullopt;
  }
  nlohmann::json next = lease;
  if (!next["spec"].is_object()) next["spec"] = nlohmann::json::object();
  next["spec"].update(fresh);
  if (!mine) {
    auto const& before = field(lease, {"spec", "leaseTransitions"});
    next["spec"]["acquireTime"] = wall;
    next["spec"]["leaseTransitions"] = (before.is_number_integer() ? before.get<std::int32_t>() : 0) + 1;
  }
  return next;
}

EDL_INLINE std::optional<nlohmann::json> election::release(nlohmann::json const& lease,
                                                           std::string const& wall) const {
  using kubernetes::field;
  using kubernetes::text;
  if (!lease.is_object() || text(field(lease, {"spec", "holderIdentity"})) != identity_) return std::nullopt;
  nlohmann::json next = lease;
  next["spec"]["holderIdentity"] = "";
  next["spec"]["renewTime"] = wall;
  next["spec"]["leaseDurationSeconds"] = 1;
  return next;
}

}  // namespace edl::controller
