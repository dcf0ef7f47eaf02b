// SPDX-License-Identifier: Apache-2.0
#include "edl/train/progress.hpp"

#include <doctest/doctest.h>

TEST_CASE("progress in words, with what is known") {
  edl::master::job_progress p;
  p.done.tasks_done = 24;
  p.done.records_done = 12288;
  p.version = 192;
  p.loss = 0.113;
  CHECK(edl::train::describe(p, 1873) == "tasks 24, records 12288, 1873 records/s, loss 0.113, version 192");
  p.total_tasks = 236;
  p.total_records = 120000;
  CHECK(edl::train::describe(p, 1873) ==
        "tasks 24/236, records 12288/120000, 1873 records/s, loss 0.113, version 192, 0:57 left");
  CHECK(edl::train::describe(p, 0).find("left") == std::string::npos);
  p.loss = 0;
  CHECK(edl::train::describe(p, 0).find("loss") == std::string::npos);
}

TEST_CASE("a job that stands still has no rate, and nobody tells when it will be done") {
  using namespace std::chrono_literals;
  edl::master::job_progress p;
  p.total_records = 100'000;
  edl::train::progress_view view(edl::logger(edl::severity::critical), false);
  edl::train::progress_view::time_point now{1h};
  view.update(p, now);
  p.done.records_done = 1'000;
  CHECK(view.update(p, now += 20s).find("50 records/s") != std::string::npos);
  std::string const still = view.update(p, now += 20s);
  CHECK(still.find(" 0 records/s") != std::string::npos);
  CHECK(still.find("left") == std::string::npos);
  p.done.records_done = 3'000;
  CHECK(view.update(p, now += 20s).find("100 records/s") != std::string::npos);
}
