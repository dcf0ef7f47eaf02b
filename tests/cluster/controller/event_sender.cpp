// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/controller/event_sender.hpp"

#include <doctest/doctest.h>

#include <latch>

namespace event_sender_test {

using namespace edl::controller;

namespace {

/// An API server that answers its first request when it is told to, and refuses the second.
class slow_server : public api_requests {
 public:
  std::latch asked{1}, answers{1}, third{3};
  std::vector<std::string> reasons;

  nlohmann::json get(std::string const&) override { return {}; }
  nlohmann::json create(std::string const& path, nlohmann::json const& event) override {
    CHECK(path == "/api/v1/namespaces/team/events");
    reasons.push_back(event.at("reason"));
    if (reasons.size() == 1) {
      asked.count_down();
      answers.wait();
    }
    if (reasons.size() <= 3) third.count_down();
    if (reasons.size() == 2) throw deposed{};
    return event;
  }
  nlohmann::json patch(std::string const&, nlohmann::json const&, std::string const&) override { return {}; }
  nlohmann::json remove(std::string const&, nlohmann::json const&) override { return {}; }
};

edl::kubernetes::training_job a_job() {
  edl::kubernetes::training_job job;
  job.name = "mnist", job.space = "team", job.uid = "1";
  return job;
}

}  // namespace

TEST_CASE("events that wait for a slow server are bounded, and the rest is counted as dropped") {
  slow_server server;
  edl::metric_registry counted;
  counted.describe("edl_controller_events_dropped_total", edl::metric_type::counter, "Events.");
  {
    event_sender sender(server, counted, edl::logger{});
    sender.send(a_job(), {{false, "First", "it is sent at once"}}, 1'800'000'000);
    server.asked.wait();
    sender.send(a_job(), std::vector<job_event>(1'005, {true, "Next", "it waits"}), 1'800'000'000);
    CHECK(counted.text().find("edl_controller_events_dropped_total 5") != std::string::npos);
    server.answers.count_down();
    server.third.wait();  // the refusal of the second has not ended the thread
  }
  CHECK(server.reasons.front() == "First");
  CHECK(server.reasons.size() < 1'006);  // what waits at the end is dropped, not waited for
}

}  // namespace event_sender_test
