// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "world/job.hpp"
#include "world/program.hpp"
#include "world/tally.hpp"

namespace {

int run_dense(int argc, char** argv) { return edl::run<tally::dense_model>(argc, argv); }

/// A job whose members are started again when they end too early, and that meets faults of all kinds.
void one_job(bool replicas, bool faults, std::string& note) {
  using namespace world;
  mount_everywhere("/storage", "storage");
  int const servers = replicas ? 0 : 2, workers = 2;
  job j{.flags = {"--training_data=tally:512/4", "--minibatch_size=16", "--num_minibatches_per_task=2", "--num_epochs=2",
                  "--num_ps_pods=" + std::to_string(servers), "--num_workers=" + std::to_string(workers),
                  "--checkpoint_dir=/storage/checkpoints", "--checkpoint_steps=8", "--output=/storage/model"},
        .environment = {{"TALLY_BATCH_US", "20000"}},
        .main = run_dense};
  j.flags.push_back(replicas ? "--distribution_strategy=AllreduceStrategy" : "--use_async");
  std::vector<std::pair<std::string, int>> roles{{"master", 0}};
  for (int i = 0; i < servers; ++i) roles.emplace_back("ps", i);
  for (int i = 0; i < workers; ++i) roles.emplace_back("worker", i);
  std::vector<pid> now;
  for (auto const& [role, id] : roles) now.push_back(j.start_role(role, id));
  int count = 0;
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + draw(300)));
    auto const done = ended(now[0]);
    if (done && done->code == 0 && done->signal == 0) break;
    for (std::size_t i = 0; i < now.size(); ++i) {
      auto const e = ended(now[i]);
      if (e && (e->code != 0 || e->signal != 0)) now[i] = j.start_role(roles[i].first, roles[i].second);
    }
    if (!faults || count == 20) continue;
    ++count;
    std::size_t const which = std::size_t(draw(now.size())), other = std::size_t(draw(now.size()));
    auto const name = [&](std::size_t i) { return name_of(now[i]); };
    switch (draw(5)) {
      case 0: world::kill(now[which], SIGKILL); break;
      case 1: {
        world::kill(now[which], SIGSTOP);
        std::this_thread::sleep_for(std::chrono::milliseconds(draw(5000)));
        world::kill(now[which], SIGCONT);
        break;
      }
      case 2: {
        if (which == other) break;
        cut(name(which), name(other));
        std::this_thread::sleep_for(std::chrono::milliseconds(draw(20000)));
        heal(name(which), name(other));
        break;
      }
      case 3: if (which != other) reset_connections(name(which), name(other)); break;
      case 4: {
        disk d = get_disk("storage");
        d.fsync = draw(2) ? 2ms : 500ms;
        set_disk("storage", d);
      }
    }
  }
  note = std::to_string(count) + " faults";
}

/// A job as one command starts it on one machine: the command starts the members, by fork and exec.
void one_command(bool replicas, bool faults, std::string& note) {
  using namespace world;
  program p{.name = "command", .host = "machine", .main = run_dense, .arguments = {"tally", "train"},
            .environment = {{"TALLY_BATCH_US", "20000"}, {"TZ", "UTC0"}}};
  p.arguments.insert(p.arguments.end(), {"--training_data=tally:512/4", "--minibatch_size=16", "--num_minibatches_per_task=2", "--num_epochs=2",
                  "--num_workers=2", "--checkpoint_dir=/storage/checkpoints", "--checkpoint_steps=8", "--output=/storage/model",
                  replicas ? "--distribution_strategy=AllreduceStrategy" : "--num_ps_pods=2"});
  mount_everywhere("/storage", "storage");
  pid const command = start(p);
  int count = 0;
  while (!wait_for(command, std::chrono::milliseconds(1 + draw(300)))) {
    if (!faults || count == 20) continue;
    ++count;
    auto const all = processes();
    pid const which = all[std::size_t(draw(all.size()))];
    if (which != command && draw(2)) world::kill(which, SIGKILL);
    else {
      world::kill(which, SIGSTOP);
      std::this_thread::sleep_for(std::chrono::milliseconds(draw(5000)));
      world::kill(which, SIGCONT);
    }
  }
  note = std::to_string(count) + " faults, ended with " + std::to_string(ended(command)->code);
}

}  // namespace

int main(int argc, char** argv) {
  world::prepare(argc, argv);
  world::history_options o;
  bool quiet = false, command = false, replicas = false, faults = false;
  std::uint64_t histories = 1;
  for (int i = 1; i < argc; ++i) {
    if (!std::strncmp(argv[i], "--seed=", 7)) o.seed = std::strtoull(argv[i] + 7, nullptr, 10);
    if (!std::strncmp(argv[i], "--histories=", 12)) histories = std::strtoull(argv[i] + 12, nullptr, 10);
    if (!std::strncmp(argv[i], "--trace=", 8)) o.trace = argv[i] + 8;
    if (!std::strcmp(argv[i], "--quiet")) quiet = true;
    if (!std::strcmp(argv[i], "--command")) command = true;
    if (!std::strcmp(argv[i], "--faults")) faults = true;
    if (!std::strcmp(argv[i], "--allreduce")) replicas = true;
  }
  bool failed = false;
  for (std::uint64_t k = 0; k < histories; ++k, ++o.seed) {
    auto const r = world::run_forked(o, [&](std::string& note) {
      if (!quiet)
        world::on_line([](world::line const& l) {
          char head[64];
          std::snprintf(head, sizeof head, "%12.6f ", double(l.when.count()) / 1e9);
          world::print(head + world::name_of(l.from) + ": " + std::string(l.text) + "\n");
        });
      command ? one_command(replicas, faults, note) : one_job(replicas, faults, note);
    });
    world::print("seed " + std::to_string(o.seed) + ", " + r.note + ", ");
    world::print(r);
    failed = failed || !r.failure.empty();
  }
  std::_Exit(failed);
}
