#include "edl/app/progress.hpp"

#include <doctest/doctest.h>

TEST_CASE("progress in words, with what is known") {
  edl::master::job_progress p;
  p.done.tasks_done = 24;
  p.done.records_done = 12288;
  p.version = 192;
  p.loss = 0.113;
  CHECK(edl::app::describe(p, 1873) == "tasks 24, records 12288, 1873 records/s, loss 0.113, version 192");
  p.total_tasks = 236;
  p.total_records = 120000;
  CHECK(edl::app::describe(p, 1873) ==
        "tasks 24/236, records 12288/120000, 1873 records/s, loss 0.113, version 192, 0:57 left");
  CHECK(edl::app::describe(p, 0).find("left") == std::string::npos);
}
