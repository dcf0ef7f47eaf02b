// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "edl/core/clock.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/replica/gpu_sum.hpp"
#include "edl/job/replica/identities.hpp"

namespace edl::replica {
namespace detail {

/// Encodes bytes as numbers, two in a float, that a sum with zeros preserves.
inline void write_bytes(std::span<std::byte const> bytes, std::span<float> into) {
  for (std::size_t i = 0; i < into.size(); ++i)
    into[i] = float(unsigned(bytes[2 * i]) | unsigned(bytes[2 * i + 1]) << 8);
}

inline void read_bytes(view<float> from, std::span<std::byte> into) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    auto const both = unsigned(from[i]);
    into[2 * i] = std::byte(both & 0xff);
    into[2 * i + 1] = std::byte(both >> 8);
  }
}

/// How long a wait for the GPU polls without pauses.
inline constexpr std::chrono::milliseconds patient_after{2};

}  // namespace detail

/// Why a member's GPU cannot be joined, in order of precedence in messages.
enum class gpu_sum::refused : std::uint32_t { no, processor, unable, nccl, failed };

struct gpu_sum::member {
  refused why;
  gpu_identity gpu;
};

EDL_INLINE gpu_sum::gpu_sum(arena* there, options o)
    : there_(there), options_(o), buckets_(o.parameters, o.bucket_bytes), next_(buckets_.count()) {}

EDL_INLINE gpu_sum::~gpu_sum() = default;

EDL_INLINE std::string gpu_sum::describe() const {
  return fmt::format("NCCL {}.{}.{}", version_ / 10000, version_ / 100 % 100, version_ % 100);
}

EDL_INLINE void gpu_sum::check() const {
  invariant(!joined_ || group_, "GPUs are joined within a group");
  invariant(!joined_ || there_, "only a member with a GPU is joined");
  invariant(!joined_ || link_ || broken_, "GPUs that are joined have a link, or know how it broke");
  invariant(!link_ || !broken_, "a link that broke is gone");
  invariant(next_ <= buckets_.count(), "the next bucket to sum exists");
  invariant(joined_ || !mine_, "a minibatch is brought to GPUs that are joined");
}

EDL_INLINE void gpu_sum::leave() {
  joined_ = false;
  broken_.reset();
  link_.reset();
  group_.reset();
  mine_.reset();
  next_ = buckets_.count();
  check();
}

// ---- Joining ----

/// Exchanges the members' descriptions of themselves.
EDL_INLINE std::vector<gpu_sum::member> gpu_sum::introduce(refused why) {
  constexpr std::size_t of_uuid = 8, each = of_uuid + 3;
  auto const size = std::size_t(group_->size());
  std::vector<float> all(size * each);
  auto const of = [&](std::size_t rank) { return std::span(all).subspan(rank * each, each); };
  gpu_identity const self = there_ ? summands_.gpu->identity() : gpu_identity{};
  if (why == refused::no && self.nccl == 0) why = refused::nccl, failed_ = self.lacking;
  auto const mine = of(std::size_t(group_->rank()));
  detail::write_bytes(self.uuid, mine.first(of_uuid));
  mine[of_uuid] = float(self.nccl & 0xffff);
  mine[of_uuid + 1] = float(self.nccl >> 16);
  mine[of_uuid + 2] = float(why);
  group_->all_reduce(all);
  std::vector<member> members(size);
  for (std::size_t i = 0; i < size; ++i) {
    detail::read_bytes(of(i).first(of_uuid), members[i].gpu.uuid);
    members[i].gpu.nccl = int(of(i)[of_uuid]) | int(of(i)[of_uuid + 1]) << 16;
    members[i].why = refused(of(i)[of_uuid + 2]);
  }
  return members;
}

/// Distributes the id that the first member has drawn; zeros if it could not.
EDL_INLINE gpu_meeting gpu_sum::meet() {
  gpu_meeting where{};
  std::optional<error> failed;
  if (group_->rank() == 0) {
    try {
      where = summands_.gpu->draw_meeting();
    } catch (error const& e) {
      failed = e;
    }
  }
  std::vector<float> words(where.size() / 2);
  detail::write_bytes(where, words);
  group_->all_reduce(words);
  detail::read_bytes(words, where);
  if (failed) throw *failed;
  if (std::ranges::all_of(where, [](std::byte b) { return b == std::byte{}; }))
    throw error("NCCL: the first member could not create an identifier");
  return where;
}

EDL_INLINE void gpu_sum::join() {
  invariant(there_ && !link_, "a member with a GPU joins once");
  gpu_meeting const where = meet();
  link_ = summands_.gpu->join(where, group_->size(), group_->rank());
  wait([&] { return link_->ready(); }, options_.join_in);
  try_out();
}

/// NCCL connects members when it first computes a sum of some size. That takes time and needs all members, so
/// it must not happen during a pass.
EDL_INLINE void gpu_sum::try_out() {
  summands_.gpu->mark(int(buckets_.count()) + 1);
  for (float const weight : {1.0f, 0.0f}) {
    for (std::size_t i = buckets_.count(); i-- > 0;) {
      auto const [first, last] = buckets_[i];
      link_->sum(summands_.gradients.subspan(first, last - first), weight, int(buckets_.count()) + 1);
      wait([&] { return link_->ready(); }, options_.join_in);
    }
    link_->sum(summands_.state_change, weight, int(buckets_.count()) + 1);
    wait([&] { return link_->done(); }, options_.join_in);
  }
}

EDL_INLINE bool gpu_sum::everybody(bool well) {
  float failures = well ? 0.0f : 1.0f;
  group_->all_reduce({&failures, 1});
  return failures == 0;
}

EDL_INLINE std::optional<gpu_sum::refusal> gpu_sum::enter(std::shared_ptr<collective::group> group,
                                                          std::string const& unable) {
  leave();
  if (!options_.unwanted.empty()) return refusal{0, options_.unwanted, there_ != nullptr};
  group_ = std::move(group);
  std::vector<std::size_t> borders;
  for (std::size_t i = 0; i < buckets_.count(); ++i) borders.push_back(buckets_[i].first);
  bool const tries = there_ && unable.empty() && failed_.empty();
  // A member that will not sum asks for the memory, too, because it carries the GPU's name.
  if (there_) summands_ = there_->sum_with_others(tries ? borders : std::vector<std::size_t>{});
  auto const all = introduce(!there_            ? refused::processor
                             : !unable.empty()  ? refused::unable
                             : !failed_.empty() ? refused::failed
                                                : refused::no);
  auto const refuse = [&](int rank, std::string text) -> refusal {
    bool const gpus = std::ranges::any_of(all, [](member const& m) { return m.why != refused::processor; });
    std::string const own = rank != group_->rank() ? "" : unable.empty() ? failed_ : unable;
    if (there_) there_->sum_with_others({});
    leave();
    return {rank, own.empty() ? text : own, gpus};
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto const says = [&](char const* text) { return refuse(int(i), text); };
    switch (all[i].why) {
      case refused::no:
        break;
      case refused::processor:
        return says("it computes on the processor");
      case refused::unable:
        return says("its GPU cannot keep the variables");
      case refused::nccl:
        return says("it has no NCCL that will do");
      case refused::failed:
        return says("NCCL has failed there");
    }
    if (all[i].gpu.nccl != all[0].gpu.nccl)
      return refuse(int(i), fmt::format("its NCCL has version {}, the first worker's has {}", all[i].gpu.nccl,
                                        all[0].gpu.nccl));
    for (std::size_t k = 0; k < i; ++k)
      if (all[i].gpu.uuid == all[k].gpu.uuid) return says("it shares its GPU with another worker");
  }
  version_ = all[0].gpu.nccl;
  std::string why;
  try {
    join();
  } catch (collective::broken const&) {
    link_.reset();
    throw;
  } catch (error const& e) {
    why = e.what();
    link_.reset();
  }
  if (!everybody(why.empty())) {  // no member is lost, which would explain the error
    failed_ = why;
    return refuse(why.empty() ? -1 : group_->rank(), "NCCL has failed on another worker");
  }
  invariant(link_ != nullptr, "GPUs that have joined have a link");
  weight_ = 0;
  joined_ = true;
  check();
  return std::nullopt;
}

// ---- Steps ----

/// Waits until `done`, or until the group breaks. Throws if that takes too long.
template <class Done>
void gpu_sum::wait(Done done, std::chrono::milliseconds most) {
  auto const began = clock::now();
  for (auto looked = began; !done();) {
    auto const now = clock::now();
    if (now - looked >= std::chrono::milliseconds(1)) {
      looked = now;
      group_->watch();
    }
    if (now - began > most)
      throw error(fmt::format("NCCL: no data has arrived for {} s",
                              std::chrono::duration_cast<std::chrono::seconds>(most).count()));
    if (now - began > detail::patient_after)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    else
      std::this_thread::yield();
  }
}

/// NCCL notices a lost member, too, and reports that as an error of its own.
template <class Work>
void gpu_sum::blaming(Work work) {
  try {
    work();
  } catch (collective::broken const& e) {
    end(e);
  } catch (error const& e) {
    auto const until = clock::now() + options_.blame_in;
    try {
      while (clock::now() < until) {
        group_->watch();
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    } catch (collective::broken const& lost) {
      end(lost);
    }
    failed_ = e.what();
    end(collective::broken(failed_));
  }
}

EDL_INLINE void gpu_sum::end(collective::broken const& why) {
  link_.reset();
  broken_ = why;
  throw why;
}

// Sums the remaining buckets, down to this one.
EDL_INLINE void gpu_sum::add(std::size_t down_to, float weight, int mark) {
  invariant(link_ && down_to <= buckets_.count(), "buckets are summed over a link");
  while (next_ > down_to) {
    wait([&] { return link_->ready(); }, options_.sum_in);
    auto const [first, last] = buckets_[--next_];
    link_->sum(summands_.gradients.subspan(first, last - first), weight, mark);
  }
}

EDL_INLINE void gpu_sum::ready(contribution const& c, std::size_t first) {
  if (!link_) return;
  std::size_t const to = buckets_.final_from(first, next_);
  invariant(to <= next_ && !mine_, "a minibatch becomes ready before it is brought");
  weight_ = float(c.records);
  try {
    blaming([&] { add(to, weight_, int(to) + 1); });
  } catch (collective::broken const&) {
    // Keep the error; `sum` throws it.
  }
}

EDL_INLINE void gpu_sum::bring(contribution const& c, bool counts) {
  invariant(joined_ && !mine_, "a member brings one minibatch to a step of GPUs");
  if (!begun()) weight_ = counts ? float(c.records) : 0;
  mine_ = c;
}

EDL_INLINE std::vector<contribution> gpu_sum::sum() {
  if (broken_) throw collective::broken(*broken_);
  if (!link_ || (begun() && !mine_))
    throw collective::broken("a minibatch that a sum had begun with was given up");
  int const all_there = int(buckets_.count()) + 1;
  auto const size = std::size_t(group_->size());
  identities_.assign(size * detail::floats_per_contribution, 0.0f);
  auto const identity = [&](std::size_t rank) {
    return std::span(identities_)
        .subspan(rank * detail::floats_per_contribution, detail::floats_per_contribution);
  };
  if (mine_) detail::write_identity(*mine_, identity(std::size_t(group_->rank())));
  blaming([&] {
    // A minibatch without records has made no pass, and an earlier pass may still use the zeroed memory.
    if (weight_ == 0) summands_.gpu->mark(all_there);
    add(0, weight_, all_there);
    wait([&] { return link_->ready(); }, options_.sum_in);
    link_->sum(summands_.state_change, weight_, all_there);
    group_->all_reduce(identities_);
    wait([&] { return link_->done(); }, options_.sum_in);
  });
  std::vector<contribution> brought;
  for (std::size_t i = 0; i < size; ++i)
    if (auto const c = detail::read_identity(identity(i))) brought.push_back(*c);
  invariant(next_ == 0, "a sum that is whole has all buckets");
  mine_.reset();
  weight_ = 0;
  next_ = buckets_.count();
  check();
  return brought;
}

}  // namespace edl::replica
