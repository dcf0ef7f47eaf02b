// SPDX-License-Identifier: Apache-2.0
#include "edl/job/config/idle_flags.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "job/config/resolved.hpp"

namespace idle_flags_test {

namespace {

using words = std::vector<std::string>;

/// The names of the flags that a command line is told to do nothing.
std::set<std::string> idle(words line) {
  std::set<std::string> names;
  for (std::string const& note : resolved(line).notes) {
    CHECK(note.rfind("--", 0) == 0);
    CHECK(note.find(" does nothing here: ") != std::string::npos);
    CHECK(names.insert(note.substr(2, note.find(' ') - 2)).second);  // one line for each
  }
  return names;
}

std::set<std::string> training(words more) {
  more.insert(more.begin(), {"train", "--training_data=d"});
  return idle(more);
}

std::string const local = "--distribution_strategy=Local", sums = "--distribution_strategy=AllreduceStrategy",
                  servers = "--distribution_strategy=ParameterServerStrategy";

/// Every flag that belongs to one strategy, or to one mode of it, with a value that is not its default.
struct owned {
  std::string flag;
  bool with_servers, asynchronous, summed, alone;  // whether it does something there
};
owned const all[] = {
    {"--use_async", true, true, false, false},
    {"--grads_to_wait=2", true, false, false, true},
    {"--sync_version_tolerance=2", true, false, false, false},
    {"--get_model_steps=2", false, true, false, false},
    {"--gradients=bfloat16", true, true, true, false},
    {"--fixed_global_batch", false, false, true, false},
    {"--allreduce_transport=ring", false, false, true, false},
    {"--allreduce_transport=nccl", false, false, true, false},
    {"--table_copies=1", false, false, true, false},
    {"--small_tables_mib=1", false, false, true, false},
    {"--verify_gradients=0.01", true, true, true, false},
    {"--leave_bad_nodes", true, true, true, false},
    {"--ps_ranges=3", true, true, false, false},
    {"--relaunch_on_worker_failure=2", true, true, true, false},
    {"--master_timeout=60", true, true, true, false},
    {"--preemption_notice=file:/notice", true, true, true, false},
    {"--host=0.0.0.0", true, true, true, false},
    {"--port=1234", true, true, true, false},
    {"--metrics_port=1234", true, true, true, false},
    {"--transport_security=none", true, true, true, false},
};

}  // namespace

TEST_CASE("a flag of another strategy is told in one line to do nothing") {
  for (owned const& f : all) {
    CAPTURE(f.flag);
    std::string const name = f.flag.substr(2, f.flag.find('=') - 2);
    auto const told = [&](words more) {
      if (name != "use_async" || std::ranges::find(more, "--use_async") == more.end()) more.push_back(f.flag);
      return training(more).count(name) == 1;
    };
    CHECK(told({servers}) == !f.with_servers);
    CHECK(told({servers, "--use_async"}) == !f.asynchronous);
    CHECK(told({sums}) == !f.summed);
    CHECK(told({local}) == !f.alone);
  }
}

TEST_CASE("the table is of flags that there are, and the test is of the whole table") {
  std::set<std::string> known;
  for (edl::job_flag const& f : edl::job_flags()) known.insert(f.flag.name);
  std::set<std::string_view> const others{"lr_staleness_modulation",
                                          "outer_steps",
                                          "outer_learning_rate",
                                          "outer_momentum",
                                          "ps_replicas",
                                          "keep_checkpoint_max",
                                          "history_steps",
                                          "dashboard",
                                          "dashboard_host",
                                          "dashboard_certificate",
                                          "dashboard_key",
                                          "ignore_damaged_checkpoints",
                                          "skip_mismatch",
                                          "activations",
                                          "precision",
                                          "keep_samples",
                                          "kernel_cache",
                                          "num_minibatches_per_task"};
  for (auto const& f : edl::idle_flags()) {
    CAPTURE(f.name);
    CHECK(known.count(std::string(f.name)) == 1);
    bool const owned_by_one = std::ranges::any_of(
        all, [&](owned const& o) { return o.flag.substr(2, o.flag.find('=') - 2) == f.name; });
    CHECK((owned_by_one || others.count(f.name) == 1));
  }
}

TEST_CASE("flags that another one makes idle are told, too") {
  CHECK(training({servers, "--use_async", "--lr_staleness_modulation"}).empty());
  CHECK(training({sums, "--use_async", "--lr_staleness_modulation"}) ==
        std::set<std::string>{"use_async", "lr_staleness_modulation"});
  CHECK(training({sums, "--lr_staleness_modulation"}) == std::set<std::string>{"lr_staleness_modulation"});
  CHECK(training({servers, "--lr_staleness_modulation"}).empty());
  CHECK(training({servers, "--outer_steps=4", "--outer_momentum=0.5", "--outer_learning_rate=0.5"}).empty());
  CHECK(training({servers, "--outer_steps=4", "--lr_staleness_modulation"}) ==
        std::set<std::string>{"lr_staleness_modulation"});
  CHECK(training({servers, "--outer_momentum=0.5", "--outer_learning_rate=0.5"}) ==
        std::set<std::string>{"outer_momentum", "outer_learning_rate"});
  CHECK(training({local, "--outer_steps=4"}) == std::set<std::string>{"outer_steps"});
  CHECK(training({sums, "--ps_replicas=2"}) == std::set<std::string>{"ps_replicas"});
  CHECK(training({"--ps_replicas=2"}) == std::set<std::string>{"ps_replicas"});
  CHECK(training({"--use_async", "--get_model_steps=4"}).empty());
  CHECK(training({"--keep_checkpoint_max=2"}) == std::set<std::string>{"keep_checkpoint_max"});
  CHECK(training({"--keep_checkpoint_max=2", "--checkpoint_dir=c"}).empty());
  CHECK(training({"--history_steps=2"}) == std::set<std::string>{"history_steps"});
  CHECK(training({"--history_steps=2", "--tensorboard_log_dir=t"}).empty());
  CHECK(training({"--history_steps=2", "--dashboard=0", "--dashboard_host=0.0.0.0"}).empty());
  CHECK(training({"--dashboard_host=0.0.0.0"}) == std::set<std::string>{"dashboard_host"});
  CHECK(training({"--dashboard=8080", "--dry_run"}) == std::set<std::string>{"dashboard"});
  CHECK(training({"--ignore_damaged_checkpoints"}) == std::set<std::string>{"ignore_damaged_checkpoints"});
  CHECK(training({"--skip_mismatch"}) == std::set<std::string>{"skip_mismatch"});
  CHECK(training({"--skip_mismatch", "--checkpoint_dir_for_init=m"}).empty());
  CHECK(training({"--device=cpu", "--precision=tf32"}) == std::set<std::string>{"precision"});
  CHECK(training({"--device=cpu", "--precision=bfloat16"}).empty());
  CHECK(training({"--device=cpu", "--keep_samples=on"}) == std::set<std::string>{"keep_samples"});
  CHECK(training({"--deterministic", "--kernel_cache=k"}) == std::set<std::string>{"kernel_cache"});
  CHECK(training({"--records_per_task=640", "--num_minibatches_per_task=4"}) ==
        std::set<std::string>{"num_minibatches_per_task"});
  CHECK(idle({"evaluate", "--validation_data=d", "--checkpoint_dir_for_init=c", "--activations=float32"}) ==
        std::set<std::string>{"activations"});
}

TEST_CASE("nothing is said of a flag that asks for what is so anyway") {
  CHECK(training({}).empty());
  CHECK(training({sums, "--grads_to_wait=1", "--use_async=false", "--get_model_steps=1"}).empty());
  CHECK(training({local, "--fixed_global_batch=no", "--allreduce_transport=auto"}).empty());
}

}  // namespace idle_flags_test
