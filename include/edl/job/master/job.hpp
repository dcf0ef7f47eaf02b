// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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

/// A state that servers can go back to, and what had been applied to it. By default: initial values.
struct restore_point {
  std::string directory;  ///< of the checkpoint; empty: initial values
  std::uint64_t version = 0;
  ledger applied;                ///< the intersection of its servers' ledgers
  std::uint64_t generation = 0;  ///< whose state it is, of this job; 0: not told, or another job's

  position at() const { return {generation, version}; }
};

/// What the master is to do.
struct job_options {
  job_type type = job_type::training_only;
  std::vector<shard> training, validation, prediction;
  std::uint64_t minibatch_size = 64;
  std::uint64_t minibatches_per_task = 8;
  std::int64_t num_epochs = 1;         ///< ≤ 0: without end
  std::uint64_t steps = 0;             ///< that servers plan their schedule for; 0: not known
  std::uint64_t max_step = 0;          ///< minibatches after which to stop; 0: no limit
  std::uint64_t evaluation_steps = 0;  ///< with training: evaluate what servers report, and the end; 0: no
  duration evaluation_start_delay{}, evaluation_throttle{};
  /// Results of evaluations decide on something: each version is held until `coordinator::judged`, and a
  /// checkpoint is written when all up to its version have been.
  bool judges = false;
  bool checkpoint = false;        ///< write the versions that servers report for it
  bool final_checkpoint = false;  ///< write the last version before the job is finished
  bool writes_model = false;      ///< the job is finished when `write_model` is done
  std::uint64_t seed = 0;
  bool shuffle = true;
  std::vector<std::string> flags;  ///< as "--seed=1": who was started with others is refused
  std::uint32_t max_retries = 3;   ///< of a task, after errors
  float max_damaged = 1;           ///< share of records that may be skipped as damaged
  std::uint32_t num_workers = 1;
  std::uint32_t num_servers = 0;  ///< 0: the model is in the worker, and ready at once
  std::uint32_t ranges = 0;  ///< that the variables are cut into, to be kept by servers; 0: as many as these
  unsigned server_copies = 1;  ///< servers that have the state of a range
  bool replicas = false;       ///< workers have a copy each, and train in worlds
  std::uint32_t lanes = 0;     ///< that training tasks are dealt out to (`task_lanes`); 0: none
  /// With lanes: no step follows a version that is to be evaluated before it has been judged.
  bool rests_to_evaluate = false;
  std::uint32_t worker_failures = 1;  ///< of each worker's lineage that are made good by a new process
  std::uint32_t server_failures = 3;  ///< likewise
  bool starts_all = false;            ///< no process takes part that a platform has not started for the job
  bool replace_slow = false;          ///< a worker too long at a task is replaced; otherwise only its task is
  bool leave_bad_nodes = false;  ///< a worker that is slow beside its siblings hands over to another place
  bool checks = false;  ///< some minibatches are computed by a second worker, too (`gradient_checks`)
  duration task_timeout = std::chrono::seconds(300);  ///< no task takes too long before
  /// A process without a sign of life for so long is lost: with the beats and the ticks, it is found within 5
  /// s.
  duration silence = std::chrono::milliseconds(4500);
  /// A worker that lives and is at one minibatch for so long may hang (`membership::hanging`): it is
  /// replaced.
  duration hang = std::chrono::seconds(60);
  duration gathering = std::chrono::seconds(3);    ///< the first world waits so long for all workers
  duration absence = std::chrono::seconds(60);     ///< who lets the others wait so long for a world is lost
  duration exit_grace = std::chrono::seconds(10);  ///< a lost process whose end is not told is replaced after
  /// The master itself may be cut off when no member at all is heard: so long it blames nobody.
  duration isolation = std::chrono::seconds(60);
  duration adoption =
      std::chrono::seconds(60);  ///< found processes that do not join for so long are replaced
  duration suspension = std::chrono::seconds(30);  ///< the newest state is waited for so long
  restore_point start;                             ///< where to begin, and what to fall back to
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
  std::uint64_t heard = 0;                 ///< the newest generation that it knows of, of any master
  std::vector<std::string> flags = {};     ///< that it was started with, of those in `job_options::flags`
  std::string kind = {};  ///< of its processor and threads: sums are the same bits on two of one kind
  bool follows = false;   ///< a worker that copies the model first, while the others' world goes on
  start_speeds speeds = {};
  std::uint64_t version = 0;  ///< servers: that their state has come to
};

struct join_reply {
  bool accepted = false;
  std::string reason;     ///< why not
  bool over = false;      ///< because the job has ended
  bool given_up = false;  ///< because this process has been given up: a new one may join
  bool spare = false;     ///< because the job has become smaller: nothing is wrong with the process
};

struct heartbeat_reply {
  bool known = false;     ///< false: given up, leave
  bool stranger = false;  ///< has not joined this master
  bool finished = false;
  bool spare = false;  ///< not known because the job needs it no more: nothing is wrong with it
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
  std::uint32_t until = 0;  ///< minibatches to be applied in all
  bool rests = false;       ///< to wait, because nobody makes a step before a version has been judged
  std::uint32_t of = 0;     ///< check: the worker that has trained minibatch `applied`
};

struct task_report {
  std::uint32_t worker = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t lease = 0;
  std::string error;            ///< empty: done
  std::vector<double> metrics;  ///< evaluation: sums
  bool returned = false;        ///< undone without fault
  std::uint32_t applied = 0;    ///< with `returned` or `error`: minibatches acknowledged by every server
  std::uint64_t skipped = 0;    ///< damaged records of the task that were left out, by whomever
  edl::trained trained = {};    ///< by the worker, since it started
  std::vector<checked_minibatch> checked = {};  ///< of the task
  bool wrong = false;                           ///< with `error`: a loss is not finite
  bool refused = false;  ///< with `error`: for what a record holds, as it is for whoever tries next
};

/// Server 0 has frozen a version.
struct version_report {
  std::uint64_t generation = 0, version = 0;
  bool evaluate = false, checkpoint = false;
};

}  // namespace edl::master
