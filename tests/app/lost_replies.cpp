// SPDX-License-Identifier: Apache-2.0
// What becomes of a job when answers of the master are lost with their connections.
#include <memory>
#include <mutex>
#include <set>

#include "app/relay.hpp"
#include "app/tiny_job.hpp"
#include "edl/base/wire/method.hpp"

namespace lost_replies_test {

using namespace tiny;

TEST_CASE("each answer of the master may be lost once: every record counts once all the same") {
  namespace method = edl::wire::method;
  for (bool const servers : {true, false}) {
    CAPTURE(servers);
    job::scratch const dir;
    lines const flags{"--num_epochs=2", "--transport_security=none",
                      "--validation_data=" + job::data().validation, "--evaluation_steps=16",
                      "--checkpoint_dir=" + dir / "checkpoints"};
    auto const command = servers ? cluster(1, 2, flags) : replicas(2, flags);
    auto const role = [&](job::environment more) {
      more.insert(more.end(),
                  {{"EDL_JOB_NAME", "lossy"}, {"EDL_JOB_TOKEN", "0123456789abcdef0123456789abcdef"}});
      return std::make_unique<job::run>(command, job::options{.env = more});
    };
    auto const master = role({{"EDL_ROLE", "master"}});
    REQUIRE(master->says("listens at "));
    std::string log = master->log();
    std::mutex lock;
    std::set<std::uint16_t> lost;
    job::relay proxy(job::relay::place_of(log), [&](std::uint16_t m) {
      std::lock_guard const guard(lock);
      return lost.insert(m).second;
    });
    std::vector<std::unique_ptr<job::run>> members;
    if (servers)
      members.push_back(role({{"EDL_ROLE", "ps"}, {"PS_ID", "0"}, {"MASTER_ADDR", proxy.address()}}));
    for (char const* id : {"0", "1"})
      members.push_back(role({{"EDL_ROLE", "worker"}, {"WORKER_ID", id}, {"MASTER_ADDR", proxy.address()}}));
    CHECK(master->wait() == 0);
    log = master->log();
    CAPTURE(log);
    check_account(log, 2);
    check_ledgers(dir / "checkpoints", 2);
    auto const seen = [&] {
      std::lock_guard const guard(lock);
      return lost;
    }();
    for (std::uint16_t const m : {method::join, method::heartbeat, method::task, method::report,
                                  method::version, servers ? method::cluster : method::enter})
      CHECK_MESSAGE(seen.contains(m), "method ", m);
    for (auto const& m : members) {
      INFO(m->log());
      CHECK(m->wait() == 0);
    }
  }
}

}  // namespace lost_replies_test
