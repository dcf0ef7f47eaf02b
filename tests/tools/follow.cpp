// SPDX-License-Identifier: Apache-2.0
// What changes while a job runs: logs, size, lost pods.
#include <signal.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "tools/edl.hpp"

namespace follow_test {

using namespace edl_command;
using job::has;

namespace {

/// Lines that one pod is said to have written.
lines lines_of(std::string const& text, std::string const& who) {
  lines all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(who + " ")) all.push_back(line);
  return all;
}

}  // namespace

TEST_CASE("logs are followed through a lost worker and a server that goes away, each line once") {
  shell s;
  REQUIRE(s.submit({"--num_epochs=2"}, 2000).code == 0);
  job::run follows({"logs", "j", "-f"}, s.with());
  REQUIRE(s.runs("worker-0"));
  REQUIRE(follows.says("worker-0  | "));
  s.cluster.kill("default", "elasticdl-j-worker-0", SIGKILL);
  REQUIRE(follows.says("worker-2  | "));
  s.cluster.close();
  std::this_thread::sleep_for(300ms);
  s.cluster.open();
  CHECK(follows.wait(120s) == 0);
  std::string const text = follows.log();
  CAPTURE(text);
  CHECK(has(text, "job 'j' is finished"));
  for (char const* who : {"master", "ps-0", "worker-1", "worker-2"}) {
    lines const all = lines_of(text, who);
    CHECK_FALSE(all.empty());
    CHECK(std::set<std::string>(all.begin(), all.end()).size() == all.size());
  }
  // What the pods wrote is what was printed.
  CHECK(lines_of(text, "master").size() == job::count(s.cluster.log("default", "elasticdl-j-master"), "\n"));

  auto const last = s.edl({"logs", "j", "--role=master", "--tail=1"});
  CHECK(job::count(last.text, "\n") == 1);
  std::string const whole = s.log("master");
  auto const before = whole.rfind('\n', whole.size() - 2);
  CHECK(last.text == "master    | " + whole.substr(before + 1));
  CHECK(s.edl({"logs", "j", "--role=worker", "--index=9"}).code == 1);

  auto const why = s.edl({"explain", "j"});
  CAPTURE(why.text);
  CHECK(has(why.text, "a worker was replaced"));
  CHECK(has(why.text, "worker-0"));
}

TEST_CASE("a job that runs is given more workers, and fewer") {
  shell s;
  REQUIRE(s.submit({"--num_epochs=1000"}, 1000).code == 0);  // it does not end before the test
  REQUIRE(s.runs("worker-1"));
  auto const more = s.edl({"scale", "j", "--num_workers=3"});
  CAPTURE(more.text);
  CHECK(more.code == 0);
  CHECK(has(more.text, "workers=3"));
  CHECK(s.runs("worker-2"));
  CHECK(json::parse(s.edl({"get", "jobs", "j", "-o", "json"}).text)[0]["workers"]["wanted"] == 3);
  auto const refused = s.edl({"scale", "j", "--num_ps_pods=5"});
  CAPTURE(refused.text);
  CHECK(refused.code == 1);
  CHECK(has(refused.text, "refused"));
  CHECK(s.edl({"scale", "k", "--num_workers=3"}).code == 1);
}

TEST_CASE("who waits for a job's end hears what the job waits for") {
  shell s;
  std::string const data = std::filesystem::path(job::data().training).parent_path().string();
  job::run command({"train", "--job_name=j", "--image_name=tiny:1", "--model_def=tiny", "--wait",
                    "--image_pull_policy=Never", "--training_data=/data/train", "--num_epochs=1000",
                    "--volume=host_path=" + data + ",mount_path=/data", "--envs=TINY_DELAY_US=1000"},
                   s.with());
  REQUIRE(s.runs("worker-0"));
  // The master takes away what a predecessor may have left there, at a moment of its own.
  CHECK(job::eventually([&] {
    s.cluster.call("PATCH", pods + "/elasticdl-j-master",
                   {{"metadata", {{"annotations", {{"elasticdl/waits", "for a test"}}}}}});
    return has(command.log(), "edl: job 'j' waits: for a test");
  }));
}

TEST_CASE("an audit reads a job's checkpoint in a pod with its volumes") {
  shell s;
  job::scratch const out;
  std::filesystem::create_directories(out / "c");
  std::string const data = std::filesystem::path(job::data().training).parent_path().string();
  auto const trained = s.submit(
      {"--wait", "--checkpoint_dir=/out/c",
       "--volume=host_path=" + data + ",mount_path=/data;host_path=" + (out / "") + ",mount_path=/out"});
  CAPTURE(trained.text);
  REQUIRE(trained.code == 0);
  auto const of_job = s.edl({"audit", "j"});
  CAPTURE(of_job.text);
  CHECK(of_job.code == 0);
  CHECK(has(of_job.text, "exact: every record that was applied counts once"));
  CHECK(s.cluster.wait([&] { return std::ranges::count(s.names("pods"), "elasticdl-j-audit") == 0; }));
  auto const of_directory = s.edl({"audit", out / "c"});
  CHECK(of_directory.code == 0);
  CHECK(has(of_directory.text, "2048"));
  CHECK(s.edl({"audit", out / "none"}).code == 1);
}

}  // namespace follow_test
