// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <limits>
#include <thread>

#include "edl/base/net/blocking.hpp"
#include "edl/base/net/status.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/ledger_message.hpp"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/generation.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/storage_error.hpp"
#include "edl/job/ps/copy.hpp"
#include "edl/job/replica/follower.hpp"
#include "edl/job/replica/on_node.hpp"
#include "edl/job/replica/replica.hpp"
#include "edl/job/train/setup/start.hpp"

namespace edl::replica {
namespace detail {

// The end of a link, or the master, reports a lost machine or process. This timeout detects members that
// hang; it is long, because a member may be in a long evaluation.
inline constexpr std::chrono::seconds silence{300};

inline constexpr std::chrono::seconds links_in{10}, copy_in{600};

// How often a member that waits for another's reply checks whether the world is over.
inline constexpr std::chrono::milliseconds look_up{20}, ask_again{2};

// How long a member that was asked to stop waits for others: about a step, and less than the grace period of
// whoever stops it.
inline constexpr std::chrono::milliseconds least_patience{1000}, most_patience{10'000};

/// Why a job always sums on the hosts; empty: it need not.
EDL_INLINE std::string keeps_to_ring(job const& j) {
  if (j.training.allreduce_transport == allreduce_transport::ring) return "--allreduce_transport=ring";
  if (j.training.fixed_global_batch)
    return "--fixed_global_batch fixes the order of sums, which NCCL does not";
  if (j.training.gradients == gradient_format::bfloat16) return "--gradients=bfloat16 is the ring's";
  if (j.training.moving_average > 0) return "--moving_average is kept by the hosts";
  return {};
}

EDL_INLINE std::size_t fixed_places(job const& j) {
  return j.training.fixed_global_batch ? std::size_t(j.processes.num_workers) : 0;
}

}  // namespace detail

template <class F>
auto replica::on_node(F const& work) {
  return edl::replica::on_node(dependencies_.node, work);
}

EDL_INLINE replica::replica(worker::identity self, dependencies with)
    : self_(self),
      dependencies_(std::move(with)),
      sum_({.parameters = dependencies_.model.layout.parameters,
            .state = dependencies_.model.layout.state,
            .bfloat16 = dependencies_.job.training.gradients == gradient_format::bfloat16,
            .places = detail::fixed_places(dependencies_.job)}),
      rows_(dependencies_.model.layout.tables, detail::fixed_places(dependencies_.job)),
      shares_({.tables = dependencies_.model.layout.tables,
               .copies = dependencies_.job.training.table_copies,
               .small = std::size_t(dependencies_.job.training.small_tables_mib) << 20,
               .store = dependencies_.store,
               .on_node = [this](std::function<void()> const& work) { on_node(work); },
               .call = [this](std::vector<member_call> const& calls) { return call_members(calls); },
               .name = [this](std::size_t rank) { return fmt::format("worker-{}", members_[rank].id); }}),
      gpus_(dependencies_.there, {.parameters = dependencies_.model.layout.parameters,
                                  .unwanted = detail::keeps_to_ring(dependencies_.job)}),
      log_(dependencies_.node.executor(), {.name = fmt::format("worker {}", self_.id),
                                           .step_bytes = dependencies_.model.layout.size() * sizeof(float),
                                           .most_bytes = std::size_t(64) << 20}) {}

EDL_INLINE replica::~replica() {
  std::lock_guard const guard(lock_);
  if (group_) group_->abort();
}

// Invariants whenever the worker's thread is not changing worlds.
EDL_INLINE void replica::check() const {
  invariant(members_.empty() || (rank_ >= 0 && std::size_t(rank_) < members_.size()),
            "a member has a rank in its world");
  invariant(members_.empty() || !members_[std::size_t(rank_)].to, "a member has no channel to itself");
  invariant(!group_ || std::size_t(group_->size()) == members_.size(),
            "a world's group has all of its members");
  invariant(!group_ || group_->rank() == rank_, "a member has one rank in its world and in its group");
  invariant(!gpus_.joined() || dependencies_.there, "only a member with a GPU sums on it");
  invariant(!gpus_.joined() || group_, "GPUs are joined within a group");
  invariant(sum_.brought() == 0 || gpus_.brought() == 0,
            "a step is summed in one place, by hosts or by GPUs");
}

// Remembers the member that broke a sum, to report it to the master when entering the next world.
EDL_INLINE void replica::blame(collective::broken const& e) {
  if (e.rank() < 0) return;
  invariant(std::size_t(e.rank()) < members_.size(), "only a member breaks a sum");
  suspect_ = members_[std::size_t(e.rank())].id;
}

// ---- Worlds ----

EDL_INLINE void replica::world_is_over(std::uint64_t next) {
  // Set this before interrupting anything: the interrupted calls look here for the reason.
  over_ = next;
  dependencies_.meeting.interrupt(next - 1);
  std::lock_guard const guard(lock_);
  if (group_ && number_ < next) group_->abort();
}

EDL_INLINE void replica::stop_when(std::function<bool()> stopping) {
  stopping_ = std::move(stopping);
  dependencies_.node.spawn([this] { return watch_stop(); });
}

// Another member may hang or be unreachable, and a process that was asked to stop has no time to find out. As
// if it had died, the step in progress is then void.
EDL_INLINE asio::awaitable<void> replica::watch_stop() {
  asio::steady_timer timer(dependencies_.node.executor());
  std::optional<time_point> since;
  for (;;) {
    timer.expires_after(detail::look_up);
    co_await timer.async_wait(asio::use_awaitable);
    auto const now = clock::now();
    if (waits_ == 0 || !stopping_()) {
      since.reset();
    } else if (!since) {
      since = now;
    } else if (now - *since >
               std::clamp<duration>(step_time_.load(), detail::least_patience, detail::most_patience)) {
      dependencies_.log.info(
          "shutting down: leaving during a step in which other workers keep this one waiting");
      co_return world_is_over(std::numeric_limits<std::uint64_t>::max());
    }
  }
}

EDL_INLINE wire::World replica::enter() {
  wire::EnterRequest request;
  request.set_worker(self_.id);
  request.set_incarnation(self_.incarnation);
  request.set_last(number_);
  request.set_copy(copied_);
  if (suspect_) request.add_suspect(*suspect_);
  on_node([&] {
    for (std::uint32_t const id : log_.brought()) request.add_brings(id);
  });
  if (copied_) {
    ps::full_snapshot const now = on_node([&] { return dependencies_.store->full_snapshot(); });
    request.set_version(now.version());
    request.set_of(copied_world_);
    wire::to_message(now.ledger(), *request.mutable_ledger());
  }
  for (;;) {
    if (stopping_ && stopping_()) throw worker::interrupted("shutting down between two worlds");
    net::outgoing const what{.method = wire::method::enter,
                             .message = wire::pack(request),
                             .timeout = worker::master_call_timeout,
                             .idempotent = true};
    auto const w = wire::unpack<wire::World>(
        worker::ask_master(dependencies_.master, what, stopping_).message, dependencies_.master.name());
    if (!w.known() && !w.over()) throw worker::given_up("the master has given this worker up");
    if (w.over() || w.number() > 0) return w;
  }
}

EDL_INLINE void replica::leave() {
  {
    std::lock_guard const guard(lock_);
    if (group_) group_->abort();
    group_.reset();
  }
  sum_.enter(nullptr);
  gpus_.leave();
  invariant(!group_ && pending() == 0, "nothing waits for a step outside of a world");
}

EDL_INLINE bool replica::refresh() {
  waiting const others(waits_);
  leave();
  ends_ = false;
  for (;;) {
    wire::World const w = enter();
    if (w.over()) return finished_ = true;
    suspect_.reset();
    bool const takes_part = std::any_of(w.members().begin(), w.members().end(),
                                        [&](auto const& m) { return m.id() == self_.id; });
    if (!takes_part)
      follow(w);
    else if (take_place(w))
      return true;
  }
}

// ---- Following ----

EDL_INLINE bool replica::may_follow() const {
  return dependencies_.job.command == command::train && dependencies_.model.layout.tables.empty() &&
         (!dependencies_.there || !detail::keeps_to_ring(dependencies_.job).empty());
}

// If following fails, this worker takes part in the next world, which then waits until it has a copy.
EDL_INLINE void replica::follow(wire::World const& w) {
  auto const& from = w.members(int(self_.id) % w.members_size());
  net::channel source(dependencies_.node, net::parse_addresses(from.addresses()),
                      fmt::format("worker-{}", from.id()));
  dependencies_.warm_up();
  copied_ = false;
  auto const copy = follower({.node = dependencies_.node,
                              .store = dependencies_.store,
                              .worker = self_.id,
                              .log = dependencies_.log,
                              .stopping = [this] { return stopping_ && stopping_(); },
                              .over = [this] { return over_.load(); }})
                        .follow(source, from.id());
  copied_ = copy.has_value();
  if (copy) {
    copied_world_ = copy->world;
    version_ = copy->version;
  }
  number_ = std::max(w.number(), copied_ ? copied_world_ : 0);
}

// Returns false if the world breaks before it begins.
EDL_INLINE bool replica::take_place(wire::World const& w) {
  number_ = w.number();
  members_.clear();
  rank_ = -1;
  last_step_.reset();
  std::vector<collective::participant> all;
  for (auto const& m : w.members()) {
    auto const where = net::parse_addresses(m.addresses());
    std::string const name = fmt::format("worker-{}", m.id());
    bool const self = m.id() == self_.id;
    if (self) rank_ = int(members_.size());
    members_.push_back({m.id(), m.current(),
                        self ? nullptr : std::make_unique<net::channel>(dependencies_.node, where, name)});
    all.push_back({name, where});
  }
  invariant(rank_ >= 0, "only a member takes a place in a world");
  current_ = members_[std::size_t(rank_)].current || make_pending(w);
  pending_.reset();
  try {
    auto formed = std::shared_ptr(
        dependencies_.meeting.form(w.number(), rank_, all, detail::links_in, {.silence = detail::silence}));
    {
      std::lock_guard const guard(lock_);
      group_ = formed;
    }
    check();
    sum_.enter(formed);
    rows_.enter(formed->size(), formed->rank());
    shares_.enter(formed->size(), formed->rank(), int(w.wanted()));
    // The world may have ended before there was a group to abort.
    if (over_ > w.number()) throw collective::broken("the next world is being formed");
    copy_from(w);
    if (!share_rows(w)) {
      leave();
      return false;
    }
    begin(w);
    join_gpus(formed);
    check();
  } catch (collective::broken const& e) {
    blame(e);
    dependencies_.log.warning(fmt::format("world {} does not begin: {}", count_of(w.number()), e.what()));
    leave();
    return false;
  }
  return true;
}

// The store now has the world's state: others may copy it.
EDL_INLINE void replica::begin(wire::World const& w) {
  copied_ = true;
  copied_world_ = w.number();
  // Report again what the last world's first member has frozen: it may have died before it could.
  on_node([&] {
    dependencies_.server.configured(w.number(), 0, dependencies_.store);
    ps::push_result const due = dependencies_.store->due();
    auto const first = std::ranges::find_if(members_, [](member const& m) { return m.current; });
    if (first != members_.end() && !first->to) dependencies_.frozen(w.number(), due);
    version_ = dependencies_.store->version();
    log_.begin(w.number(), version_);
  });
}

// Makes the step that this member was about to make, if a survivor has made it: its data is here, too.
EDL_INLINE bool replica::make_pending(wire::World const& w) {
  if (!pending_ || !pending_->leads_to(w.of(), w.version())) return false;
  on_node([&] {
    pending_->make(*dependencies_.store);
    version_ = dependencies_.store->version();
  });
  return true;
}

// Throws call_error, soon after the world is over.
EDL_INLINE net::reply replica::await(net::started_call& call) {
  while (!call.wait_for(detail::look_up))
    if (over_ > number_) call.cancel();
  return call.get();
}

// Calls other members and retries until they reply. Throws `broken` if the world ends or a member is lost.
EDL_INLINE std::vector<std::string> replica::call_members(std::vector<member_call> const& calls) {
  for (member_call const& c : calls)
    invariant(c.member < members_.size() && members_[c.member].to, "calls go to other members of the world");
  std::vector<net::started_call> started;
  for (member_call const& c : calls) started.push_back(net::start(*members_[c.member].to, c.request));
  std::vector<std::string> answers;
  for (std::size_t i = 0; i < calls.size();) try {
      answers.push_back(await(started[i]).message);
      ++i;
    } catch (net::call_error const& e) {
      // The other member may not know of this world yet.
      if (over_ > number_) throw collective::broken("its world is over");
      if (e.code() != net::status::not_ready) throw collective::broken(e.what(), int(calls[i].member));
      std::this_thread::sleep_for(detail::ask_again);
      started[i] = net::start(*members_[calls[i].member].to, calls[i].request);
    }
  return answers;
}

// Loads a checkpoint on this thread, because the node's thread must not wait for a disk. Retries while the
// storage fails, as servers do.
EDL_INLINE void replica::restore(std::string const& checkpoint) {
  auto const work = [&] {
    train::readable_model const here(checkpoint, train::cache_of(dependencies_.job));
    shares_.prepare(here.path());
    train::configure(*dependencies_.store, dependencies_.job, dependencies_.model, checkpoint);
  };
  auto const rest = [&](auto pause) {
    if (over_ > number_) throw collective::broken("its world is over");
    if (stopping_ && stopping_()) throw worker::interrupted("shutting down while the storage failed");
    std::this_thread::sleep_for(pause);
    return true;
  };
  when_storage_allows(work, rest, dependencies_.log);
}

// Brings the store to the world's initial state, except for the rows of tables that other members have.
EDL_INLINE void replica::copy_from(wire::World const& w) {
  std::vector<std::size_t> sources;
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (members_[i].current) sources.push_back(i);
  if (sources.empty()) {
    on_node([&] { dependencies_.server.withdraw(); });
    restore(w.restore());
    current_ = true;
  }
  if (current_) {
    if (dependencies_.store->rows().tables() > 0)
      on_node([&] { dependencies_.server.offers(w.number(), 0, dependencies_.store); });
    return;
  }
  // Different members copy from different sources, as far as there are enough.
  std::size_t const from = sources[std::size_t(rank_) % sources.size()];
  invariant(from != std::size_t(rank_), "a member that needs a copy takes it from another");
  auto const began = clock::now();
  std::vector<float> values(dependencies_.store->copy_size());
  wire::CopyRequest request;
  request.set_generation(w.number());
  net::outgoing what{.method = wire::method::copy,
                     .message = wire::pack(request),
                     .timeout = detail::copy_in,
                     .idempotent = true,
                     .patience = net::some_patience};
  what.into.push_back(std::as_writable_bytes(std::span(values)));
  std::string const answer = call_members({{from, std::move(what)}}).front();
  auto [segments, row_segments] = ps::segments_of_copy(answer, members_[from].to->name());
  on_node([&] { dependencies_.store->restore(std::move(segments), std::move(row_segments), values); });
  shares_.forget();
  dependencies_.log.info(copied_line(w.version(), members_[from].id, values.size(), began));
}

// Returns false if rows are lost. Then every copy is incomplete, and the master rolls back to a checkpoint.
EDL_INLINE bool replica::share_rows(wire::World const& w) {
  if (dependencies_.store->rows().tables() == 0) return true;
  std::shared_ptr<collective::group> const group = group_;
  invariant(group != nullptr, "rows are shared within a group");
  if (!shares_.gather(*group, w.number())) {
    dependencies_.log.warning(fmt::format(
        "world {}: rows of tables are lost with the workers that had them (--table_copies={}); the "
        "job goes back to its last checkpoint, if it has one",
        count_of(w.number()), dependencies_.job.training.table_copies));
    copied_ = false;
    return false;
  }
  // From here on this is a copy: once all have gathered, others may drop rows that it has fetched.
  copied_ = true;
  copied_world_ = w.number();
  shares_.resolve(*group);
  if (std::ranges::none_of(members_, &member::current)) return true;
  // Every member must have frozen what the first member reports to the master.
  on_node([&] { dependencies_.store->freeze_rows(); });
  group->barrier();
  return true;
}

// Lets the members' GPUs compute the sums, if all of them can; the copy then moves to the GPU's memory.
EDL_INLINE void replica::join_gpus(std::shared_ptr<collective::group> const& group) {
  if (dependencies_.job.command != command::train) return;
  bool const one = on_node([&] { return dependencies_.store->segments().size() == 1; });
  auto const not_joined = gpus_.enter(
      group, one ? "" : "its copy has parts with histories of their own, which a GPU does not keep");
  if (!not_joined) {
    on_node([&] { log_.begin(0, 0); });
    here_ = on_node([&] {
      dependencies_.store->move_to(*dependencies_.there);
      return dependencies_.store->version();
    });
    if (rank_ == 0)
      dependencies_.log.info(
          fmt::format("world {}: {} GPUs sum by {}", count_of(number_), group->size(), gpus_.describe()));
    return;
  }
  if (dependencies_.job.training.allreduce_transport == allreduce_transport::nccl)
    throw error(fmt::format("--allreduce_transport=nccl is impossible because of worker {}: {}",
                            not_joined->rank < 0 ? self_.id : members_[std::size_t(not_joined->rank)].id,
                            not_joined->why));
  on_node([&] { dependencies_.store->move_back(); });
  if (not_joined->with_gpu && not_joined->rank == rank_)
    dependencies_.log.info(
        fmt::format("world {}: the workers' hosts sum, not their GPUs, because of worker {}: {}",
                    count_of(number_), self_.id, not_joined->why));
}

// ---- Steps ----

EDL_INLINE void replica::step() {
  go_over();
  check();
  waiting const others(waits_);
  std::shared_ptr<collective::group> const group = group_;
  std::vector<contribution> all;
  std::vector<std::vector<sparse::row_gradients>> rows;
  bool complete = false;
  try {
    if (!group || over_ > number_) throw collective::broken("its world is over");
    // If a member is to leave, all end this world together with this step, and lose no computed gradients.
    all = gpus_.joined() ? gpus_.sum() : sum_.sum(log_.wants_end() || (stopping_ && stopping_()));
    if (dependencies_.store->rows().tables() > 0) {
      rows = rows_.exchange(*group);
      // No member gets here before all have made the previous step.
      if (shares_.divide())
        dependencies_.log.info(fmt::format(
            "version {}: the tables are no longer small; this worker has hash slots "
            "[{}, {}) of them from now on",
            version_, dependencies_.store->rows().slots().first, dependencies_.store->rows().slots().last));
    }
    // A slow task may have gone to another member, and both may train the same minibatch. All members see
    // that, and the next world leases the task once.
    for (std::size_t i = 0; i < all.size(); ++i)
      if (std::any_of(all.begin(), all.begin() + std::ptrdiff_t(i),
                      [&](contribution const& c) { return c.key == all[i].key; }))
        throw collective::broken(
            fmt::format("two members did minibatch {} of task {}", all[i].key.index, all[i].key.task.index));
    // If a barrier breaks, others may have passed it and make the step: keep its data (`make_pending`).
    if (complete = shares_.divided() && !all.empty(); complete) group->barrier();
    complete = false;
    if (!all.empty()) last_ = on_node([&] { return apply(all, rows); });
    step_time_ = clock::now() - std::exchange(stepped_, clock::now());
    if (last_step_) end_world(*group);
  } catch (collective::broken const& e) {
    if (complete) pending_.emplace(number_, version_ + 1, all, sum_.sums(), rows);
    blame(e);
    refresh();
    if (!finished_)
      throw worker::rolled_back(fmt::format("{}; world {} follows", e.what(), count_of(number_)));
  }
}

EDL_INLINE ps::push_result replica::apply(std::vector<contribution> const& all,
                                          std::vector<std::vector<sparse::row_gradients>> const& rows) {
  bool const last = !gpus_.joined() && sum_.ends();
  step_log::step made{.world = number_, .last = last, .minibatches = {}, .sums = {}};
  if (log_.wanted()) {
    made.minibatches = all;
    made.sums.assign(sum_.sums().begin(), sum_.sums().end());
  }
  ps::push_result const r =
      dependencies_.store->step(all, gpus_.joined() ? std::span<float>() : sum_.sums(), rows);
  invariant(r.version >= version_, "a step leads no copy back");
  here_ = version_ = r.version;
  shares_.stepped();
  dependencies_.server.stepped();
  made.version = r.version;
  invariant(!last_step_, "a world has one last step");
  // Followers get a world's last step only when all members have made it (`end_world`).
  last ? void(last_step_ = std::move(made)) : log_.add(std::move(made));
  if ((r.evaluate || r.checkpoint) && rank_ == 0) dependencies_.frozen(number_, r);
  return r;
}

// A follower has caught up. No member leaves before all have made the last step; after that the followers get
// it, too.
EDL_INLINE void replica::end_world(collective::group& group) {
  invariant(last_step_ && !ends_, "a world ends once, with its last step");
  try {
    group.barrier();
  } catch (collective::broken const&) {
    // Another member has passed the barrier and left, or is lost.
  }
  on_node([&] { log_.add(*std::move(last_step_)); });
  last_step_.reset();
  ends_ = true;
}

EDL_INLINE void replica::go_over() {
  if (!std::exchange(ends_, false)) return;
  refresh();
  if (!finished_)
    throw worker::rolled_back(fmt::format("a worker comes or goes; world {} follows", count_of(number_)),
                              true);
}

EDL_INLINE worker::lane_range replica::lanes() const {
  if (finished_ || number_ == 0) return {};
  auto const [first, count] = sum_.own();
  return {std::uint32_t(first), std::uint32_t(count), number_};
}

EDL_INLINE std::optional<std::uint64_t> replica::rests_at() const {
  bool const rests = number_ > 0 && version_ > 0 && pending() == 0 && dependencies_.job.rests_to_evaluate() &&
                     version_ % dependencies_.job.evaluation.evaluation_steps == 0;
  return rests ? std::optional(version_) : std::nullopt;
}

EDL_INLINE void replica::ready(contribution const& minibatch, view<float> gradients, std::size_t first) {
  if (!last_turn_ || over_ > number_) return;
  if (gpus_.joined()) {
    if (dependencies_.store->segments().not_yet_applied(minibatch)) gpus_.ready(minibatch, first);
    return;
  }
  // If some elements have counted the minibatch before, they are left out once all gradients are known.
  if (sum_.begun() || dependencies_.store->segments().not_yet_applied(minibatch))
    sum_.ready(place_, minibatch, gradients, first);
}

EDL_INLINE worker::pushed replica::push(contribution const& minibatch, std::uint64_t, view<float> gradients,
                                        view<float> state_change,
                                        std::span<sparse::row_gradients const> rows) {
  if (gpus_.joined()) {
    gpus_.bring(minibatch, dependencies_.store->segments().not_yet_applied(minibatch));
  } else if (place_ < sum_.own().count) {
    auto const added = sum_.bring(place_, minibatch, gradients, state_change);
    // A sum begins early only for a minibatch that no element has counted (`ready`).
    if (!sum_.begun()) dependencies_.store->segments().leave_out(minibatch, added);
    if (!rows.empty()) rows_.bring(place_, rows, float(minibatch.records));
  }
  invariant(pending() > 0 || place_ >= sum_.own().count, "the next step counts a pushed minibatch");
  if (last_turn_) step();
  return {.stale = false, .version = last_.version};
}

EDL_INLINE void replica::idle(std::chrono::milliseconds timeout) {
  if (number_ == 0) {
    refresh();
    return;
  }
  go_over();
  bool begun = true;
  try {
    if (group_ && over_ <= number_) begun = group_->begun(timeout);
  } catch (collective::broken const&) {
    // The next step meets the same error and handles it.
  }
  if (begun || pending() > 0) step();
}

EDL_INLINE std::optional<std::uint64_t> replica::in_place() const {
  return gpus_.joined() ? std::optional(here_) : std::nullopt;
}

EDL_INLINE std::uint64_t replica::pull(std::span<float> variables) {
  go_over();
  return on_node([&] {
    std::ranges::copy(dependencies_.store->current(), variables.begin());
    return dependencies_.store->version();
  });
}

// Only this thread makes steps, so no row changes meanwhile.
EDL_INLINE void replica::pull_rows(sparse::minibatch_rows& rows) {
  waiting const others(waits_);
  try {
    shares_.pull(rows, number_, version_);
  } catch (collective::broken const& e) {
    blame(e);
    refresh();
    throw worker::rolled_back(fmt::format("{}; world {} follows", e.what(), count_of(number_)));
  }
}

EDL_INLINE void replica::pull_frozen(std::uint64_t version, std::span<float> variables) {
  go_over();
  bool const here = on_node([&] {
    if (version == dependencies_.store->version()) {
      std::ranges::copy(dependencies_.store->averaged().variables(), variables.begin());
      return true;
    }
    if (!dependencies_.store->frozen().has_evaluation(version)) return false;
    std::ranges::copy(dependencies_.store->frozen().evaluation(version).variables(), variables.begin());
    return true;
  });
  if (here) return;
  // This member joined after that version.
  waiting const others(waits_);
  std::string why = "no other member";
  bool silent = false;
  for (member const& m : members_) {
    if (!m.to) continue;
    wire::PullRequest request;
    request.set_generation(number_);
    request.set_frozen(true);
    request.set_version(version);
    net::outgoing what{.method = wire::method::pull,
                       .message = wire::pack(request),
                       .timeout = detail::copy_in,
                       .idempotent = true,
                       .patience = net::some_patience};
    what.into.push_back(std::as_writable_bytes(variables));
    net::started_call call = net::start(*m.to, std::move(what));
    try {
      await(call);
      return;
    } catch (net::call_error const& e) {
      why = e.what();
      if (over_ > number_) break;
      // `internal`: that member lacks the version. Any other error is not the task's fault.
      if (e.code() != net::status::internal) {
        silent = true;
        suspect_ = m.id;
      }
    }
  }
  if (over_ > number_ || silent) {
    refresh();
    throw worker::rolled_back(fmt::format("{}; world {} follows", why, count_of(number_)));
  }
  throw data_error(fmt::format("version {} is not available from any worker: {}", version, why));
}

EDL_INLINE std::uint32_t replica::position(task_key const& task, std::uint32_t minibatches) {
  ps::task_position const at = on_node([&] { return dependencies_.store->segments().position(task); });
  return at.closed ? minibatches : at.applied;
}

}  // namespace edl::replica
