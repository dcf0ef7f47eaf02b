// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/observe/progress.hpp"

#include <doctest/doctest.h>

namespace progress_test {

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

TEST_CASE("what a job ends with names no loss that nobody told of") {
  edl::master::job_progress p;
  p.version = 192;
  CHECK(edl::train::outcome(p) == "version 192");
  p.loss = 0.113;
  CHECK(edl::train::outcome(p) == "version 192, loss 0.113");
}

TEST_CASE("a job that stands still has no rate, and nobody tells when it will be done") {
  using namespace std::chrono_literals;
  edl::master::job_progress p;
  p.total_records = 100'000;
  edl::job const j;
  edl::train::progress_view view(j, edl::logger(edl::severity::critical));
  edl::time_point now{1h};
  view.update(p, now);
  p.done.records_done = 1'000;
  CHECK(view.update(p, now += 20s).find("50 records/s") != std::string::npos);
  std::string const still = view.update(p, now += 20s);
  CHECK(still.find(" 0 records/s") != std::string::npos);
  CHECK(still.find("left") == std::string::npos);
  p.done.records_done = 3'000;
  CHECK(view.update(p, now += 20s).find("100 records/s") != std::string::npos);
}

TEST_CASE("on a terminal it says what is known, and how long it will take as soon as somebody can tell") {
  using edl::cli::fit;
  edl::job j;
  j.data.num_epochs = 2;
  edl::train::progress_numbers n;
  n.records = 120'000;
  CHECK(fit(status_of(j, n), 79) == "epoch 1/2  0 %  -- records/s  --:-- left");
  n.at.epoch = 1, n.at.done.records_done = 90'000, n.rate = 1873.4, n.loss = 0.11349;
  n.metrics = {{"accuracy", 0.97123}, {"auc", 0.5}};
  CHECK(fit(status_of(j, n), 79) ==
        "epoch 2/2  75 %  1873 records/s  loss 0.1135  accuracy 0.9712  0:16 left");
  CHECK(fit(status_of(j, n), 100) ==
        "epoch 2/2  75 %  1873 records/s  loss 0.1135  accuracy 0.9712  auc 0.5  0:16 left");
  CHECK(fit(status_of(j, n), 39) == "epoch 2/2  75 %  loss 0.1135  0:16 left");
  j.data.num_epochs = 0, n.records = {};
  CHECK(fit(status_of(j, n), 50) == "epoch 2  1873 records/s  loss 0.1135");
  j.command = edl::command::predict, n.records = 100'000, n.loss = 0, n.metrics.clear();
  CHECK(fit(status_of(j, n), 50) == "90 %  1873 records/s  0:05 left");
}

TEST_CASE("a time is read at a glance") {
  CHECK(edl::train::clock_text(7.9) == "0:07");
  CHECK(edl::train::clock_text(723) == "12:03");
  CHECK(edl::train::clock_text(3723) == "1:02:03");
  CHECK(edl::train::clock_text(-1) == "0:00");
}

TEST_CASE("a line is drawn from the first look on, a few times a second, and goes at the end") {
  using namespace std::chrono_literals;
  std::vector<edl::cli::status_line> drawn;
  edl::job j;
  j.data.max_step = 10;  // of 64 records each
  edl::master::job_progress p;
  p.total_records = 100'000;
  edl::time_point now{1h};
  {
    edl::train::progress_view view(j, edl::logger(edl::severity::critical),
                                   [&](edl::cli::status_line const& l) { drawn.push_back(l); });
    CHECK(view.watched());
    CHECK_FALSE(view.update(p, now).empty());
    CHECK(view.update(p, now += 100ms).empty());
    p.done.records_done = 320, p.rate = 32, p.loss = 0.5, p.leased = 1;
    CHECK_FALSE(view.update(p, now += 200ms).empty());
    p.loss = 0;  // whoever knew it has gone
    view.evaluated({{"accuracy", 0.9}}, 5, 100);
    view.update(p, now += 300ms);
    CHECK(view.loss() == 0.5);
    CHECK(view.seconds(now) == doctest::Approx(0.6));
  }
  REQUIRE(drawn.size() == 4);
  CHECK(fit(drawn[0], 79) == "epoch 1/1  0 %  -- records/s  --:-- left");
  CHECK(fit(drawn[1], 79) == "epoch 1/1  50 %  32 records/s  loss 0.5  0:10 left");
  CHECK(fit(drawn[2], 79) == "epoch 1/1  50 %  32 records/s  loss 0.5  accuracy 0.9  0:10 left");
  CHECK(drawn[3].empty());
}

}  // namespace progress_test
