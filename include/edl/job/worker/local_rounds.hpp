// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "edl/core/ledger.hpp"
#include "edl/core/span.hpp"
#include "edl/job/worker/links.hpp"
#include "edl/job/worker/remote.hpp"
#include "edl/job/worker/trainer.hpp"

namespace edl::worker {

/// Parameter servers to which a worker pushes a round of its own steps at once (--outer_steps, `ps::rounds`):
/// the minibatches, and how the worker's variables have changed. A push only remembers its minibatch; the
/// session makes the step in the variables here. A round ends when the session pulls again, or has nothing to
/// train. Until then its minibatches are `pending`. If this process is lost, others train them again.
///
/// Thread safety: as `remote_parameters`.
class local_rounds final : public remote_link {
 public:
  /// Both must outlive it.
  local_rounds(remote_parameters& servers, trainer& model) : servers_(servers), model_(model) {}

  std::uint64_t pull(std::span<float> variables) override;
  void pull_frozen(std::uint64_t version, std::span<float> variables) override;
  void doubt() override { servers_.doubt(); }
  pushed push(contribution const& minibatch, std::uint64_t version, view<float> gradients,
              view<float> state_change, std::span<sparse::row_gradients const> rows) override;
  std::uint32_t position(task_key const& task, std::uint32_t minibatches) override {
    return servers_.position(task, minibatches);
  }
  std::size_t pending() const override { return generation() == of_ ? waiting_.size() : 0; }
  void end_round() override;
  void idle(std::chrono::milliseconds timeout) override;

  std::uint64_t generation() const override { return servers_.generation(); }
  bool refresh() override { return servers_.refresh(); }
  void stop_when(std::function<bool()> stopping) { servers_.stop_when(std::move(stopping)); }

 private:
  remote_parameters& servers_;
  trainer& model_;
  std::vector<float> start_, change_;  // the variables that the round began with; their change
  std::uint64_t version_ = 0;          // of `start_`
  std::uint64_t of_ = 0;               // the generation of the round
  std::vector<contribution> waiting_;  // minibatches of the round
};

}  // namespace edl::worker

#ifdef EDL_HEADER_ONLY
#include "edl/job/worker/local_rounds.ipp"
#endif
