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

/// How far the list and the watch of one kind of objects have come. Answers to other requests come beside
/// them, in any order: the answer to a change may arrive after the watch has told of the object's deletion.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class followed_list {
 public:
  void begin();
  /// An object of the list, or of the watch.
  void take(std::string const& key, std::string const& version);
  /// The list has come; `version` is its own, empty where it has none. Returns the keys of its objects. A
  /// known object that is not among them is gone, unless its version is newer than the list's.
  std::unordered_set<std::string> end(std::string const& version);

  /// A list has come to its end, at some time.
  bool complete() const { return complete_; }

  /// Whether an answer of this version may say something that the watch has not told yet. One whose version
  /// cannot be compared says nothing: the watch will tell.
  bool is_news(std::string const& version) const;

 private:
  bool coming_ = false, complete_ = false;
  std::unordered_set<std::string> seen_;  // of the list that comes
  std::string version_;                   // the newest that was told
};

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/followed_list.ipp"
#endif
