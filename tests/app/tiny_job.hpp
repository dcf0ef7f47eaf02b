// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "app/job.hpp"
#include "edl/base/checkpoint/directory.hpp"
#include "edl/base/checkpoint/manifest.hpp"

/// Jobs of the small model, and what is checked of them.
namespace tiny {

using namespace std::chrono_literals;
using job::count, job::has, job::slurp, job::train;
using lines = std::vector<std::string>;

/// Slow enough that something can be done in the middle: two workers take about a second for an epoch.
inline job::options const slow{.env = {{"TINY_DELAY_US", "900"}}};
/// Goes on for minutes unless its gate is opened.
inline job::options const held{.env = {{"TINY_DELAY_US", "20000"}}};

/// The flags of a job with parameter servers.
inline lines cluster(int servers, int workers, lines more = {}) {
  more.insert(more.end(),
              {"--num_ps_pods=" + std::to_string(servers), "--num_workers=" + std::to_string(workers)});
  return train(more);
}

/// The flags of a job by all-reduce.
inline lines replicas(int workers, lines more = {}) {
  more.insert(more.end(),
              {"--distribution_strategy=AllreduceStrategy", "--num_workers=" + std::to_string(workers)});
  return train(more);
}

inline lines sorted_lines(std::string const& text) {
  lines all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  std::sort(all.begin(), all.end());
  return all;
}

inline double last_accuracy(std::string const& log) {
  auto const at = log.rfind("{'accuracy': ");
  return at == std::string::npos ? 0 : std::stod(log.substr(at + 13));
}

/// The log's account: every record of every epoch once.
inline void check_account(std::string const& log, int epochs) {
  for (int e = 0; e < epochs; ++e)
    CHECK(job::accounts(log, e,
                        "2048 records in the data set, 2048 counted once, 0 skipped as damaged, 0 left"));
}

/// The last checkpoint's account, of each file by itself: all tasks of all epochs are closed, none is open.
/// `files`: of variables.
inline void check_ledgers(std::string const& checkpoints, std::uint32_t epochs, std::size_t files = 1) {
  auto const newest = edl::checkpoint::newest_valid(checkpoints);
  REQUIRE(newest);
  auto const m = edl::checkpoint::read_manifest(*newest);
  std::size_t of_variables = 0;
  for (auto const& file : m.files) {
    of_variables += file.name.starts_with("variables-");
    CHECK(file.ledger.open().empty());
    CHECK(file.ledger.closed().size() == epochs);
    for (auto const& [epoch, tasks] : file.ledger.closed()) CHECK(tasks.count() == 16);
  }
  CHECK(of_variables == files);
}

/// A job with a middle: at least three tasks are done, and all of its processes are there.
inline void reach_middle(job::run& j, std::size_t tasks = 4) { REQUIRE(j.says(" completed, ", tasks)); }

inline std::string predictions(std::string const& directory) {
  std::vector<std::string> names;
  for (auto const& entry : std::filesystem::directory_iterator(directory)) names.push_back(entry.path());
  std::sort(names.begin(), names.end());
  std::string all;
  for (std::string const& name : names) all += slurp(name);
  return all;
}

/// The line of the newest world, or of the one whose line begins so: "2: ".
inline std::string last_world(std::string const& log, std::string const& numbered = "") {
  auto const at = log.rfind("] World " + numbered);
  return at == std::string::npos ? "" : log.substr(at + 2, log.find('\n', at) - at - 2);
}

/// A job by all-reduce ends well.
inline void check_end(job::run& j, std::string const& checkpoints, int epochs) {
  CHECK(j.wait() == 0);
  CHECK(j.nothing_left());
  std::string const log = j.log();
  CAPTURE(log);
  check_account(log, epochs);
  check_ledgers(checkpoints, std::uint32_t(epochs));
  // Where the disk is slower than the steps, a version gives way to a newer one before it is written.
  CHECK(count(log, "cannot be written") == count(log, "was superseded by a newer one"));
  CHECK_FALSE(has(log, "is not evaluated"));
  CHECK_FALSE(has(log, "[ERROR]"));
}

}  // namespace tiny
