// SPDX-License-Identifier: Apache-2.0
// Two jobs that want 3 workers each, in a cluster with places for 4: one after the other, as a scheduler of
// whole jobs runs them, and elastically, where the second starts with the place that is free and grows when
// the first ends.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "app/job.hpp"
#include "kubernetes/double.hpp"

namespace {

namespace lab = edl::testing::kubernetes;
using namespace std::chrono_literals;
using nlohmann::json;
using clock_type = std::chrono::steady_clock;

constexpr int places = 4, wanted = 3;
constexpr int epochs = 9, record_us = 2000;  // a record is a pause, so that four workers need no four cores
constexpr double second_comes = 2;           // seconds after the first
constexpr auto limit = 3min;

struct strategy {
  char const* title;
  std::vector<std::string> flags;
};

/// Seconds are from the first job's submission on.
struct one_job {
  char const* name;
  double submitted = -1, first_step = -1, ended = -1;
  std::uint64_t counted = 0;
};

struct outcome {
  one_job first{"first"}, second{"second"};
  double mean_places = 0;
  double total() const { return std::max(first.ended, second.ended); }
};

class laboratory {
 public:
  laboratory()
      : cluster_({// Room for two masters and two servers of 0.1 beside the workers, which want 1 each.
                  .nodes = {{.name = "node", .cpu = fmt::format("{}.4", places), .memory = "64Gi"}},
                  .images = {{"tiny:1", {.programs = {{"tiny", EDL_TINY}}, .entrypoint = {}}}},
                  .history = 100000}) {}

  outcome run(strategy const& how, bool elastic) {
    outcome o;
    start_ = last_ = clock_type::now();
    submit(o.first, how);
    while (o.second.ended < 0) {
      look(o.first), look(o.second);
      if (o.second.submitted < 0 && (elastic ? now() >= second_comes : o.first.ended >= 0))
        submit(o.second, how);
      count_places();
      if (clock_type::now() - start_ > limit)
        throw std::runtime_error(fmt::format("{}: the jobs do not end within {} s; the second's master: {}",
                                             how.title, std::chrono::seconds(limit).count(),
                                             log(o.second, "master")));
      std::this_thread::sleep_for(5ms);
    }
    if (o.first.ended < 0) throw std::runtime_error("the second job has ended before the first");
    o.mean_places = place_seconds_ / o.total();
    return o;
  }

 private:
  double now() const { return std::chrono::duration<double>(clock_type::now() - start_).count(); }
  std::string log(one_job const& j, std::string const& pod) const {
    return cluster_.log("default", fmt::format("elasticdl-{}-{}", j.name, pod));
  }

  void submit(one_job& j, strategy const& how) {
    std::vector<std::string> line{
        "train",
        std::string("--job_name=") + j.name,
        "--image_name=tiny:1",
        "--model_def=tiny",
        "--image_pull_policy=Never",
        "--detach",
        "--training_data=/data/train",
        "--volume=host_path=" + std::filesystem::path(job::data().training).parent_path().string() +
            ",mount_path=/data",
        fmt::format("--num_workers={}", wanted),
        fmt::format("--num_epochs={}", epochs),
        fmt::format("--envs=TINY_DELAY_US={}", record_us),
        "--minibatch_size=32",
        "--num_minibatches_per_task=4",
        "--num_threads=1",
        "--kernels=fixed",
        "--master_resource_request=cpu=0.1,memory=64Mi",
        "--ps_resource_request=cpu=0.1,memory=64Mi",
        "--worker_resource_request=cpu=1,memory=64Mi"};
    line.insert(line.end(), how.flags.begin(), how.flags.end());
    j.submitted = now();
    job::run command(line, {.env = {{"KUBECONFIG", cluster_.kubeconfig()}}, .program = EDL_TOOL});
    if (command.wait() != 0)
      throw std::runtime_error(fmt::format("job {} was not submitted: {}", j.name, command.log()));
  }

  void look(one_job& j) {
    if (j.submitted < 0 || j.ended >= 0) return;
    if (j.first_step < 0)
      for (int i = 0; i < wanted; ++i)
        if (job::has(log(j, fmt::format("worker-{}", i)), "Loss = ")) j.first_step = now();
    json const master =
        cluster_.get(fmt::format("/api/v1/namespaces/default/pods/elasticdl-{}-master", j.name));
    std::string const phase = master.value("/status/phase"_json_pointer, "");
    if (phase != "Succeeded" && phase != "Failed") return;
    j.ended = now();
    std::string const said = log(j, "master");
    if (phase == "Failed") throw std::runtime_error(fmt::format("job {} has failed: {}", j.name, said));
    std::string const exact =
        fmt::format("{0} records in the data set, {0} counted once", job::data_set::records);
    j.counted = job::data_set::records * job::count(said, exact);
    if (j.counted != std::uint64_t(epochs) * job::data_set::records)
      throw std::runtime_error(fmt::format("the account of job {} is not exact: {}", j.name, said));
  }

  /// Places are what running workers' pods hold.
  void count_places() {
    json const list =
        cluster_.get("/api/v1/namespaces/default/pods?labelSelector=elasticdl-replica-type=worker");
    auto const at = clock_type::now();
    place_seconds_ += held_ * std::chrono::duration<double>(at - last_).count();
    last_ = at, held_ = 0;
    for (json const& p : list.at("items")) held_ += p.value("/status/phase"_json_pointer, "") == "Running";
    if (held_ > places) throw std::runtime_error("more workers run than there are places");
  }

  lab::cluster cluster_;
  clock_type::time_point start_, last_;
  double place_seconds_ = 0;
  int held_ = 0;
};

void measure(strategy const& how) {
  double gang = 0;
  for (bool elastic : {false, true}) {
    laboratory it;
    outcome const o = it.run(how, elastic);
    if (!elastic) gang = o.total();
    fmt::print("| {} | {} | {:.1f} | {:.2f} | {:.2f} | {:.2f} | {:.1f} | {:.2f} | {} + {} | {} |\n",
               how.title, elastic ? "elastic" : "gang", o.total(), o.first.first_step,
               o.second.first_step - o.second.submitted, o.second.first_step - second_comes, o.first.ended,
               o.mean_places, o.first.counted, o.second.counted,
               elastic ? fmt::format("{:.2f}", o.total() / gang) : "");
    std::fflush(stdout);
  }
}

}  // namespace

int main() try {
  double const work = 1e-6 * record_us * epochs * job::data_set::records;  // of one job, place-seconds
  // Alone the first ends at work/3; until then the second has one place, and from then on three.
  double const gang = 2 * work / wanted, alone = work / wanted,
               elastic = alone + (work - (places - wanted) * (alone - second_comes)) / wanted;
  fmt::print(
      "Two jobs of {} records, {} µs each, that want {} workers each, with places for {}. The second comes\n"
      "{} s after the first; gang: it is kept back until the first has ended. Seconds. If jobs took no more\n"
      "than their records' pauses: {:.1f} and {:.1f}, {:.2f}.\n\n",
      epochs * job::data_set::records, record_us, wanted, places, second_comes, gang, elastic,
      elastic / gang);
  fmt::print(
      "| strategy | | total | first step of the first | of the second, from its submission | from when it "
      "came "
      "| end of the first | places in use, mean | records counted once | of gang's total |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n");
  measure({"servers, asynchronous",
           {"--distribution_strategy=ParameterServerStrategy", "--num_ps_pods=1", "--use_async"}});
  measure({"all-reduce", {"--distribution_strategy=AllreduceStrategy"}});
} catch (std::exception const& e) {
  fmt::print(stderr, "bench-elastic: {}\n", e.what());
  return 1;
}
