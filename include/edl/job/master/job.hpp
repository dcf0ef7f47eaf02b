// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "edl/core/generation.hpp"
#include "edl/core/ledger.hpp"
#include "edl/core/task_kind.hpp"
#include "edl/job/master/membership.hpp"
#include "edl/job/master/task_plan.hpp"
#include "edl/job/master/time.hpp"

namespace edl::master {

enum class job_type { training_only, training_with_evaluation, evaluation_only, prediction_only };

/// A state that servers can roll back to, and what had been applied to it. Default: initial values.
struct restore_point {
  std::string directory;  ///< of the checkpoint; empty: initial values
  std::uint64_t version = 0;
  ledger applied;                ///< the intersection of its servers' ledgers
  std::uint64_t generation = 0;  ///< of the state, in this job; 0: unknown, or another job's

  position at() const { return {generation, version}; }
};

/// The options of a master.
struct job_options {
  job_type type = job_type::training_only;
  std::vector<shard> training, validation, prediction;
  std::uint64_t minibatch_size = 64;
  std::uint64_t minibatches_per_task = 8;
  std::int64_t num_epochs = 1;         ///< ≤ 0: without end
  std::uint64_t steps = 0;             ///< for the servers' schedule; 0: unknown
  std::uint64_t max_step = 0;          ///< minibatches after which to stop; 0: no limit
  std::uint64_t evaluation_steps = 0;  ///< with training: evaluate reported versions, and the last one; 0: no
  duration evaluation_start_delay{}, evaluation_throttle{};
  /// Results of evaluations are used for decisions: each version is kept until `coordinator::judged`, and a
  /// checkpoint is written when all evaluations up to its version have been judged.
  bool judges = false;
  bool checkpoint = false;        ///< write the versions that servers report for it
  bool final_checkpoint = false;  ///< write the last version before the job is finished
  bool writes_model = false;      ///< the job is finished when `write_model` is done
  std::uint64_t seed = 0;
  bool shuffle = true;
  std::vector<std::string> flags;  ///< e.g. "--seed=1": processes with other values are refused
  std::uint32_t max_retries = 3;   ///< of a task, after errors
  float max_damaged = 1;           ///< share of records that may be skipped as damaged
  std::uint32_t num_workers = 1;
  std::uint32_t num_servers = 0;  ///< 0: the model is in the worker, and ready at once
  std::uint32_t ranges = 0;       ///< of the variables, on servers; 0: as many as servers
  unsigned server_copies = 1;     ///< servers that have the state of a range
  bool replicas = false;          ///< each worker has a copy, and they train in worlds
  std::uint32_t lanes = 0;        ///< for training tasks (`task_lanes`); 0: none
  /// Without servers: training pauses at a version that is evaluated until it has been judged.
  bool rests_to_evaluate = false;
  std::uint32_t worker_failures = 1;  ///< of each worker's lineage that are compensated by a new process
  std::uint32_t server_failures = 3;  ///< likewise
  bool starts_all = false;            ///< only processes that a platform has started for the job may join
  bool replace_slow = false;          ///< a worker too long at a task is replaced; otherwise only its task is
  bool leave_bad_nodes = false;       ///< a worker slower than its siblings hands over to another machine
  bool checks = false;                ///< a second worker recomputes some minibatches (`gradient_checks`)
  duration task_timeout = std::chrono::seconds(300);  ///< no task is too slow before
  /// A process without a sign of life for this long is lost; with the intervals of heartbeats and ticks it is
  /// detected within 5 s.
  duration silence = std::chrono::milliseconds(4500);
  /// A worker without a sign of life for this long, while all others of its world wait, is left out of the
  /// next world, and follows it when it is heard again.
  duration patience = std::chrono::seconds(2);
  /// A live worker that is at one minibatch for this long may hang (`membership::hanging`): it is replaced.
  duration hang = std::chrono::seconds(60);
  duration gathering = std::chrono::seconds(3);    ///< how long the first world waits for all workers
  duration absence = std::chrono::seconds(60);     ///< a worker that delays a world for this long is lost
  duration exit_grace = std::chrono::seconds(10);  ///< grace for the report that a lost process has ended
  /// If no member at all is heard, the master itself may be cut off: for this long it gives up no member.
  duration isolation = std::chrono::seconds(60);
  duration adoption =
      std::chrono::seconds(60);  ///< found processes that do not join within this time are replaced
  duration suspension = std::chrono::seconds(30);  ///< how long to wait for the newest state
  restore_point start;                             ///< where to begin, and the fallback
  std::uint64_t epoch = 0;                         ///< of its generations (`core/generation.hpp`)

  bool trains() const {
    return type == job_type::training_only || type == job_type::training_with_evaluation;
  }

  std::vector<shard> const& shards(task_kind k) const {
    return k == task_kind::training || k == task_kind::check ? training
           : k == task_kind::evaluation                      ? validation
                                                             : prediction;
  }
};

struct join_request {
  edl::role role = edl::role::worker;
  std::uint32_t id = 0;
  std::uint64_t incarnation = 0;
  std::vector<std::string> addresses;
  std::uint64_t layout = 0;                ///< digest of the model's layout
  std::uint64_t held = 0;                  ///< servers: the generation whose state they have; 0: none
  std::vector<std::uint32_t> ranges = {};  ///< of which they have it
  std::uint64_t heard = 0;                 ///< the newest generation that it knows, of any master
  std::vector<std::string> flags = {};     ///< its own values of `job_options::flags`
  std::string kind = {};  ///< of its processor and threads: sums are the same bits on two of one kind
  bool follows = false;   ///< a worker that copies the model first, while the others' world continues
  start_speeds speeds = {};
  std::uint64_t version = 0;  ///< servers: of their state
  bool may_follow = false;    ///< a worker that could copy the model while the others' world continues
};

struct join_reply {
  bool accepted = false;
  std::string reason;     ///< why not
  bool over = false;      ///< because the job has ended
  bool given_up = false;  ///< because this process has been given up: a new one may join
  bool spare = false;     ///< because the job has become smaller: not a failure
};

struct heartbeat_reply {
  bool known = false;     ///< false: given up, leave
  bool stranger = false;  ///< has not joined this master
  bool finished = false;
  bool spare = false;  ///< not known because the job no longer needs it: not a failure
  bool leave = false;  ///< a worker: others go on without it, so it hands its work back and exits
};

/// The factors of the learning rate, by the versions from which they apply.
using rate_factors = std::map<std::uint64_t, float>;

/// What follows from an evaluation's result.
struct verdict {
  bool stops = false;       ///< the job ends early
  rate_factors rates = {};  ///< including those of earlier evaluations
  std::string line = {};    ///< for the log, if the rate is reduced
};

struct task_reply {
  task_kind kind = task_kind::wait;
  std::uint64_t lease = 0;
  task_key key;
  task_range range;
  std::uint64_t generation = 0;
  std::uint64_t version = 0;  ///< evaluation: of the model
  bool frozen = false;  ///< evaluation: pull that frozen version; otherwise the current one, which rests
  std::uint32_t applied = 0;
  bool resumed = false;
  std::uint32_t until = 0;  ///< minibatches to apply in all
  float rate = 1;           ///< training: the factor of the learning rate
  bool rests = false;       ///< to wait, because no step is made before a version has been judged
  std::uint32_t of = 0;     ///< check: the worker that has trained minibatch `applied`
};

struct task_report {
  std::uint32_t worker = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t lease = 0;
  std::string error;            ///< empty: done
  std::vector<double> metrics;  ///< evaluation: sums
  bool returned = false;        ///< incomplete, without a failure
  std::uint32_t applied = 0;    ///< with `returned` or `error`: minibatches acknowledged by every server
  std::uint64_t skipped = 0;    ///< damaged records of the task that any worker skipped
  edl::trained trained = {};    ///< by the worker, since it started
  std::vector<checked_minibatch> checked = {};  ///< of the task
  bool wrong = false;                           ///< with `error`: a loss is not finite
  bool refused = false;                         ///< with `error`: because of a record's content
};

/// Server 0 has frozen a version.
struct version_report {
  std::uint64_t generation = 0, version = 0;
  bool evaluate = false, checkpoint = false;
};

}  // namespace edl::master
