// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/replica/identities.hpp"
#include "edl/job/replica/step_sum.hpp"

namespace edl::replica {

EDL_INLINE step_sum::step_sum(options o) : options_(o), buckets_(o.parameters, o.bucket_bytes) {}

EDL_INLINE step_sum::~step_sum() {
  {
    std::lock_guard const guard(lock_);
    stopped_ = true;
    if (busy_) group_->abort();  // otherwise the thread, which is joined, would wait for members that hang
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

EDL_INLINE std::span<float> step_sum::term(std::size_t place) {
  invariant(place == 0 || place - 1 < more_.size(), "a term is one of this member's own places'");
  return place == 0 ? std::span(values_).first(elements()) : std::span(more_[place - 1]);
}

EDL_INLINE void step_sum::start_anew() {
  invariant(!busy_, "a step begins anew while nothing is summed");
  invariant(own_.first + own_.count <= places_ || own_.count == 0, "own places are among all places");
  mine_.assign(own_.count, std::nullopt);
  brought_ = 0;
  ahead_.reset();
  announced_ = ready_ = summed_ = buckets_.count();
}

EDL_INLINE void step_sum::enter(std::shared_ptr<collective::group> group) {
  std::unique_lock guard(lock_);
  ready_ = summed_;  // begins no further bucket
  changed_.wait(guard, [&] { return !busy_; });
  group_ = std::move(group);
  failed_ = nullptr;
  int const size = group_ ? group_->size() : 1, rank = group_ ? group_->rank() : 0;
  places_ = options_.places > 0 ? options_.places : std::size_t(size);
  own_ = group_ ? collective::share_of(places_, size, rank) : collective::share{};
  values_.resize(elements() + places_ * detail::floats_per_contribution + 1);
  more_.resize(std::max(own_.count, std::size_t{1}) - 1);
  for (auto& m : more_) m.resize(elements());
  views_.resize(own_.count);
  start_anew();
}

// Empty places count as zeros.
EDL_INLINE void step_sum::fill_gaps() {
  for (std::size_t i = 0; i < own_.count; ++i)
    if (!mine_[i] && !(ahead_ && ahead_->place == i)) std::ranges::fill(term(i), 0.0f);
}

EDL_INLINE void step_sum::ready(std::size_t place, contribution const& c, view<float> gradients,
                                std::size_t first) {
  if (!group_ || buckets_.count() == 1) return;
  if (!thread_.joinable()) try {
      thread_ = std::thread([this] { run(); });
    } catch (std::system_error const&) {
      return;  // the system has no thread to spare: sum afterwards
    }
  invariant(place < own_.count && !mine_[place], "a minibatch becomes ready before it is brought");
  invariant(!ahead_ || ahead_->place == place, "one minibatch of a step is summed ahead");
  if (!ahead_) {
    ahead_ = {place, float(c.records), gradients};
    fill_gaps();
  }
  std::size_t const before = announced_;
  announced_ = buckets_.final_from(first, announced_);
  invariant(announced_ <= before, "buckets become ready from the last to the first");
  if (announced_ == before) return;
  std::lock_guard const guard(lock_);
  ready_ = announced_;
  changed_.notify_all();
}

EDL_INLINE std::span<float> step_sum::bring(std::size_t place, contribution const& c, view<float> gradients,
                                            view<float> state_change) {
  invariant(place < mine_.size() && !mine_[place], "a place of a step takes one minibatch");
  invariant(gradients.size() <= options_.parameters && state_change.size() <= options_.state,
            "a minibatch brings no more numbers than the model has");
  auto const to = term(place);
  auto const weight = float(c.records);
  if (!ahead_ || ahead_->place != place)
    for (std::size_t i = 0; i < gradients.size(); ++i) to[i] = gradients[i] * weight;
  for (std::size_t i = 0; i < state_change.size(); ++i)
    to[options_.parameters + i] = state_change[i] * weight;
  mine_[place] = c;
  ++brought_;
  invariant(brought_ <= own_.count, "a member brings one minibatch for each of its places");
  return to;
}

EDL_INLINE void step_sum::reduce(collective::group& group, range r, bool bfloat16) {
  auto const of = [&](std::span<float> all) { return all.subspan(r.first, r.last - r.first); };
  if (options_.places > 0) {
    for (std::size_t i = 0; i < own_.count; ++i) views_[i] = of(term(i));
    invariant(views_.size() == own_.count, "each own place has its term in a sum");
    group.all_reduce_in_order(views_, places_, of(values_), bfloat16);
  } else {
    bfloat16 ? group.all_reduce_bfloat16(of(values_)) : group.all_reduce(of(values_));
  }
}

EDL_INLINE void step_sum::reduce_bucket(collective::group& group, std::size_t index) {
  range const r = buckets_[index];
  if (ahead_) {
    auto const to = term(ahead_->place);
    for (std::size_t i = r.first; i < r.last; ++i) to[i] = ahead_->gradients[i] * ahead_->weight;
  }
  reduce(group, r, options_.bfloat16);
}

EDL_INLINE void step_sum::run() {
  std::unique_lock guard(lock_);
  for (;;) {
    changed_.wait(guard, [&] { return stopped_ || (summed_ > ready_ && !failed_); });
    if (stopped_) return;
    invariant(group_ && summed_ <= buckets_.count(), "a bucket that is ready is summed in a group");
    auto const group = group_;  // `enter` waits for `busy_`, but let the group outlive the sum in any case
    std::size_t const index = summed_ - 1;
    std::exception_ptr why;
    busy_ = true;
    guard.unlock();
    try {
      reduce_bucket(*group, index);
    } catch (...) {
      why = std::current_exception();
    }
    guard.lock();
    invariant(busy_ && summed_ == index + 1, "one bucket is summed at a time");
    busy_ = false;
    failed_ = why;
    if (!why) summed_ = index;
    changed_.notify_all();
  }
}

EDL_INLINE void step_sum::await_buckets() {
  std::unique_lock guard(lock_);
  ready_ = 0;
  changed_.notify_all();
  changed_.wait(guard, [&] { return summed_ == 0 || failed_; });
  if (failed_) std::rethrow_exception(failed_);
  invariant(!busy_, "when all buckets are summed none is at work");
}

EDL_INLINE std::vector<contribution> step_sum::sum(bool ends) {
  if (!group_ || (ahead_ && !mine_[ahead_->place]))
    throw collective::broken("a minibatch that a sum had begun with was given up");
  auto const identities = std::span(values_).subspan(elements());
  auto const identity = [&](std::size_t place) {
    return identities.subspan(place * detail::floats_per_contribution, detail::floats_per_contribution);
  };
  if (!ahead_) fill_gaps();
  std::ranges::fill(identities, 0.0f);
  identities.back() = ends ? 1 : 0;
  for (std::size_t i = 0; i < own_.count; ++i)
    if (mine_[i]) detail::write_identity(*mine_[i], identity(own_.first + i));
  invariant(values_.size() == elements() + places_ * detail::floats_per_contribution + 1,
            "a sum has room for its elements, its places' identities and its members' requests to end");
  bool const in_order = options_.places > 0, at_once = buckets_.count() == 1 && !options_.bfloat16;
  range const rest{at_once ? 0 : options_.parameters, elements()};
  if (ahead_)
    await_buckets();
  else if (!at_once)
    for (std::size_t i = buckets_.count(); i-- > 0;) reduce_bucket(*group_, i);
  if (in_order) {
    if (rest.first < rest.last) reduce(*group_, rest, false);
    group_->all_reduce(identities);
  } else {
    group_->all_reduce(std::span(values_).subspan(rest.first));
  }
  ends_ = identities.back() > 0;
  std::vector<contribution> all;
  for (std::size_t i = 0; i < places_; ++i)
    if (auto const c = detail::read_identity(identity(i))) all.push_back(*c);
  std::lock_guard const guard(lock_);
  start_anew();
  return all;
}

}  // namespace edl::replica
