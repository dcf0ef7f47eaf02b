// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "kubernetes/store.hpp"

namespace edl::testing::kubernetes {

/// Deletes what belongs to objects that are gone, and lets objects go that wait for what belongs to them.
/// Each pass looks at what has changed since the last one. Thread safety: on one thread.
class garbage_collector {
 public:
  explicit garbage_collector(store& s) : store_(s) {}
  void pass();

 private:
  using place = std::tuple<type const*, std::string, std::string>;  // kind, namespace, name
  void note(type const& of, object const& before, object const& after);
  void note_all();
  void look_at(place const& at);
  void let_go(place const& at, json const& owner);

  store& store_;
  std::uint64_t seen_ = 0;
  std::unordered_set<std::string> alive_;                        // uids
  std::unordered_map<std::string, std::set<place>> dependents_;  // by the uid of an owner
  std::unordered_map<std::string, place> places_;                // by uid
  std::set<place> next_;                                         // to be looked at
};

}  // namespace edl::testing::kubernetes
