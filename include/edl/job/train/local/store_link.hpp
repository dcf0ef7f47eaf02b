// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "edl/job/ps/store.hpp"
#include "edl/job/worker/links.hpp"

namespace edl::train {

/// A store in the worker's own process, in place of servers over the network. Thread safety: as the store.
class store_link final : public worker::parameter_link {
 public:
  /// Calls `pushing` before every push, and `pushed` with its result. `in_place`: the trainer computes with
  /// the store's variables directly. The store must outlive this.
  store_link(
      ps::store& to, bool in_place, std::function<void(ps::push_result const&)> pushed,
      std::function<void()> pushing = [] {})
      : store_(to), in_place_(in_place), pushed_(std::move(pushed)), pushing_(std::move(pushing)) {}

  /// Calls `seen` with the gradients of each minibatch that has become part of a version.
  void watch(std::function<void(std::uint64_t version, view<float> gradients)> seen) {
    seen_ = std::move(seen);
  }

  /// Versions that are multiples of `steps` must be evaluated before the next step.
  void rest_every(std::uint64_t steps) { rests_every_ = steps; }

  std::optional<std::uint64_t> rests_at() const override {
    std::uint64_t const version = store_.version();
    bool const rests = rests_every_ > 0 && version > 0 && version % rests_every_ == 0;
    return rests ? std::optional(version) : std::nullopt;
  }
  std::optional<std::uint64_t> in_place() const override {
    return in_place_ ? std::optional(store_.version()) : std::nullopt;
  }
  std::uint64_t pull(std::span<float> variables) override;
  void pull_frozen(std::uint64_t version, std::span<float> variables) override;
  void pull_rows(sparse::minibatch_rows& rows) override;
  worker::pushed push(contribution const& minibatch, std::uint64_t version, view<float> gradients,
                      view<float> state_change, std::span<sparse::row_gradients const> rows) override;
  std::uint32_t position(task_key const& task, std::uint32_t minibatches) override;

 private:
  ps::store& store_;
  bool in_place_;
  std::uint64_t rests_every_ = 0;
  std::function<void(ps::push_result const&)> pushed_;
  std::function<void()> pushing_;
  std::function<void(std::uint64_t, view<float>)> seen_;
};

/// A frozen version, or the current one if it is not frozen, at the end of a job.
ps::snapshot frozen_or_current(ps::store& of, std::uint64_t version);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/local/store_link.ipp"
#endif
