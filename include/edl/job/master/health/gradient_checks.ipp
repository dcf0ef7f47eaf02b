// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/master/health/gradient_checks.hpp"

namespace edl::master {
namespace detail {

inline constexpr std::size_t compared_versions = 4;  // how far apart copies may be in what they have reported

}  // namespace detail

EDL_INLINE void gradient_checks::resume(known before) {
  before_ = known_ = std::move(before);
  copies_good_ = checkpoint_ = before_.copies;
  for (auto const& [worker, good] : before_.workers) checkpoint_ = std::max(checkpoint_, good);
}

EDL_INLINE void gradient_checks::joined(std::uint32_t worker, std::uint64_t version, bool before) {
  auto const it = before_.workers.find(worker);
  good_[worker] = !before ? std::max(version, checkpoint_) : it == before_.workers.end() ? 0 : it->second;
  note();
}

EDL_INLINE void gradient_checks::written(std::uint64_t version) {
  checkpoint_ = version;
  note();
}

// A rollback only returns to a checkpoint, so this changes seldom.
EDL_INLINE void gradient_checks::note() {
  auto const rounded = [&](std::uint64_t good, std::uint64_t old) {
    return good >= checkpoint_ ? checkpoint_ : std::min(good, old);
  };
  known now{.workers = {}, .copies = rounded(copies_good_, known_.copies)};
  for (auto const& [worker, good] : good_) {
    auto const old = known_.workers.find(worker);
    now.workers[worker] = rounded(good, old == known_.workers.end() ? good : old->second);
  }
  if (now == known_) return;
  known_ = std::move(now);
  ++changes_;
}

EDL_INLINE void gradient_checks::trained(std::uint32_t worker, task_key const& task, task_range const& range,
                                         std::vector<checked_minibatch> const& what,
                                         membership const& workers) {
  for (checked_minibatch const& m : what) {
    if (copies_) compare_copies(worker, m, workers);
    if (m.gradient == 0) continue;
    auto const old = checks_.find(worker);
    // Keep a check that is in doubt until it is settled.
    if (old != checks_.end() && (old->second.asked || old->second.answers.size() > 1)) continue;
    checks_[worker] = {{0, task, range, m.index, worker}, m.version, {{worker, m.weights, m.gradient}}};
  }
}

EDL_INLINE bool gradient_checks::may_answer(check const& c, std::uint32_t worker,
                                            membership const& workers) const {
  auto const kind = [&](std::uint32_t id) {
    member const* const m = workers.find(id);
    return m ? m->kind : std::string();
  };
  auto const has_answered = [&](std::uint32_t id) {
    return std::ranges::any_of(c.answers, [&](answer const& a) { return a.worker == id; });
  };
  std::string const wanted = kind(c.what.of);
  if (wanted.empty() || kind(worker) != wanted) return false;
  if (!has_answered(worker)) return true;
  bool const another = std::ranges::any_of(
      workers.all(), [&](auto const& w) { return w.second.kind == wanted && !has_answered(w.first); });
  // First the worker that trained it and then the other one are asked to repeat their answers.
  return c.answers.size() > 1 && !another && worker == c.answers[c.answers.size() - 2].worker;
}

EDL_INLINE std::optional<gradient_checks::order> gradient_checks::lease(std::uint32_t worker,
                                                                        membership const& workers) {
  for (auto& [of, c] : checks_) {
    if (c.asked || !may_answer(c, worker, workers)) continue;
    c.asked = worker;
    c.what.lease = ++next_lease_;
    return c.what;
  }
  return std::nullopt;
}

EDL_INLINE bool gradient_checks::holds(std::uint64_t lease, std::uint32_t worker) const {
  return std::ranges::any_of(
      checks_, [&](auto const& c) { return c.second.what.lease == lease && c.second.asked == worker; });
}

EDL_INLINE bool gradient_checks::answered(std::uint64_t lease, std::uint32_t worker,
                                          std::optional<checked_minibatch> const& result) {
  if (!holds(lease, worker)) return false;
  auto const it = std::ranges::find_if(checks_, [&](auto const& c) { return c.second.what.lease == lease; });
  check& c = it->second;
  c.asked.reset();
  if (result) {
    ++done_;
    c.answers.push_back({worker, result->weights, result->gradient});
    decide(c);
  } else if (c.answers.size() > 1) {
    found(c, {}, "the minibatch is no longer available to decide between them");
  }
  if (!result || c.answers.empty()) checks_.erase(it);
  return true;
}

// Clears the list of answers once the check is settled.
EDL_INLINE void gradient_checks::decide(check& c) {
  auto& a = c.answers;
  answer const& last = a.back();
  if (a.size() == 2) {
    if (!last.same(a[0])) return;
    if (auto const it = good_.find(c.what.of); it != good_.end())
      it->second = std::max(it->second, c.version);
    note();
  } else if (last.worker != a[0].worker && last.worker != a[1].worker) {
    bool const first = last.same(a[0]), second = last.same(a[1]);
    if (first || second)
      found(c, {a[first ? 1 : 0].worker},
            fmt::format("worker {} reports the same result as worker {}", a[first ? 0 : 1].worker,
                        last.worker));
    else
      found(c, {},
            fmt::format("worker {} reports a third result: the sums are not reproducible", last.worker));
  } else if (answer const& before = a[a.size() - 3]; !last.same(before)) {
    found(c, {last.worker}, "the second worker's result differs when it computes the minibatch again");
  } else {
    if (a.size() == 3) return;  // ask the other one again
    found(c, {}, "each repeats its own result; a third worker with this kind of processor would decide");
  }
  a.clear();
}

EDL_INLINE void gradient_checks::found(check const& c, std::vector<std::uint32_t> culprits,
                                       std::string const& how) {
  std::uint32_t const of = c.what.of, other = c.answers[1].worker;
  verdict v{.text = fmt::format("workers {} and {} differ in minibatch {} of task {} (version {}): {}", of,
                                other, c.what.minibatch, c.what.task.index, c.version, how),
            .culprits = std::move(culprits)};
  for (std::uint32_t const id : v.culprits) {
    v.text += fmt::format("; worker {} computes wrongly", id);
    auto const known = good_.find(id);
    invariant(known != good_.end(), "only a participating worker is found to compute wrongly");
    v.good_at = std::min(v.good_at.value_or(known->second), known->second);
  }
  found_ = std::move(v);
}

// Most copies are right. If there are only two, both are in doubt.
EDL_INLINE void gradient_checks::compare_copies(std::uint32_t worker, checked_minibatch const& what,
                                                membership const& workers) {
  auto& reported = weights_[what.version];
  reported[worker] = what.weights;
  while (weights_.size() > detail::compared_versions && weights_.begin()->first != what.version)
    weights_.erase(weights_.begin());
  std::map<std::uint64_t, std::vector<std::uint32_t>> groups;
  for (auto const& [id, weights] : reported) groups[weights].push_back(id);
  std::size_t const all = workers.all().size();
  if (groups.size() < 2) {
    if (reported.size() == all && all > 1) copies_good_ = std::max(copies_good_, what.version), note();
    return;
  }
  auto const most = std::ranges::max_element(groups, {}, [](auto const& g) { return g.second.size(); });
  bool const clear = 2 * most->second.size() > all;
  if (!clear && reported.size() < all) return;
  verdict v{.good_at = copies_good_};
  for (auto const& [id, weights] : reported)
    if (clear && weights != most->first) v.culprits.push_back(id);
  v.text =
      clear ? fmt::format("at version {} worker {}'s copy of the model differs from that of {} others",
                          what.version, fmt::join(v.culprits, ", "), most->second.size())
            : fmt::format("at version {} the workers' copies of the model differ, and no majority shares one",
                          what.version);
  found_ = std::move(v);
}

EDL_INLINE void gradient_checks::gone(std::uint32_t worker) {
  checks_.erase(worker);
  if (good_.erase(worker) > 0) note();
  for (auto& [version, told] : weights_) told.erase(worker);
  for (auto& [of, c] : checks_) {
    if (c.asked == worker) c.asked.reset();
    // A lost worker is not judged, nor is its successor with the same id: start over with another one.
    if (std::ranges::find(c.answers, worker, &answer::worker) != c.answers.end()) c.answers.resize(1);
  }
}

EDL_INLINE void gradient_checks::go_back_to(std::uint64_t version) {
  for (auto& [worker, good] : good_) good = std::min(good, version);
  copies_good_ = std::min(copies_good_, version);
  checkpoint_ = std::min(checkpoint_, version);
  note();
}

EDL_INLINE void gradient_checks::clear() {
  checks_.clear();
  weights_.clear();
}

}  // namespace edl::master
