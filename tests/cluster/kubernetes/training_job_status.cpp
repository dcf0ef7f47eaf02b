// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/training_job_status.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "edl/core/error.hpp"

namespace training_job_status_test {

using namespace edl::kubernetes;
using nlohmann::json;

namespace {

condition is(std::string_view type, truth status, std::string const& time = "2026-11-22T10:00:00Z") {
  return {std::string(type), status, "Because", "It is so.", time, 1};
}

training_job_status with(std::initializer_list<std::string_view> types) {
  training_job_status s;
  for (auto const type : types) set_condition(s, is(type, truth::yes));
  return s;
}

}  // namespace

TEST_CASE("a condition keeps the time of its last transition until its status is another") {
  training_job_status s;
  CHECK(set_condition(s, is("Running", truth::no)));
  condition later = is("Running", truth::no, "2026-11-22T11:00:00Z");
  later.observed_generation = 2;
  CHECK_FALSE(set_condition(s, later));
  REQUIRE(s.conditions.size() == 1);
  CHECK(s.conditions[0].last_transition_time == "2026-11-22T10:00:00Z");
  CHECK(s.conditions[0].observed_generation == 2);
  later.message = "It is still so.";
  CHECK(set_condition(s, later));
  CHECK(s.conditions[0].last_transition_time == "2026-11-22T10:00:00Z");
  later.status = truth::yes;
  CHECK(set_condition(s, later));
  CHECK(s.conditions[0].last_transition_time == "2026-11-22T11:00:00Z");
  CHECK(is_true(s, "Running"));
  CHECK_FALSE(is_true(s, "Failed"));
  CHECK(find_condition(s, "Failed") == nullptr);
}

TEST_CASE("the phase is one word for the conditions") {
  CHECK(phase_of({}) == "pending");
  CHECK(phase_of(with({"Admitted"})) == "creating");
  CHECK(phase_of(with({"Admitted", "Running"})) == "running");
  CHECK(phase_of(with({"Admitted", "Running", "Resizing"})) == "scaling");
  CHECK(phase_of(with({"Admitted", "Running", "Suspended"})) == "suspended");
  CHECK(phase_of(with({"Admitted", "Running", "Suspended", "Failed"})) == "failed");
  CHECK(phase_of(with({"Running", "Succeeded"})) == "succeeded");
}

TEST_CASE("a status is read as it was written, and an empty one too") {
  training_job_status s = with({"Admitted", "Running"});
  s.observed_generation = 3;
  s.attempts = 2;
  s.restarts = 1;
  s.start_time = "2026-11-22T10:00:00Z";
  s.completion_time = "2026-11-22T12:00:00Z";
  s.replicas = 4;
  s.selector = "elasticdl-job-name=mnist";
  s.master = {1, 1, 0};
  s.servers = {2, 1, 1};
  s.workers = {8, 4, 4};
  s.progress = {10, 20, 1, 2, 30, 40, "2026-11-22T13:00:00Z", "2026-11-22T11:00:00Z"};
  s.speeds = {{1, 930.5}, {4, 0.25}};
  s.active_seconds = 77;
  s.spot = {"a",
            "goes to a",
            "2026-11-22T10:00:00Z",
            1.25,
            "2026-11-22T11:00:00Z",
            40,
            {{"a", truth::yes, 1, 0.5, 2, 1, "2026-11-22T11:00:00Z"}, {"b"}}};
  add_scale_record(s, {"2026-11-22T10:30:00Z", 2, 4, "There is room."});
  json const written = status_json(s);
  CHECK(written["phase"] == "running");
  CHECK(written["conditions"][0]["status"] == "True");
  CHECK(read_status(json::parse(written.dump()), "team/mnist") == s);
  CHECK(read_status(status_json({}), "team/mnist") == training_job_status{});
  CHECK(read_status(json::object(), "team/mnist") == training_job_status{});
}

TEST_CASE("lists stay within what the resource allows, the newest scale records first") {
  training_job_status s;
  for (std::uint32_t i = 0; i < 15; ++i) add_scale_record(s, {"t", i, i + 1, "r"});
  CHECK(s.scale_records.size() == most_scale_records);
  CHECK(s.scale_records.front().from == 14);
  s.speeds.resize(40);
  s.conditions = {is("Failed", truth::yes)};
  s.conditions[0].message.assign(100'000, 'x');
  s.conditions[0].reason.assign(1, char(0xff));
  json const written = status_json(s);
  CHECK(written["speeds"].size() == most_speeds);
  CHECK(written["conditions"][0]["message"].get<std::string>().size() <= 32768);
  CHECK_NOTHROW(written.dump());
}

TEST_CASE("a status that no controller writes is refused with its field") {
  CHECK_THROWS_WITH(read_status({{"attempts", -1}}, "team/mnist"),
                    "team/mnist: status.attempts is -1: expected a whole number from 0 to 1000000000");
  CHECK_THROWS_WITH(read_status({{"conditions", {{{"type", "A"}, {"status", "maybe"}}}}}, "team/mnist"),
                    "team/mnist: status.conditions[0].status is neither True nor False nor Unknown");
  json const one{{"type", "A"}, {"status", "True"}};
  CHECK_THROWS_WITH(read_status({{"conditions", {one, one}}}, "team/mnist"),
                    "team/mnist: status.conditions[1].type occurs twice");
  CHECK_THROWS_AS(read_status(json::array(), "team/mnist"), edl::error);
}

}  // namespace training_job_status_test
