// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "world/job.hpp"
#include "world/program.hpp"
#include "world/tally.hpp"

namespace {

int run_dense(int argc, char** argv) { return edl::run<tally::dense_model>(argc, argv); }

void one_job(std::vector<std::string> const& more, int servers, int workers) {
  using namespace world;
  mount_everywhere("/storage", "storage");
  job j{.flags = {"--training_data=tally:512/4", "--minibatch_size=16", "--num_minibatches_per_task=2", "--num_epochs=2",
                  "--num_ps_pods=" + std::to_string(servers), "--num_workers=" + std::to_string(workers),
                  "--checkpoint_dir=/storage/checkpoints", "--output=/storage/model"},
        .environment = {{"TALLY_BATCH_US", "20000"}},
        .main = run_dense};
  j.flags.insert(j.flags.end(), more.begin(), more.end());
  std::vector<pid> all{j.start_role("master")};
  for (int i = 0; i < servers; ++i) all.push_back(j.start_role("ps", i));
  for (int i = 0; i < workers; ++i) all.push_back(j.start_role("worker", i));
  for (pid p : all) world::wait(p);
  for (pid p : all)
    world::print(name_of(p) + " ended with " + std::to_string(ended(p)->code) + ", signal " + std::to_string(ended(p)->signal) + "\n");
}

}  // namespace

int main(int argc, char** argv) {
  world::prepare(argc, argv);
  world::history_options o;
  bool quiet = false, replicas = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strncmp(argv[i], "--seed=", 7)) o.seed = std::strtoull(argv[i] + 7, nullptr, 10);
    if (!std::strncmp(argv[i], "--trace=", 8)) o.trace = argv[i] + 8;
    if (!std::strcmp(argv[i], "--quiet")) quiet = true;
    if (!std::strcmp(argv[i], "--allreduce")) replicas = true;
  }
  auto const r = world::run(o, [&] {
    if (!quiet)
      world::on_line([](world::line const& l) {
        char head[64];
        std::snprintf(head, sizeof head, "%12.6f ", double(l.when.count()) / 1e9);
        world::print(head + world::name_of(l.from) + ": " + std::string(l.text) + "\n");
      });
    if (replicas)
      one_job({"--distribution_strategy=AllreduceStrategy"}, 0, 2);
    else
      one_job({"--use_async"}, 1, 2);
  });
  world::print(r);
  std::_Exit(r.failure.empty() ? 0 : 1);
}
