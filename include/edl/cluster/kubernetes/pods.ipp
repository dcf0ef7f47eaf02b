// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "edl/cluster/kubernetes/followed_list.hpp"
#include "edl/cluster/kubernetes/pods.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/quantity.hpp"

namespace edl::kubernetes {
namespace detail {

inline bool over_quota(pods::refusal const& why) {
  return why.code == 403 && why.message.find("exceeded quota") != std::string::npos;
}

/// Whether a later attempt may succeed: there is no room now, or the server is overloaded.
inline bool passing(pods::refusal const& why) {
  return why.code == 0 || why.code == 429 || why.code >= 500 || why.reason == "AlreadyExists" ||
         over_quota(why);
}

/// How often the quota may refuse a required pod before a worker makes way for it: pods that are about to end
/// return their quota soon.
inline constexpr std::uint32_t patience = 3;

}  // namespace detail

EDL_INLINE bool pods::refusal::forbidden() const {
  return code == 403 && message.find("cannot create resource") != std::string::npos;
}

EDL_INLINE void pods::start(process_id who, std::optional<std::uint32_t> instead_of, time_point) {
  if (closed_) return;
  pod& p = pods_[who];
  if (auto const old = pods_.find({who.role, instead_of.value_or(who.id)}); old != pods_.end() && instead_of)
    p.index = old->second.index;
  else
    p.index = instead_of.value_or(who.id);
  if (process_id const before{who.role, instead_of.value_or(who.id)}; ends_.contains(before)) {
    commands_.emplace_back(pod_note{
        severity::info, who.role == role::worker ? "WorkerRelaunched" : "ServerRelaunched",
        who == before
            ? fmt::format("{} is started again: it {}", to_string(who), ends_[before])
            : fmt::format("{} replaces {}, which {}", to_string(who), to_string(before), ends_[before])});
    ends_.erase(before);
  }
  p.wanted = true;
  p.tries = 0;
  p.announced.clear();
  // A stop request for the previous pod does not apply to this one.
  if (p.creating && p.uid.empty()) p.stop_requested = false;
  if (p.uid.empty()) return p.creating ? void() : hold(who, p);
  p.recreate = true;
  discard(who, p);
}

EDL_INLINE bool pods::stands() const {
  std::uint32_t placed = 0, wanted = 0;
  for (auto const& [who, p] : pods_) {
    if (!p.wanted) continue;
    bool const has = p.placed && !p.uid.empty() && !p.over;
    if (who.role == role::server && !has) return false;
    wanted += who.role == role::worker;
    placed += who.role == role::worker && has;
  }
  return placed >= std::min(options_.least_workers, wanted);
}

EDL_INLINE void pods::look_at_copies() {
  if (options_.server_copies < 2) return;
  std::map<std::string, std::vector<std::string>> by_node;
  for (auto const& [who, p] : pods_) {
    if (who.role != role::server || !p.wanted) continue;
    if (!p.placed || p.uid.empty() || p.over) return;  // its node is not known yet
    by_node[p.node].push_back(to_string(who));
  }
  std::string now;
  for (auto const& [node, on] : by_node)
    if (on.size() >= options_.server_copies && !node.empty())
      now += fmt::format("{}{} are on node {}", now.empty() ? "" : "; ", fmt::join(on, ", "), node);
  if (now == together_) return;
  together_ = now;
  if (!now.empty())
    commands_.emplace_back(pod_note{
        severity::warning, "CopiesTogether",
        now + ": all copies of a part of the model may be lost with it, and the job then goes back to its "
              "newest checkpoint; give the cluster another node that takes servers"});
}

EDL_INLINE bool pods::needed(process_id who) const {
  std::uint32_t others = 0;
  for (auto const& [id, p] : pods_)
    others += id.role == role::worker && id != who && p.wanted && !p.over && !p.leaving && !p.held &&
              (p.creating || !p.uid.empty() || p.retry_at);
  return who.role == role::server || others < options_.least_workers;
}

/// Requests the pod now if the job requires it, otherwise once the least size is placed.
EDL_INLINE void pods::hold(process_id who, pod& p) {
  invariant(p.uid.empty() && !p.creating && !closed_,
            "a pod is awaited only if it neither exists nor is requested");
  p.retry_at.reset();
  p.held = true;
  if (needed(who) || stands()) create(who, p);
}

EDL_INLINE void pods::create_held() {
  if (closed_ || std::ranges::none_of(pods_, [](auto const& one) { return one.second.held; })) return;
  bool const all = stands();
  for (auto& [who, p] : pods_) {
    if (!p.held) continue;
    if (!all && !needed(who)) return;  // nor may the others be created
    create(who, p);
  }
}

/// Removes a worker that the job does not require, to free its place and quota.
EDL_INLINE void pods::make_way(process_id who) {
  pod* last = nullptr;
  process_id whose{};
  std::uint32_t workers = 0;
  for (auto& [id, p] : pods_) {
    if (id.role != role::worker || p.uid.empty() || p.over) continue;
    if (p.leaving || p.stop_requested) return;  // one is already leaving
    ++workers, last = &p, whose = id;
  }
  if (!last || workers <= options_.least_workers) return;
  std::string const why = fmt::format("made room for {} in the quota", to_string(who));
  last->leaving = true;
  ends_[whose] = why;
  commands_.emplace_back(pod_note{severity::warning, "MadeWay", fmt::format("{} {}", to_string(whose), why)});
  commands_.emplace_back(pod_leaving{whose, why});
  discard(whose, *last, options_.farewell);
}

EDL_INLINE void pods::look_at_missing() {
  std::string now;
  for (auto const& [who, p] : pods_)
    if (p.wanted && p.retry_at && !p.announced.empty() && now.empty() && needed(who))
      now = fmt::format("{} cannot be created yet: {}", to_string(who), p.announced);
  if (now == missing_) return;
  missing_ = now;
  commands_.emplace_back(pods_missing{std::move(now)});
}

EDL_INLINE void pods::discard(process_id who, pod const& p, std::chrono::seconds grace) {
  commands_.emplace_back(delete_pod{pod_name(options_.job, who), p.uid, grace});
}

EDL_INLINE void pods::create(process_id who, pod& p) {
  invariant(p.uid.empty() && !closed_, "a pod is created only if none exists and the job goes on");
  invariant(!p.creating, "a pod is requested once, until the reply");
  p.creating = true;
  p.held = p.placed = p.recreate = p.stop_requested = p.leaving = p.over = p.ran = p.left = false;
  p.version.clear();
  p.gone.clear();
  p.retry_at.reset();
  p.troubled_since.reset();
  role_spec const& s = spec(who.role);
  auto avoid = avoided_;
  for (auto const& [node, until] : evaded_)
    if (std::ranges::find(avoid, node) == avoid.end()) avoid.push_back(node);
  p.evades = avoid.size() > avoided_.size();
  p.pool = who.role == role::worker ? pool_ : std::string();
  commands_.emplace_back(create_pod{who, p.index, grown(s.request, who.role), grown(s.limit, who.role),
                                    std::move(avoid), p.pool});
}

EDL_INLINE std::string pods::avoid(process_id who, std::string const& why) {
  auto const it = pods_.find(who);
  if (it == pods_.end() || it->second.node.empty()) return {};
  std::string const& node = it->second.node;
  if (std::ranges::find(avoided_, node) != avoided_.end()) return {};
  avoided_.push_back(node);
  commands_.emplace_back(
      pod_note{severity::warning, "NodeAvoided",
               fmt::format("this job avoids node {} from now on: {} {}", node, to_string(who), why)});
  return node;
}

EDL_INLINE void pods::evade(process_id who, std::string const& why, time_point now) {
  auto const it = pods_.find(who);
  if (it == pods_.end() || it->second.node.empty()) return;
  if (!evaded_.insert_or_assign(it->second.node, now + options_.evasion).second) return;
  tell_of_evaded();
  commands_.emplace_back(
      pod_note{severity::warning, "NodeLeft",
               fmt::format("this job leaves node {}: {} {}", it->second.node, to_string(who), why)});
}

EDL_INLINE void pods::tell_of_evaded() {
  nodes_leaving all;
  for (auto const& [node, until] : evaded_) all.nodes.push_back(node);
  commands_.emplace_back(std::move(all));
}

EDL_INLINE void pods::look_at_evaded(time_point now) {
  if (std::erase_if(evaded_, [&](auto const& one) { return now >= one.second; }) == 0) return;
  tell_of_evaded();
  for (auto& [who, p] : pods_) {
    if (!p.evades || !p.wanted || p.uid.empty() || p.placed || p.over || p.stop_requested) continue;
    p.evades = false;
    discard(who, p);
    end(who, p, {.who = who, .outside = true, .words = "had no node while another one was about to go"});
  }
}

EDL_INLINE void pods::look_at_nodes() {
  std::map<std::uint32_t, std::string> now;
  for (auto const& [who, p] : pods_)
    if (auto const node = short_.find(p.node); node != short_.end() && who.role == role::worker && p.wanted &&
                                               !p.uid.empty() && !p.over && !p.leaving && !p.stop_requested)
      now[who.id] = fmt::format("runs on node {}, which has {}", node->first, node->second);
  if (now == pressed_) return;
  pressed_ = now;
  commands_.emplace_back(pods_pressed{std::move(now)});
}

EDL_INLINE void pods::look_at_pool() {
  std::map<std::uint32_t, std::string> now;
  for (auto& [who, p] : pods_) {
    bool const stays = pool_.empty() || p.pool == pool_;
    if (who.role != role::worker || stays || !p.wanted || p.uid.empty() || p.over || p.leaving ||
        p.stop_requested)
      continue;
    if (p.placed) {
      now[who.id] = "moves to the pool of nodes that was chosen";
    } else {
      discard(who, p);
      end(who, p, {.who = who, .outside = true, .words = "had no node when another pool was chosen"});
    }
  }
  if (now == moving_) return;
  moving_ = now;
  commands_.emplace_back(pods_moving{std::move(now)});
}

EDL_INLINE resources pods::grown(resources const& of, role what) const {
  resources more = of;
  auto const times = doublings_.find(what);
  invariant(times == doublings_.end() || times->second < 32,
            "memory is doubled no more often than the limit allows");
  if (auto const memory = more.find("memory"); memory != more.end() && times != doublings_.end())
    memory->second = grown_quantity(memory->second, 1u << times->second);
  return more;
}

EDL_INLINE void pods::stop(process_id who, std::chrono::seconds grace) {
  auto const it = pods_.find(who);
  if (it == pods_.end()) return;
  pod& p = it->second;
  p.wanted = p.recreate = p.held = false;
  p.retry_at.reset();
  if (p.over || (p.stop_requested && grace.count() > 0)) return;
  p.stop_requested = true;
  if (!p.uid.empty()) discard(who, p, grace);
}

EDL_INLINE void pods::close() {
  closed_ = true;  // first, so that nothing below requests a pod
  for (auto& [who, p] : pods_) {
    p.recreate = p.held = false;
    p.retry_at.reset();
    if (p.creating) p.wanted = false, p.stop_requested = true;
  }
}

EDL_INLINE void pods::stop_all(std::chrono::seconds grace, std::vector<process_id> const& left) {
  close();
  for (auto& [who, p] : pods_) {
    p.wanted = false;
    if (p.over || p.uid.empty()) continue;
    p.left = p.ran && !p.stop_requested && std::ranges::find(left, who) != left.end();
    if (p.left) continue;
    p.stop_requested = true;
    discard(who, p, grace);
  }
}

EDL_INLINE bool pods::any() const {
  return std::ranges::any_of(pods_, [](auto const& one) {
    pod const& p = one.second;
    return p.creating || (!p.uid.empty() && !p.over && !p.left);
  });
}

EDL_INLINE bool pods::creating() const {
  return std::ranges::any_of(pods_, [](auto const& one) { return one.second.creating; });
}

EDL_INLINE void pods::created(process_id who, std::string const& uid, std::string const& version) {
  auto const it = pods_.find(who);
  if (it == pods_.end()) return;
  pod& p = it->second;
  p.creating = false;
  made_ = true;
  p.tries = 0;
  if (p.gone == uid) {  // its end has been reported
    p.gone.clear();
    if (!p.uid.empty()) return;  // a different pod of that name has appeared meanwhile
    if (p.wanted && !closed_) return hold(who, p);
    pods_.erase(it);
    return;
  }
  if (p.uid != uid) p.version = version;
  p.uid = uid;
  // The master no longer wants the pod.
  if (!p.wanted)
    discard(who, p);
  else if (!p.recreate)  // otherwise the successor is wanted, and this one is to leave
    p.stop_requested = false;
}

EDL_INLINE void pods::refused(process_id who, refusal const& why, time_point now) {
  auto const it = pods_.find(who);
  if (it == pods_.end()) return;
  pod& p = it->second;
  p.creating = false;
  // The pod exists: the watch has reported it, and only a repeated request was refused.
  if (!p.uid.empty()) return p.wanted ? void() : discard(who, p);
  if (!p.wanted) return;
  bool const never = why.forbidden() && !made_;
  // No process of the job can be created: report that once, instead of each process's failure.
  if (never) commands_.emplace_back(not_allowed{why.message});
  if (never || (!detail::passing(why) && !why.forbidden())) {
    commands_.emplace_back(pod_note{severity::error, "CannotStart",
                                    fmt::format("{} cannot be created: {}", to_string(who), why.message)});
    return end(who, p, {.who = who, .code = 1, .words = "cannot be created: " + why.message});
  }
  auto const pause =
      std::min(options_.longest_pause, options_.first_pause * (1u << std::min(p.tries++, 10u)));
  p.retry_at = now + pause;
  if (detail::over_quota(why) && p.tries >= detail::patience && needed(who)) make_way(who);
  // The previous pod of that name may be about to go: report the refusal only if it stays.
  if (why.reason == "AlreadyExists" && p.tries < 6) return;
  std::string const what = why.code == 0 ? "unreachable" : why.message;
  if (p.announced == what) return;
  p.announced = what;
  commands_.emplace_back(pod_note{severity::warning, "CannotStart",
                                  fmt::format("{} cannot be created yet: {}", to_string(who), why.message)});
}

EDL_INLINE void pods::listed(std::vector<pod_status> const& all, time_point now, std::string const& version) {
  std::set<std::string> existing;
  for (pod_status const& s : all) existing.insert(s.uid);
  std::vector<pod_status> gone;
  for (auto const& [who, p] : pods_)
    if (!p.uid.empty() && !existing.contains(p.uid) && !older(version, p.version))
      gone.push_back({.who = who, .uid = p.uid});
  // Handle vanished pods first: a new pod may have the same name.
  for (pod_status const& s : gone) deleted(s, now);
  for (pod_status const& s : all) changed(s, now);
  if (std::exchange(found_, true)) return;
  pods_found found;
  for (auto const& [who, p] : pods_) {
    if (!p.over && !p.leaving) found.pods.running.push_back(who);
    if (who.role == role::worker) found.pods.next_worker = std::max(found.pods.next_worker, who.id + 1);
  }
  commands_.emplace_back(std::move(found));
}

EDL_INLINE void pods::changed(pod_status const& s, time_point now) {
  if (s.who.role == role::master) return;
  made_ = true;
  auto const known = pods_.find(s.who);
  bool const unwanted = known == pods_.end()
                            ? found_ || closed_
                            : !known->second.wanted && !known->second.creating && known->second.uid != s.uid;
  pod& p = pods_[s.who];
  if (unwanted && !s.over()) {
    p = {.index = s.index, .uid = s.uid, .stop_requested = true};
    return discard(s.who, p);
  }
  // An unknown pod is an earlier master's, unless a pending request has created it.
  if (p.uid != s.uid && !p.creating) p = {.index = s.index, .uid = {}, .wanted = true};
  p.uid = s.uid;
  p.version.clear();
  p.held = false;
  p.ran |= s.at == pod_status::phase::running;
  p.placed |= p.ran || !s.node.empty();
  if (!s.node.empty()) p.node = s.node;
  p.pool = s.pool;
  if (p.placed) create_held();
  if (p.over) return;
  if (s.over()) {
    platform::ending e = ending_of(s);
    if (s.out_of_memory() && !e.outside && !p.stop_requested) out_of_memory(s, e);
    if (s.lingers() && !s.terminating) discard(s.who, p, options_.farewell);
    return end(s.who, p, std::move(e));
  }
  if (s.terminating && !p.stop_requested && !std::exchange(p.leaving, true) && s.who.role == role::worker) {
    std::string const why = ending_of(s).words;
    ends_[s.who] = why;
    commands_.emplace_back(pod_leaving{s.who, why});
  }
  watch_trouble(s, p, now);
}

EDL_INLINE void pods::deleted(pod_status const& s, time_point) {
  auto const it = pods_.find(s.who);
  if (it == pods_.end() || it->second.uid != s.uid) return;
  pod& p = it->second;
  if (!p.over) {
    platform::ending e = ending_of(s);
    e.outside = true;
    if (e.words.empty()) e.words = "was deleted";
    end(s.who, p, std::move(e));
  }
  p.uid.clear();
  if (p.creating)
    p.gone = s.uid;  // the reply to its creation is pending; request its successor after that
  else if (p.recreate && !closed_)
    hold(s.who, p);
  else if (!p.wanted)
    pods_.erase(it);
}

EDL_INLINE void pods::end(process_id who, pod& p, platform::ending e) {
  p.over = true;
  p.wanted = p.recreate;  // its successor with that name is already wanted
  e.stop_requested = p.stop_requested;
  if (!p.stop_requested && !p.leaving) ends_[who] = describe(e);
  commands_.emplace_back(pod_ended{std::move(e)});
}

EDL_INLINE void pods::out_of_memory(pod_status const& s, platform::ending& e) {
  auto const limit = spec(s.who.role).limit.find("memory");
  if (limit == spec(s.who.role).limit.end() || s.memory.empty()) return;
  std::uint64_t const requested = bytes_of(limit->second), had = bytes_of(s.memory);
  std::uint32_t times = 0;
  while (times < 32 && (requested << times) < had) ++times;
  if (times + 1 > options_.most_doublings) return;
  auto& now = doublings_[s.who.role];
  now = std::max(now, times + 1);
  e.outside = true;
  commands_.emplace_back(pod_note{severity::warning, "OutOfMemory",
                                  fmt::format("{} {}: its successors get {}", to_string(s.who), e.words,
                                              grown(spec(s.who.role).limit, s.who.role)["memory"])});
}

EDL_INLINE void pods::watch_trouble(pod_status const& s, pod& p, time_point now) {
  std::string const what = trouble(s);
  if (what.empty()) {
    p.troubled_since.reset();
    return;
  }
  bool const pulled = s.unplaced.empty();
  if (pulled && !p.troubled_since) p.troubled_since = now;
  // The scheduler's counts of nodes change all the time; its reason does not.
  std::string const kind = s.unplaced.empty() ? s.waiting : "Unschedulable";
  if (p.announced != kind) {
    p.announced = kind;
    commands_.emplace_back(pod_note{severity::warning, "CannotStart",
                                    fmt::format("{} cannot start yet: {}", to_string(s.who), what)});
  }
  if (!pulled || p.stop_requested || (!hopeless(s) && now - *p.troubled_since < options_.pull_timeout))
    return;
  commands_.emplace_back(delete_pod{s.name, s.uid, std::chrono::seconds(0)});
  end(s.who, p, {.who = s.who, .code = 1, .words = "cannot start: " + what});
}

EDL_INLINE void pods::tick(time_point now) {
  if (closed_) return;
  for (auto& [who, p] : pods_)
    if (p.retry_at && now >= *p.retry_at && p.wanted && p.uid.empty() && !p.creating) hold(who, p);
  look_at_evaded(now);
  create_held();
  look_at_nodes();
  look_at_pool();
  look_at_missing();
  look_at_copies();
}

}  // namespace edl::kubernetes
