// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "job/master/driven_master.hpp"

namespace master_with_servers {

using namespace edl::master;
using edl::ledger;
using edl::task_kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Twenty records in tasks of four, in minibatches of two.
inline job_options small(job_type type = job_type::training_only) {
  job_options o;
  o.type = type;
  o.training = {{"t", 20}};
  o.validation = {{"v", 6}};
  o.prediction = {{"p", 8}};
  o.minibatch_size = 2;
  o.minibatches_per_task = 2;
  o.shuffle = false;
  o.num_workers = 2;
  o.num_servers = 2;
  return o;
}

struct master : driven_master {
  using driven_master::driven_master;

  void configured(std::uint64_t incarnation_of_1 = 1) {
    it.server_configured(0, 1, it.generation(), {}, now);
    it.server_configured(1, incarnation_of_1, it.generation(), {}, now);
  }

  // Both servers and worker 0 are there.
  void start() {
    for (std::uint32_t id : {0, 1}) CHECK(join(role::server, id));
    CHECK(join(role::worker, 0));
    if (take<configure_servers>()) configured();
  }

  // Does all tasks of one kind that there are now.
  int work(task_kind kind, std::vector<double> sums = {}) {
    int n = 0;
    for (auto t = ask(); t.kind == kind; t = ask(), ++n) CHECK(done(t, 0, sums));
    return n;
  }
};

}  // namespace master_with_servers
