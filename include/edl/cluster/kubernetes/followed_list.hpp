// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_set>

namespace edl::kubernetes {

/// "namespace/name" of an object; of one without a namespace: "name".
std::string key_of(nlohmann::json const& object);

std::string version_of(nlohmann::json const& object);

/// Whether version `a` of an object is older than `b`, of the same kind. Versions are numbers, which the API
/// server guarantees since 1.35; of versions that are not, none is older.
bool older(std::string const& a, std::string const& b);

/// The progress of the list and the watch of one kind of objects. Replies to other requests arrive
/// concurrently, in any order: the reply to a change may arrive after the watch has reported the object's
/// deletion.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class followed_list {
 public:
  void begin();
  /// Takes an object of the list or the watch.
  void take(std::string const& key, std::string const& version);
  /// The list is complete; `version`: its own, empty if it has none. Returns the keys of its objects. A known
  /// object that is not among them is gone, unless its version is newer than the list's.
  std::unordered_set<std::string> end(std::string const& version);

  /// Whether any list has been completed.
  bool complete() const { return complete_; }

  /// Whether an object of this version in a reply may be newer than what the watch has delivered. Returns
  /// false if the versions cannot be compared: the watch will deliver the object.
  bool is_news(std::string const& version) const;

 private:
  bool coming_ = false, complete_ = false;
  std::unordered_set<std::string> seen_;  // in the list being received
  std::string version_;                   // the newest delivered
};

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/followed_list.ipp"
#endif
