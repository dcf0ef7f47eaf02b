// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/garbage.hpp"

#include <algorithm>
#include <utility>

#include "kubernetes/api.hpp"
#include "kubernetes/quantity.hpp"

namespace edl::testing::kubernetes {
namespace {

json owners_of(json const& o) {
  json const owners = o["metadata"].value("ownerReferences", json());
  return owners.is_array() ? owners : json::array();
}

bool has_finalizer(json const& o, char const* name) {
  json const list = o["metadata"].value("finalizers", json::array());
  return std::ranges::find(list, name) != list.end();
}

void remove_finalizer(json& o, char const* name) {
  json& list = o["metadata"]["finalizers"];
  list.erase(std::ranges::find(list, name));
  if (list.empty()) o["metadata"].erase("finalizers");
}

// What a DELETE without options does.
void begin_deletion(store& in, type const& of, json const& o) {
  std::string const space = o["metadata"].value("namespace", ""), name = o["metadata"]["name"];
  if (of.plural == "pods") {
    bool const at_once = !o["spec"].contains("nodeName") || is_over(o);
    api::remove_pod(in, o, at_once ? 0 : o["spec"]["terminationGracePeriodSeconds"].get<std::int64_t>());
  } else if (has_finalizers(o)) {
    in.change_by(of, space, name, [](json& now) { now["metadata"]["deletionTimestamp"] = timestamp(); });
  } else {
    in.remove(of, space, name);
  }
}

}  // namespace

void garbage_collector::note(type const& of, object const& before, object const& after) {
  json const& any = after ? *after : *before;
  std::string const uid = any["metadata"]["uid"];
  place const at{&of, any["metadata"].value("namespace", ""), any["metadata"]["name"]};
  if (before)
    for (json const& owner : owners_of(*before))
      if (auto const it = dependents_.find(owner.value("uid", "")); it != dependents_.end()) {
        it->second.erase(at);
        if (auto const p = places_.find(it->first); p != places_.end()) next_.insert(p->second);
        if (it->second.empty()) dependents_.erase(it);
      }
  if (!after) {
    alive_.erase(uid);
    places_.erase(uid);
    if (auto const it = dependents_.find(uid); it != dependents_.end())
      next_.insert(it->second.begin(), it->second.end());
    return;
  }
  alive_.insert(uid);
  places_[uid] = at;
  for (json const& owner : owners_of(*after)) dependents_[owner.value("uid", "")].insert(at);
  if (!owners_of(*after).empty() || is_leaving(*after)) next_.insert(at);
}

void garbage_collector::note_all() {
  alive_.clear(), dependents_.clear(), places_.clear();
  for (type const* t : store_.types())
    for (object const& o : store_.list(*t)) note(*t, nullptr, o);
}

void garbage_collector::pass() {
  auto const held = store_.lock();
  do {
    if (seen_ < store_.oldest())
      note_all();
    else
      for (store::change const& c : store_.since(seen_)) note(*c.resource, c.before, c.after);
    seen_ = store_.version();
    for (place const& at : std::exchange(next_, {})) look_at(at);
  } while (store_.version() != seen_);
}

void garbage_collector::look_at(place const& at) {
  auto const& [of, space, name] = at;
  object const o = of->served ? store_.find(*of, space, name) : nullptr;
  if (!o) return;
  if (is_leaving(*o) && of->plural != "pods") return let_go(at, *o);
  json const owners = owners_of(*o);
  bool const owned = owners.empty() || std::ranges::any_of(owners, [&](json const& r) {
                       return alive_.contains(r.value("uid", ""));
                     });
  if (owned || is_leaving(*o)) return;
  begin_deletion(store_, *of, *o);
}

void garbage_collector::let_go(place const& at, json const& owner) {
  auto const& [of, space, name] = at;
  bool const foreground = has_finalizer(owner, "foregroundDeletion"), orphan = has_finalizer(owner, "orphan");
  if (!foreground && !orphan) return;
  std::string const uid = owner["metadata"]["uid"];
  auto const mine = dependents_.find(uid);
  bool blocked = false;
  if (mine != dependents_.end())
    for (place const& one : std::set<place>(mine->second)) {
      auto const& [kind, its_space, its_name] = one;
      object const o = store_.find(*kind, its_space, its_name);
      if (!o) continue;
      if (orphan) {
        store_.change_by(*kind, its_space, its_name, [&](json& now) {
          json left = json::array();
          for (json const& r : owners_of(now))
            if (r.value("uid", "") != uid) left.push_back(r);
          now["metadata"]["ownerReferences"] = left;
          if (left.empty()) now["metadata"].erase("ownerReferences");
        });
        continue;
      }
      for (json const& r : owners_of(*o))
        blocked |= r.value("uid", "") == uid && r.value("blockOwnerDeletion", false);
      if (is_leaving(*o)) continue;
      begin_deletion(store_, *kind, *o);
    }
  if (blocked) return;  // until the next change of what belongs to it
  object const now = store_.change_by(
      *of, space, name, [&](json& o) { remove_finalizer(o, orphan ? "orphan" : "foregroundDeletion"); });
  if (!has_finalizers(*now)) store_.remove(*of, space, name);
}

}  // namespace edl::testing::kubernetes
