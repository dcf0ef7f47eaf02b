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

#include "edl/base/net/channel.hpp"
#include "edl/base/net/node.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/log.hpp"
#include "edl/job/collective/group.hpp"
#include "edl/job/collective/meeting.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/ps/server.hpp"
#include "edl/job/ps/store.hpp"
#include "edl/job/replica/gpu_sum.hpp"
#include "edl/job/replica/pending_step.hpp"
#include "edl/job/replica/row_exchange.hpp"
#include "edl/job/replica/row_shares.hpp"
#include "edl/job/replica/step_log.hpp"
#include "edl/job/replica/step_sum.hpp"
#include "edl/job/train/setup/program.hpp"
#include "edl/job/worker/remote.hpp"

namespace edl::wire {
class World;  // edl/base/wire/edl.pb.h
}

namespace edl::replica {

/// A worker's own copy of the model, in a job that trains by all-reduce. A step is one sum (`step_sum`) of
/// all members' gradients, changes of the state, and identities of the minibatches; it begins while the
/// gradients are computed. Then every copy makes the same step and counts the same minibatches. When a world
/// ends, by a failure or by the master's decision, the step in progress is void (`rolled_back`). The copy
/// enters the next world, copies a newer state from others if its own is older, and continues.
///
/// If it starts without a copy while others train, it first follows them (`follower`). A model with shared
/// tables, or in the memory of GPUs, is copied while the next world waits.
///
/// If the GPUs of a world can be joined, they compute the sum (`gpu_sum`). The copy is then in their memory,
/// and steps are made there.
///
/// Tables that are not small are shared among the members (`row_shares`): each has some of the rows. A step
/// sends every minibatch's gradients of rows to every member, and each applies those of its own rows.
///
/// With --fixed_global_batch the number of minibatches in a step is the job's initial number of workers. A
/// member of a smaller world contributes several, and one of a larger world may be idle.
///
/// Thread safety: as a `parameter_link`, by one thread that is not the node's; `world_is_over` on the node's
/// thread.
class replica final : public worker::remote_link {
 public:
  struct dependencies {
    net::node& node;
    net::channel& master;
    collective::meeting& meeting;
    std::shared_ptr<ps::store> store;  ///< on the node's thread
    ps::server& server;
    train::program const& model;
    edl::job const& job;
    arena* there;  ///< the arena of the model's gradients; null: no GPU
    logger log;
    /// Called, on the node's thread, for versions that the store has frozen; only in the first member of a
    /// world.
    std::function<void(std::uint64_t generation, ps::push_result const&)> frozen;
    /// Does the preparations for a first pass, so that others need not wait for them later.
    std::function<void()> warm_up = [] {};
  };

  replica(worker::identity self, dependencies with);
  ~replica() override;

  std::uint64_t pull(std::span<float> variables) override;
  void pull_rows(sparse::minibatch_rows& rows) override;
  std::optional<std::uint64_t> in_place() const override;
  void pull_frozen(std::uint64_t version, std::span<float> variables) override;
  void ready(contribution const& minibatch, view<float> gradients, std::size_t first) override;
  worker::pushed push(contribution const& minibatch, std::uint64_t version, view<float> gradients,
                      view<float> state_change, std::span<sparse::row_gradients const> rows) override;
  std::uint32_t position(task_key const& task, std::uint32_t minibatches) override;
  void idle(std::chrono::milliseconds timeout) override;
  std::size_t pending() const override { return sum_.brought() + gpus_.brought(); }
  worker::lane_range lanes() const override;
  std::optional<std::uint64_t> rests_at() const override;
  void turn(std::uint32_t lane, bool last) override { place_ = lane, last_turn_ = last; }

  /// Enters the next world. Throws worker::given_up if the master has given this worker up, error if it
  /// cannot be reached.
  bool refresh() override;

  /// The number of its world; 0: none yet.
  std::uint64_t generation() const override { return number_; }

  /// The master is at generation `next`: this world is over.
  void world_is_over(std::uint64_t next);

  /// Whether it can copy the model from others while they continue.
  bool may_follow() const;

  /// Serves `wire::method::follow`. On the node's thread.
  asio::awaitable<void> handle(net::request& r) { return log_.handle(r); }

  /// Called on any thread from now on, until the node ends: true ends the world with its next step, and makes
  /// `refresh`, and waits for others longer than a step, throw `interrupted`.
  void stop_when(std::function<bool()> stopping);

 private:
  struct member {
    std::uint32_t id = 0;
    bool current = false;
    std::unique_ptr<net::channel> to;  // null: this member itself
  };

  /// While this object lives, this member waits for others.
  struct waiting {
    std::atomic<int>& count;
    explicit waiting(std::atomic<int>& of) : count(of) { ++count; }
    waiting(waiting const&) = delete;
    ~waiting() {
      int const left = --count;
      invariant(left >= 0, "no more waits end than have begun");
    }
  };

  void check() const;
  void blame(collective::broken const& e);
  asio::awaitable<void> watch_stop();
  wire::World enter();
  bool take_place(wire::World const& w);
  void copy_from(wire::World const& w);
  void restore(std::string const& checkpoint);
  bool share_rows(wire::World const& w);
  void begin(wire::World const& w);
  void join_gpus(std::shared_ptr<collective::group> const& group);
  void leave();
  void follow(wire::World const& w);
  void end_world(collective::group& group);
  void go_over();
  void step();
  ps::push_result apply(std::vector<contribution> const& all,
                        std::vector<std::vector<sparse::row_gradients>> const& rows);
  bool make_pending(wire::World const& w);
  net::reply await(net::started_call& call);
  std::vector<std::string> call_members(std::vector<member_call> const& calls);
  template <class F>
  auto on_node(F const& work);

  worker::identity self_;
  dependencies dependencies_;
  step_sum sum_;
  row_exchange rows_;
  row_shares shares_;
  gpu_sum gpus_;
  step_log log_;

  std::atomic<std::uint64_t> number_{0};
  std::atomic<std::uint64_t> over_{0};  // worlds below this one are over
  std::mutex lock_;                     // guards `group_`
  std::shared_ptr<collective::group> group_;
  std::vector<member> members_;  // by rank
  int rank_ = 0;
  std::optional<pending_step> pending_;
  std::optional<step_log::step> last_step_;  // of a world that ends with it
  bool current_ = false;                     // the store has the world's initial state
  bool copied_ = false;                      // the store holds a world's state
  bool finished_ = false;                    // the job is over
  bool ends_ = false;                        // its world has made its last step
  std::uint64_t copied_world_ = 0;           // the world of which the store is a copy
  std::uint64_t version_ = 0;                // version of the store
  std::optional<std::uint32_t> suspect_;
  std::size_t place_ = 0;  // of the current minibatch, among this member's places
  bool last_turn_ = true;
  ps::push_result last_;
  std::uint64_t here_ = 0;  // the version in the GPU's memory
  std::function<bool()> stopping_;
  std::atomic<int> waits_{0};
  std::atomic<duration> step_time_{};  // duration of the last step
  time_point stepped_{};               // when the last step was made
};

}  // namespace edl::replica

#ifdef EDL_HEADER_ONLY
#include "edl/job/replica/replica.ipp"
#endif
