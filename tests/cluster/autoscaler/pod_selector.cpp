// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/autoscaler/pod_selector.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace pod_selector_test {

using namespace edl::autoscaler;
using nlohmann::json;

namespace {

bool selects(json const& term, label_set const& labels, std::string const& space = "team") {
  return pod_selector(pod_selector::text_of(term, "team")).selects(space, labels);
}

label_set const web{{"app", "web"}, {"tier", "front"}};

}  // namespace

TEST_CASE("pods are selected by equal labels and by lines, all of which must hold") {
  CHECK(selects(R"({"labelSelector": {"matchLabels": {"app": "web"}}})"_json, web));
  CHECK_FALSE(selects(R"({"labelSelector": {"matchLabels": {"app": "web", "tier": "back"}}})"_json, web));
  auto const line = [](std::string const& key, std::string const& how, json const& values) {
    return json{
        {"labelSelector", {{"matchExpressions", {{{"key", key}, {"operator", how}, {"values", values}}}}}}};
  };
  CHECK(selects(line("app", "In", {"db", "web"}), web));
  CHECK_FALSE(selects(line("app", "In", {"db"}), web));
  CHECK_FALSE(selects(line("zone", "In", {"db"}), web));
  CHECK(selects(line("app", "NotIn", {"db"}), web));
  CHECK(selects(line("zone", "NotIn", {"db"}), web));
  CHECK_FALSE(selects(line("app", "NotIn", {"web"}), web));
  CHECK(selects(line("app", "Exists", nullptr), web));
  CHECK_FALSE(selects(line("app", "DoesNotExist", nullptr), web));
}

TEST_CASE("an empty selector selects all pods, and none selects none") {
  CHECK(selects(R"({"labelSelector": {}})"_json, {}));
  CHECK_FALSE(selects(R"({"topologyKey": "zone"})"_json, web));
  CHECK_FALSE(selects(R"({"labelSelector": 5})"_json, web));
}

TEST_CASE("namespaces: the pod's own, those that are named, or all") {
  CHECK_FALSE(selects(R"({"labelSelector": {}})"_json, web, "other"));
  CHECK(selects(R"({"labelSelector": {}, "namespaces": ["other"]})"_json, web, "other"));
  CHECK_FALSE(selects(R"({"labelSelector": {}, "namespaces": ["other"]})"_json, web, "team"));
  CHECK(selects(R"({"labelSelector": {}, "namespaceSelector": {}})"_json, web, "other"));
}

TEST_CASE("equal terms have one text, whatever the order of their fields") {
  auto const text = [](char const* term) { return pod_selector::text_of(json::parse(term), "team"); };
  CHECK(text(R"({"labelSelector": {"matchLabels": {"a": "1", "b": "2"}}, "namespaces": ["x", "y"]})") ==
        text(R"({"namespaces": ["y", "x"], "labelSelector": {"matchLabels": {"b": "2", "a": "1"}}})"));
  CHECK(text(R"({"labelSelector": {}})") != text(R"({"labelSelector": {}, "namespaces": ["other"]})"));
}

TEST_CASE("the lines of a pod's affinities are read, and what is none is left out") {
  json const spec = R"({"affinity": {"podAntiAffinity": {
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}],
    "requiredDuringSchedulingIgnoredDuringExecution": [
      {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}, {"labelSelector": {}}, 7]}}})"_json;
  auto const all = read_separations(spec, "podAntiAffinity", "team");
  REQUIRE(all.size() == 1);
  CHECK(all[0].topology == "zone");
  CHECK(pod_selector(all[0].mark).selects("team", web));
  CHECK(read_separations(spec, "podAffinity", "team").empty());
  CHECK(read_separations(R"({"affinity": "none"})"_json, "podAntiAffinity", "team").empty());
}

}  // namespace pod_selector_test
