// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/server/final_retries.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>

namespace final_retries_test {

using edl::master::final_retries, edl::time_point;
using namespace std::chrono_literals;

namespace {

struct kept final : edl::line_sink {
  std::string text;
  void write(std::string_view lines) override { text += lines; }
};

final_retries::limits const limits{.timeout = 10s, .pause = 1s};
edl::logger const silent(edl::severity::critical);
time_point const start{};

}  // namespace

TEST_CASE("what a job ends with is tried again until a time is over, which is told once") {
  auto const lines = std::make_shared<kept>();
  final_retries tries("the model", limits, edl::logger(edl::severity::info, "", {.fd = -1, .to = lines}),
                      start);
  CHECK(tries.pause() == 1s);
  CHECK(tries.go_on("no space", start));
  CHECK(tries.go_on("no space", start + 9s));
  CHECK_FALSE(tries.go_on("no space", start + 10s));
  auto const told = lines->text.find("the model cannot be written yet, retrying: no space\n");
  REQUIRE(told != std::string::npos);
  CHECK(lines->text.find('\n') == lines->text.size() - 1);
}

TEST_CASE("the time begins anew where the job has begun anew") {
  final_retries tries("the best model", limits, silent, start);
  tries.restart(start + 8s);
  CHECK(tries.go_on("no space", start + 17s));
  CHECK_FALSE(tries.go_on("no space", start + 18s));
}

TEST_CASE("the pause is no longer than the time") {
  CHECK(final_retries("the model", {.timeout = 50ms, .pause = 1s}, silent, start).pause() == 50ms);
}

}  // namespace final_retries_test
