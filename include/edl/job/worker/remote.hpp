// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "edl/base/net/blocking.hpp"
#include "edl/base/net/channel.hpp"
#include "edl/base/net/node.hpp"
#include "edl/base/net/status.hpp"
#include "edl/compute/sparse/divided_rows.hpp"
#include "edl/core/partition.hpp"
#include "edl/job/worker/links.hpp"

namespace edl::worker {

/// A worker's identity.
struct identity {
  std::uint32_t id = 0;
  std::uint64_t incarnation = 0;
};

/// The timeout of one call to the master: of one that it answers at once, and of any other. If the master is
/// absent, calls are retried.
inline constexpr std::chrono::seconds master_try{3}, master_call_timeout{30};

/// Whether a call failed because the master is absent: retry it, because a successor may start.
bool is_away(net::call_error const& e);

/// Calls the master, which may be absent for minutes. It retries until the master answers, or `stopping`,
/// which it calls meanwhile, has been true for some seconds; then it throws interrupted. Without `stopping`
/// it calls once.
net::reply ask_master(net::channel& master, net::outgoing const& what, std::function<bool()> const& stopping);

/// The parameter servers of a job: every call goes to all of them in parallel, one for each range of the
/// variables. Thread safety: use on one thread other than the node's, except `generation` and
/// `generation_is_over`.
class remote_parameters final : public remote_link {
 public:
  /// `self`: the worker, which must have joined. `bfloat16`: gradients of parameters are sent as bfloat16.
  remote_parameters(net::node& on, net::channel& master, identity self, parameter_layout const& of,
                    bool bfloat16 = false)
      : node_(on),
        master_(master),
        self_(self),
        elements_(of.size()),
        parameters_(of.parameters),
        borders_(of.borders),
        tables_(of.tables) {
    if (bfloat16) rounded_.resize(parameters_);
  }

  std::uint64_t pull(std::span<float> variables) override;
  void pull_rows(sparse::minibatch_rows& rows) override;
  std::uint64_t pull_with_rows(std::span<float> variables, sparse::minibatch_rows& rows) override;
  void pull_frozen(std::uint64_t version, std::span<float> variables) override;
  void doubt() override { doubted_ = true; }
  pushed push(contribution const& minibatch, std::uint64_t version, view<float> gradients,
              view<float> state_change, std::span<sparse::row_gradients const> rows) override {
    return push(std::span(&minibatch, 1), version, gradients, state_change, rows);
  }

  /// The same for several minibatches together (`ps::rounds`), in order. Each element counts those that it
  /// lacks, and makes as much of the step (`ps::store::push`).
  pushed push(std::span<contribution const> minibatches, std::uint64_t version, view<float> gradients,
              view<float> state_change, std::span<sparse::row_gradients const> rows);
  std::uint32_t position(task_key const& task, std::uint32_t minibatches) override;

  /// Called while `refresh` waits: true makes it throw `interrupted`.
  void stop_when(std::function<bool()> stopping) { stopping_ = std::move(stopping); }

  /// Waits until the servers are ready, and gets their addresses. True if their generation differs from the
  /// one known before.
  bool refresh() override;

  std::uint64_t generation() const override { return generation_; }

  /// Call when the master is at another generation: abandons calls to servers of the previous one, because a
  /// server may be silent.
  void generation_is_over(std::uint64_t next);

 private:
  struct server {
    std::unique_ptr<net::channel> to;
    std::uint32_t id = 0;  // number of the range
    element_range range;
    std::uint64_t ahead = 0;  // how many versions its newest pull was ahead of the oldest server
  };

  std::uint64_t pull_from(std::span<float> variables, std::optional<std::uint64_t> frozen,
                          sparse::minibatch_rows* with = nullptr);
  void divide(sparse::minibatch_rows& rows);
  void gather(sparse::minibatch_rows& rows);
  net::outgoing rows_call(server const& s, sparse::minibatch_rows& rows);
  template <class Make, class Take>
  void ask_all(Make make, Take take, sparse::minibatch_rows* with = nullptr);
  void set_under_way(std::vector<net::started_call>* calls);

  net::node& node_;
  net::channel& master_;
  identity self_;
  std::size_t elements_, parameters_;
  std::vector<std::size_t> borders_;
  std::vector<table_shape> tables_;
  std::optional<sparse::divided_rows> rows_;  // how rows are divided among the servers
  bool doubted_ = false;
  std::vector<std::uint16_t> rounded_;  // gradients as sent, in bfloat16; empty: sent as they are
  std::atomic<std::uint64_t> generation_{0};
  std::vector<server> servers_;
  std::function<bool()> stopping_;

  std::mutex lock_;         // guards the following
  std::uint64_t over_ = 0;  // generations below this one are over
  std::vector<net::started_call>* under_way_ = nullptr;
};

/// The master of a job. Thread safety: use on one thread other than the node's.
class remote_master final : public master_link {
 public:
  remote_master(net::channel& master, identity self, remote_link& parameters)
      : master_(master), self_(self), parameters_(parameters) {}

  /// Called while waiting for the master: true ends the wait.
  void stop_when(std::function<bool()> stopping) { stopping_ = std::move(stopping); }

  assignment next(std::uint32_t lane) override;
  bool report(outcome const& o) override;

 private:
  net::channel& master_;
  identity self_;
  remote_link& parameters_;
  std::function<bool()> stopping_;
  std::uint64_t requests_ = 0;      // requests so far; the number is sent with each
  std::optional<assignment> held_;  // came with a new generation: returned once the old leases are gone
};

}  // namespace edl::worker

#ifdef EDL_HEADER_ONLY
#include "edl/job/worker/remote.ipp"
#endif
