// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/local_files.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "job/ps/small_store.hpp"

namespace local_files_test {

using namespace small_store;

namespace {

struct small_job {
  small_job() {
    p.layout = small_layout();
    command.checkpoint_dir = dir / "c";
    command.keep_checkpoint_max = 1;
    std::filesystem::create_directories(command.checkpoint_dir);
  }
  scratch dir;
  edl::train::program p;
  edl::job command;
  edl::logger log{edl::severity::critical};
};

}  // namespace

TEST_CASE("a checkpoint is written behind training, told once, and the older goes") {
  small_job j;
  store s({.layout = j.p.layout, .elements = {0, 6}, .rule = adding, .when = at_once});
  edl::train::local_files files(j.p, j.command, {.job = "j"}, {}, j.log);
  CHECK_FALSE(files.finished(true));
  for (std::uint32_t v = 1; v <= 2; ++v) {
    s.push(batch(v), v - 1, ones, twos);
    files.begin(s.full_snapshot());
    auto const done = files.finished(true);
    REQUIRE(done);
    CHECK(done->version == v);
    CHECK(done->error.empty());
    CHECK_FALSE(files.finished(true));
  }
  CHECK(edl::checkpoint::newest_valid(j.command.checkpoint_dir) == j.command.checkpoint_dir + "/version-2");
  CHECK_FALSE(std::filesystem::exists(j.command.checkpoint_dir + "/version-1"));
}

TEST_CASE("a checkpoint that may not be written says why, and leaves none") {
  small_job j;
  store s({.layout = j.p.layout, .elements = {0, 6}, .rule = adding, .when = at_once});
  edl::train::local_files files(
      j.p, j.command, {.job = "j"}, [] { throw edl::error("another job has the directory"); }, j.log);
  files.begin(s.full_snapshot());
  CHECK(files.finished(true)->error == "another job has the directory");
  CHECK_FALSE(edl::checkpoint::newest_valid(j.command.checkpoint_dir));
}

}  // namespace local_files_test
