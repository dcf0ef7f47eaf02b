// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kueue/kueue_store.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace kueue_store_test {

using namespace edl::kueue;
using nlohmann::json;

namespace {
json workload_of(std::string const& name, std::string const& owner, int version,
                 std::string const& uid = "w") {
  return {{"metadata",
           {{"name", name},
            {"namespace", "team"},
            {"uid", uid},
            {"resourceVersion", std::to_string(version)},
            {"ownerReferences", json::array({{{"apiVersion", "elasticdl.org/v1alpha1"},
                                              {"kind", "TrainingJob"},
                                              {"name", "job-" + owner},
                                              {"uid", owner},
                                              {"controller", true}}})}}},
          {"spec", {{"queueName", "q" + std::to_string(version)}}}};
}
}  // namespace

TEST_CASE("Workloads by the job that owns them; older news and those of others change nothing") {
  object_store s;
  CHECK(s.put(kueue_kind::workload, workload_of("a", "u1", 5)).owners == std::set<std::string>{"u1"});
  CHECK(s.put(kueue_kind::workload, workload_of("b", "u1", 99)).owners.size() == 1);
  CHECK(s.put(kueue_kind::workload, workload_of("a", "u1", 4)).owners.empty());
  CHECK(s.put(kueue_kind::workload, workload_of("b", "u1", 100)).owners.size() ==
        1);  // by number, not by text
  REQUIRE(s.workloads_of("u1").size() == 2);
  CHECK(s.workloads_of("u1")[0]->queue == "q5");
  CHECK(s.workloads_of("u1")[1]->queue == "q100");
  json other = workload_of("c", "u1", 7);
  other["metadata"]["ownerReferences"][0]["kind"] = "Job";
  CHECK(s.put(kueue_kind::workload, other).owners.empty());
  CHECK(s.workloads_of("u1").size() == 2);
  // An object that was made anew under its name has an owner of its own.
  CHECK(s.put(kueue_kind::workload, workload_of("a", "u2", 101, "w2")).owners ==
        std::set<std::string>{"u1", "u2"});
  CHECK(s.remove(kueue_kind::workload, workload_of("a", "u1", 6)).owners.empty());
  CHECK(s.workloads_of("u2").size() == 1);
  CHECK(s.remove(kueue_kind::workload, workload_of("a", "u2", 101, "w2")).owners.size() == 1);
  CHECK(s.workloads_of("u2").empty());
}

TEST_CASE("what a list does not bring is gone") {
  object_store s;
  s.put(kueue_kind::workload, workload_of("a", "u1", 5));
  s.put(kueue_kind::flavor, {{"metadata", {{"name", "f"}}}, {"spec", {{"nodeLabels", {{"x", "y"}}}}}});
  s.begin(kueue_kind::workload);
  s.put(kueue_kind::workload, workload_of("b", "u2", 6));
  auto const c = s.end(kueue_kind::workload);
  CHECK(c.owners.contains("u1"));
  CHECK(s.workloads_of("u1").empty());
  CHECK(s.workloads_of("u2").size() == 1);
  CHECK(s.flavor("f")->node_selector.at("x") == "y");
  s.begin(kueue_kind::flavor);
  s.end(kueue_kind::flavor);
  CHECK(s.flavor("f") == nullptr);
  CHECK(s.put(kueue_kind::priority_class, {{"metadata", {{"name", "high"}}}, {"value", 7}}).all);
  CHECK(s.priority("high") == 7);
  CHECK_FALSE(s.priority("low"));
}

TEST_CASE("nothing is complete before it is known whether Kueue is there") {
  object_store s;
  CHECK_FALSE(s.complete());
  CHECK_FALSE(s.served());
  s.serves(false);
  CHECK(s.complete());
  s.serves(true);
  CHECK_FALSE(s.complete());
  for (kueue_kind k : {kueue_kind::workload, kueue_kind::flavor, kueue_kind::priority_class}) {
    s.begin(k);
    s.end(k);
  }
  CHECK(s.complete());
  CHECK(s.served());
}

}  // namespace kueue_store_test
