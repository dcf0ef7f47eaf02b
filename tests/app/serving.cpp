// SPDX-License-Identifier: Apache-2.0
#include "edl/app/serving.hpp"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/tiny_job.hpp"
#include "base/http/client.hpp"
#include "edl/app/arguments.hpp"
#include "edl/core/error.hpp"
#include "edl/core/names.hpp"

namespace serving_test {

using namespace tiny;

edl::app::serving serving_of(lines more) {
  more.insert(more.begin(), {"serve", "--model_path=m"});
  return *edl::app::parse("mnist", more).run->serving;
}

TEST_CASE("each flag of serve arrives") {
  auto const usual = serving_of({});
  CHECK(usual.model_name == "mnist");
  CHECK(usual.listening.host == "127.0.0.1");
  CHECK(usual.listening.port == 8080);
  CHECK(usual.listening.token_file.empty());
  CHECK(usual.drain_delay + usual.drain < 30s);  // which pods have to end
  CHECK(usual.batching.max_wait.count() == 0);
  job::scratch const dir;
  std::ofstream(dir / "token") << "0123456789abcdef\n";
  auto const s = serving_of({"--model_name=n",    "--host=0.0.0.0",
                             "--port=0",          "--tls_certificate=c",
                             "--tls_key=k",       "--token_file=" + dir / "token",
                             "--num_threads=2",   "--kernels=own",
                             "--precision=int8",  "--max_batch=8",
                             "--max_wait_us=50",  "--max_queue=9",
                             "--max_body_mib=2",  "--max_connections=3",
                             "--timeout_ms=4",    "--poll_interval_ms=0",
                             "--drain_ms=6",      "--drain_delay_ms=7",
                             "--keep_versions=3", "--set=a=1"});
  CHECK(s.model_name == "n");
  CHECK(s.listening.host == "0.0.0.0");
  CHECK(s.listening.certificate == "c");
  CHECK(s.listening.key == "k");
  CHECK(s.listening.token_file == dir / "token");
  CHECK(s.listening.bounds.body == 2 << 20);
  CHECK(s.listening.bounds.bodies == 64 << 20);
  CHECK(s.listening.bounds.connections == 3);
  CHECK(s.model.path == "m");
  CHECK(s.model.predicting.threads == 2);
  CHECK(s.model.predicting.kernels == edl::kernels::own);
  CHECK(s.model.predicting.precision == edl::precision::int8);
  CHECK(usual.model.predicting.kernels == edl::kernels::fixed);
  CHECK(usual.model.predicting.precision == edl::precision::float32);
  CHECK(s.model.interval == 0ms);
  CHECK(s.model.keep == 3);
  CHECK(usual.model.keep == 1);
  CHECK(s.batching.max_batch == 8);
  CHECK(s.batching.max_wait.count() == 50);
  CHECK(s.batching.max_queue == 9);
  CHECK(s.batching.timeout == 4ms);
  CHECK(s.drain == 6ms);
  CHECK(s.drain_delay == 7ms);
  CHECK(s.set == "a=1");
  CHECK_THROWS_AS(serving_of({"--tls_key=k"}), edl::usage_error);
  CHECK_THROWS_AS(serving_of({"--max_queue=63"}), edl::usage_error);
  CHECK_THROWS_AS(serving_of({"--model_name="}), edl::usage_error);
  CHECK_THROWS_AS(serving_of({"--max_wait_us=7000", "--timeout_ms=7"}), edl::usage_error);
  CHECK_NOTHROW(serving_of({"--max_wait_us=6999", "--timeout_ms=7"}));
  for (std::string const flag : {"--host=", "--token_file=", "--tls_certificate=", "--tls_key="})
    CHECK_THROWS_WITH_AS(serving_of({flag}),
                         (flag + " has no value: give one, or leave the flag out").c_str(), edl::usage_error);
  CHECK_THROWS_WITH_AS(serving_of({"--token_file=/nowhere"}),
                       "--token_file=/nowhere: No such file or directory", edl::usage_error);
  CHECK_THROWS_AS(edl::app::parse("mnist", {"serve"}), edl::usage_error);
}

TEST_CASE("a precision that the processor lacks is refused before anything is served") {
  for (auto const p : {edl::precision::bfloat16, edl::precision::int8}) {
    std::string const flag = "--precision=" + std::string(edl::name_of(p));
    if (edl::multiplies(p))
      CHECK(serving_of({flag}).model.predicting.precision == p);
    else
      CHECK_THROWS_AS(serving_of({flag}), edl::error);
  }
  CHECK_THROWS_AS(serving_of({"--precision=tf32"}), edl::usage_error);  // of GPUs
}

TEST_CASE("a server outlives who has read its log, and ends in order with its session") {
  job::scratch const dir;
  std::string const checkpoints = dir / "checkpoints";
  auto const trained = [&](char const* steps) {
    job::run t(
        train({"--checkpoint_dir=" + checkpoints, std::string("--max_step=") + steps, "--num_epochs=9"}));
    CHECK(t.wait() == 0);
  };
  trained("8");
  job::run r({"-c", "exec \"$0\" serve --model_path=\"$1\" --port=0 --poll_interval_ms=5 2> >(head -n 1)",
              EDL_TINY, checkpoints},
             {.program = "/bin/bash"});
  REQUIRE(r.says("as 'tiny' at http://127.0.0.1:"));
  std::string const log = r.log();
  auto const port = std::uint16_t(std::stoi(log.substr(log.find("http://127.0.0.1:") + 17)));
  trained("16");  // of which it says that it serves it
  CHECK(job::eventually([&] {
    return r.ended() || has(http_client::ask(port, http_client::get("/v1/models/tiny")), "\"16\"");
  }));
  ::kill(r.pid(), SIGHUP);
  CHECK(r.wait() == 0);
}

TEST_CASE("a program serves the checkpoints of a job that goes on, and ends in order") {
  job::scratch const dir;
  std::string const checkpoints = dir / "checkpoints";
  auto const trained = [&](char const* steps) {
    job::run t(
        train({"--checkpoint_dir=" + checkpoints, std::string("--max_step=") + steps, "--num_epochs=9"}));
    CHECK(t.wait() == 0);
  };
  trained("8");
  job::run r({"serve", "--model_path=" + checkpoints, "--port=0", "--poll_interval_ms=5",
              "--drain_delay_ms=3600000"});
  REQUIRE(r.says("as 'tiny' at http://127.0.0.1:"));
  std::string const log = r.log();
  auto const port = std::uint16_t(std::stoi(log.substr(log.find("http://127.0.0.1:") + 17)));
  auto const ask = [&] {
    return http_client::ask(
        port, http_client::post("/v1/models/tiny:predict", R"({"instances":[[1,2,3,4,5,6,7,8]]})"));
  };
  CHECK(has(ask(), "Edl-Model-Version: 8\r\n"));
  trained("16");
  REQUIRE(r.says("serves version 16"));
  CHECK(job::eventually([&] { return has(ask(), "Edl-Model-Version: 16\r\n"); }));
  ::kill(r.pid(), SIGTERM);
  // It goes on for those that have not heard of it yet, until the pause is over, or somebody is in a hurry.
  CHECK(job::eventually(
      [&] { return has(http_client::ask(port, http_client::get("/v2/health/ready")), "503"); }));
  CHECK(has(ask(), "200 OK"));
  ::kill(r.pid(), SIGTERM);
  CHECK(r.wait() == 0);
  CHECK(has(r.log(), "shut down: all requests have replies"));
}

TEST_CASE("changes of tables are taken over while requests run, and answers are those of predict") {
  job::options const tabled{.env = {{"TINY_TABLES", "1"}, {"TINY_DELAY_US", "300"}}};
  job::scratch const dir;
  std::string const checkpoints = dir / "checkpoints";
  // A master, servers that have the rows, and workers.
  auto const trained = [&](lines more) {
    more.insert(more.end(), {"--checkpoint_dir=" + checkpoints, "--num_epochs=9"});
    CHECK(job::run(cluster(2, 2, more), tabled).wait() == 0);
  };
  trained({"--max_step=8"});
  job::run r({"serve", "--model_path=" + checkpoints, "--port=0", "--poll_interval_ms=5"}, tabled);
  REQUIRE(r.says("as 'tiny' at http://127.0.0.1:"));
  std::string const log = r.log();
  auto const port = std::uint16_t(std::stoi(log.substr(log.find("http://127.0.0.1:") + 17)));
  std::array<float, 9> const x{1, -2, 3, -4, 5, -6, 7, -8};  // and a label
  std::ofstream(dir / "one.points", std::ios::binary)
      .write(reinterpret_cast<char const*>(x.data()), sizeof x);
  std::string const question = http_client::post(
      "/v1/models/tiny:predict",
      nlohmann::json{{"instances", nlohmann::json::array({std::vector<float>(x.begin(), x.begin() + 8)})}}
          .dump());
  std::atomic<bool> over{false};
  int asked = 0, failed = 0;
  std::thread client([&] {
    for (http_client::connection c(port); !over; ++asked)
      failed += !has(c.say(question).answer(), "HTTP/1.1 200 OK");
  });
  trained({"--max_step=48", "--checkpoint_steps=8"});
  std::string said;
  CHECK(job::eventually(
      [&] { return has(said = http_client::ask(port, question), "Edl-Model-Version: 48\r\n"); }));
  over = true;
  client.join();
  CHECK(asked > 0);
  CHECK(failed == 0);
  bool changes = false;  // which of the checkpoints have all rows again depends on how fast they are written
  for (int version = 16; version <= 48; version += 8) {
    std::string const path = checkpoints + "/version-" + std::to_string(version);
    if (!std::filesystem::exists(path + "/manifest.json")) continue;  // removed, or given up half written
    auto const files = edl::checkpoint::read_manifest(path).files;
    changes |= std::ranges::count_if(files, [](auto const& f) { return f.name.starts_with("rows-"); }) > 1;
  }
  CHECK(changes);
  job::run p({"predict", "--prediction_data=" + dir / "one.points", "--prediction_format=jsonl",
              "--checkpoint_dir_for_init=" + checkpoints, "--prediction_outputs=" + dir / "p"},
             tabled);
  REQUIRE(p.wait() == 0);
  std::string const predicted = slurp(dir / "p/predictions.jsonl");
  CHECK(nlohmann::json::parse(said.substr(said.find("\r\n\r\n")))["predictions"][0] ==
        nlohmann::json::parse(predicted.substr(0, predicted.find('\n')))["output"]);
}

TEST_CASE("a signal ends a server at once that still warms its model up") {
  job::scratch const dir;
  job::run made(train({"--max_step=1", "--output=" + dir / "model"}));
  REQUIRE(made.wait() == 0);
  job::run r({"serve", "--model_path=" + dir / "model", "--port=0"},
             {.env = {{"TINY_DELAY_US", "3600000000"}}});
  REQUIRE(r.takes_signals_as_events());
  ::kill(r.pid(), SIGTERM);
  CHECK(r.wait(10s) == 0);
  CHECK(has(r.log(), "stopped by SIGTERM before it serves: nothing to save yet"));
}

TEST_CASE("a model that is not there yet is waited for, with a line that says so") {
  job::run r({"serve", "--model_path=/nowhere", "--port=0", "--drain_delay_ms=0"});
  CHECK(job::eventually([&] { return has(r.log(), "no model in /nowhere yet: waiting for one"); }));
  ::kill(r.pid(), SIGTERM);
  CHECK(r.wait() == 0);
}

}  // namespace serving_test
