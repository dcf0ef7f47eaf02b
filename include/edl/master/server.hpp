// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "edl/checkpoint/checkpoint.hpp"
#include "edl/checkpoint/manifest.hpp"
#include "edl/checkpoint/model_file.hpp"
#include "edl/core/layout.hpp"
#include "edl/core/log.hpp"
#include "edl/master/coordinator.hpp"
#include "edl/master/journal_keeper.hpp"
#include "edl/master/watchdog.hpp"
#include "edl/net/channel.hpp"
#include "edl/net/disk.hpp"
#include "edl/net/event.hpp"
#include "edl/net/node.hpp"
#include "edl/net/request.hpp"
#include "edl/wire/message.hpp"

namespace edl::wire {
class Cluster;  // edl/wire/edl.pb.h
class ClusterRequest;
class ConfigureRequest;
class CutOffRequest;
class Empty;
class Heartbeat;
class HeartbeatReply;
class JoinReply;
class JoinRequest;
class LeaveRequest;
class ScaleReply;
class ScaleRequest;
class Task;
class TaskReport;
class TaskReportReply;
class TaskRequest;
class VersionReport;
}  // namespace edl::wire

namespace edl::master {

struct server_options {
  job_options job;
  parameter_layout const& layout;  ///< outlives the server
  std::string checkpoint_dir;      ///< empty: none
  std::uint64_t keep_checkpoint_max = 0;
  std::string output;                          ///< directory for the trained model; empty: none
  std::string best;                            ///< for the best model, with `job_options::judges`
  checkpoint::manifest manifest;               ///< of every checkpoint, but for version and files
  master::journal journal;                     ///< read already
  std::optional<persisted_state> before = {};  ///< what was in it
  bool ignore_damaged_checkpoints = false;
  restore_point anew = {};                           ///< where it begins again when all are damaged
  checkpoint::permission allowed = {};               ///< to write checkpoints; throws when it is not
  std::chrono::milliseconds step_timeout{60'000};    ///< without a step, until it is told what is waited for
  std::chrono::milliseconds order_timeout{300'000};  ///< for who lives and cannot be reached, or for storage
  std::chrono::milliseconds final_timeout{10'000};   ///< for the storage of what the job ends with
  std::chrono::milliseconds storage_pause{1'000};    ///< between two tries
};

/// What the master asks of the process around it. All are called on the node's thread.
struct callbacks {
  std::function<void(role of, std::uint32_t id, std::uint32_t with)> replace;
  std::function<void(role of, std::uint32_t id, std::optional<std::uint32_t> instead_of)> start;
  std::function<void(role of, std::uint32_t id)> stop;
  /// With `job_options::judges`: whether the version is the best so far, and its model is to be written.
  std::function<bool(evaluation_result const&)> evaluated;
  std::function<void(std::string const& error)> ended;  ///< the job is over; empty: complete, or suspended
  /// What the job has been waiting for too long; empty: nothing any more. Told once at the start.
  std::function<void(std::string const& what)> waits = {};
  /// A result counts: the model is written, if it is the best. Returns what keeps it, for a thread that may
  /// wait for a disk, and returns true when the job is to end early.
  std::function<std::function<bool()>(evaluation_result const&)> judged = {};
};

/// The coordinator behind the net: calls and the clock become events, commands become calls to the servers.
/// Thread safety: only on the node's thread, `handle` included; the constructor on any.
class server {
 public:
  server(net::node& on, server_options options, callbacks around, logger log);

  /// A listener's handler.
  asio::awaitable<void> handle(net::request& r);

  /// Counts time; runs until the job is over.
  asio::awaitable<void> tick();

  /// The platform saw a process end.
  /// `number`: of the event, where the platform counts them.
  void exited(role of, std::uint32_t id, exit_kind kind, std::string const& why, std::uint64_t number = 0);

  /// The platform is about to take a worker away.
  void leaving(std::uint32_t worker, std::string const& why);

  /// A user wants another size: empty, or why not.
  std::string scale(scale_request const& r);

  /// What the platform has found, and that the job is to end so that it can go on: as the coordinator's.
  void adopt(found_processes const& those);
  void suspend();

  /// Begins no more tasks: the job ends as if these were all. `at`: as in `coordinator::stop`.
  void stop(std::uint64_t at);

  /// Ends the job with a reason that the process around it has.
  void fail(std::string const& reason);

  /// Where the master listens: for its successor.
  void listens_at(std::vector<std::string> addresses);

  /// Does `work` once the journal has all that has been decided: at once, where it has.
  void when_kept(std::function<void()> work);

  coordinator const& decisions() const { return coordinator_; }

 private:
  static constexpr std::chrono::seconds control_timeout{30}, disk_timeout{600};

  void run_commands();
  void remember();
  void perform(std::function<void()> const& work);
  asio::awaitable<void> announceable();
  void execute(find_restore_point const& c);
  void execute(configure_servers const& c);
  void execute(ask_version const& c);
  void execute(write_checkpoint const& c);
  void execute(release_frozen const& c);
  void execute(replace_process const& c);
  void execute(start_process const& c) { around_.start(c.of, c.id, c.instead_of); }
  void execute(stop_process const& c) { around_.stop(c.of, c.id); }
  void execute(evaluation_done const& c);
  void execute(finish_job const&);
  void execute(suspend_job const&);
  void execute(fail_job const& c);
  void execute(log_line const& c);

  asio::awaitable<void> configure(std::uint32_t id, configure_servers c);
  asio::awaitable<void> settle(std::uint64_t generation);
  asio::awaitable<void> checkpoint(write_checkpoint c);
  asio::awaitable<void> claim(version_report r);
  asio::awaitable<void> release(release_frozen c);
  asio::awaitable<void> finish();
  asio::awaitable<void> export_variables();
  asio::awaitable<void> judge(evaluation_result of, bool best);
  asio::awaitable<void> write_best(evaluated_version of);
  asio::awaitable<std::uint64_t> pull_copy(std::span<float> variables,
                                           std::vector<checkpoint::row_source>& tables);
  asio::awaitable<void> pause(std::chrono::milliseconds d = std::chrono::milliseconds(50));
  void carry(std::string what, std::function<asio::awaitable<void>()> work);
  /// What a search for a checkpoint has found.
  struct finding {
    std::optional<restore_point> point;
    std::string warning, unusable;  // why the job cannot go on
    std::string why;                // the file system would not say
  };
  finding look_for_checkpoint() const;  // on the disk's thread
  asio::awaitable<void> find(find_restore_point c);
  asio::awaitable<std::string> write(write_checkpoint c);
  void forget_gone();

  /// Whoever keeps a range of the model: its server, or every worker of the world; with `one`, of these the
  /// first whose copy went on.
  struct keeper {
    std::shared_ptr<net::channel> to;
    std::uint32_t range = 0;
    std::uint32_t id = 0;
    std::uint64_t incarnation = 0;
  };
  struct order_terms {
    char const* name = "";
    std::optional<std::uint64_t> generation = {};  // of which it is void when another begins
    std::chrono::milliseconds timeout{};           // 0: without end
    bool waits = true;                             // `not_ready` is no answer
  };
  struct waiting {
    keeper target;  // nobody: the storage
    std::string what, why;
    std::chrono::steady_clock::time_point since;
  };
  // One of those that are shown, for as long as it lives.
  class waiting_entry {
   public:
    waiting_entry(std::list<waiting>& all, waiting one)
        : all_(all), it_(all.insert(all.end(), std::move(one))) {}
    waiting_entry(waiting_entry const&) = delete;
    ~waiting_entry() { all_.erase(it_); }
    waiting* operator->() const { return &*it_; }

   private:
    std::list<waiting>& all_;
    std::list<waiting>::iterator it_;
  };

  /// Makes a call again until it is answered; throws `call_error`, `cancelled` when it is void: the member is
  /// gone, or its generation is.
  asio::awaitable<std::string> order(keeper to, net::outgoing what, order_terms terms);
  bool takes_part(keeper const& k) const;
  std::string waits(std::chrono::steady_clock::time_point now) const;
  void watch_steps(std::chrono::steady_clock::time_point now);
  asio::awaitable<std::uint64_t> version_of(keeper const& k);
  asio::awaitable<std::uint64_t> pull_ranges(std::vector<keeper> const& from,
                                             std::optional<std::uint64_t> frozen, std::span<float> variables);
  /// A keeper's rows of the tables: those of these hash slots, and how many of each table.
  struct row_part {
    keeper target;
    element_range slots;
    std::vector<std::uint64_t> rows;
  };
  asio::awaitable<std::vector<row_part>> row_parts(std::uint64_t version);
  asio::awaitable<std::vector<checkpoint::row_source>> row_sources(std::uint64_t version);
  asio::awaitable<void> write_model(std::string directory, view<float> variables,
                                    std::span<checkpoint::row_source const> tables, std::uint64_t version);
  std::vector<keeper> keepers(bool one = false) const;
  bool shares_rows() const;
  std::vector<keeper> claimants(std::uint64_t version) const;  // who has frozen it
  /// Asks each of them the same, about its own range.
  template <class Request>
  asio::awaitable<std::vector<std::string>> ask_all(std::vector<keeper> target, std::uint16_t method,
                                                    Request request, std::chrono::milliseconds timeout,
                                                    order_terms terms) {
    std::vector<std::string> messages;
    for (keeper const& k : target) {
      request.set_range(k.range);
      messages.push_back(wire::pack(request));
    }
    return ask_each(std::move(target), method, std::move(messages), timeout, terms);
  }
  asio::awaitable<std::vector<std::string>> ask_each(std::vector<keeper> target, std::uint16_t method,
                                                     std::vector<std::string> messages,
                                                     std::chrono::milliseconds timeout, order_terms terms);
  wire::ConfigureRequest configuration(std::uint32_t id, configure_servers const& c) const;
  static std::chrono::steady_clock::time_point now() { return std::chrono::steady_clock::now(); }

  // One for each method of the protocol that somebody may call (calls.ipp).
  template <class Request, class Reply>
  std::string answer(net::request& r, Reply (server::*how)(Request const&));
  /// A worker's request again is answered as it was.
  template <class Request, class Reply>
  std::string answer_once(net::request& r, Reply (server::*how)(Request const&));
  wire::JoinReply join(wire::JoinRequest const& m);
  wire::Cluster cluster(wire::ClusterRequest const& m);
  wire::HeartbeatReply heartbeat(wire::Heartbeat const& m);
  wire::Empty leave(wire::LeaveRequest const& m);
  wire::ScaleReply change_size(wire::ScaleRequest const& m);
  wire::Empty cut_off(wire::CutOffRequest const& m);
  wire::Task task(wire::TaskRequest const& m);
  wire::TaskReportReply report(wire::TaskReport const& m);
  wire::Empty version(wire::VersionReport const& m);
  asio::awaitable<std::string> enter(net::request& r);
  asio::awaitable<std::string> watch(net::request& r);
  bool stranger(role of, std::uint32_t id, std::uint64_t incarnation) const;
  void hung_up(role of, std::uint32_t id, std::uint64_t incarnation);

  net::node& node_;
  server_options options_;
  callbacks around_;
  logger log_;
  coordinator coordinator_;
  struct peer {
    std::uint64_t incarnation = 0;
    std::shared_ptr<net::channel> to;
  };
  std::map<std::uint32_t, peer> servers_;                          // or workers, where these keep the model
  std::map<std::pair<role, std::uint32_t>, std::uint64_t> calls_;  // watched so often
  struct numbered_answer {
    std::uint64_t incarnation = 0, number = 0;
    std::string text;
  };
  std::map<std::uint32_t, numbered_answer> answers_;  // by worker: its last request, which may come again
  std::set<std::array<std::uint64_t, 3>> versions_;   // that have been told: generation, version, what for
  net::event changed_;                                // told after each event
  std::uint64_t events_ = 0;
  struct remembered {
    std::array<std::uint64_t, 4> promised;  // to others, before they are told
    std::array<std::uint64_t, 3> rest;
    bool operator==(remembered const&) const = default;
  };
  std::optional<remembered> remembered_;  // what the journal is to be written for
  std::vector<std::string> addresses_;
  std::deque<std::function<void()>> unkept_;  // what waits for it
  std::list<waiting> waiting_;
  int claims_ = 0;                  // under way
  net::disk models_, checkpoints_;  // for files of models and of evaluations; for checkpoints
  journal_keeper keeper_;
  watchdog watchdog_;
  std::optional<std::string> shown_;  // of what is waited for
  bool ended_ = false;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/master/calls.ipp"
#include "edl/master/keepers.ipp"
#include "edl/master/orders.ipp"
#include "edl/master/row_parts.ipp"
#include "edl/master/server.ipp"
#endif
