// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <set>

#include "kubernetes/structural.hpp"
#include "kubernetes/yaml.hpp"

// k8s/trainingjob-crd.yaml, as far as it can be held against the rules of API servers without one.
namespace edl::testing::kubernetes {
namespace {

std::string const manifests = EDL_MANIFESTS;

json schema() {
  static json const all = read_yaml(manifests + "/trainingjob-crd.yaml").at(0);
  return all["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
}

/// Calls `with` for each field of an object's schema: "spec.workers.template.spec.containers[].name".
void each_field(json const& s, std::string const& at,
                std::function<void(std::string const&, json const&)> const& with) {
  json const members = s.value("properties", json::object());
  for (auto const& [name, one] : members.items()) {
    std::string const path = at.empty() ? name : at + "." + name;
    with(path, one);
    each_field(one, path, with);
    if (one.contains("items")) each_field(one["items"], path + "[]", with);
  }
}

/// The path by which the documentation knows a field; empty: it knows it by another one.
std::string documented(std::string path) {
  if (!path.starts_with("spec.") && !path.starts_with("status.")) return "";
  for (char const* role : {"spec.master.template.", "spec.servers.template.", "spec.workers.template."})
    if (path.starts_with(role)) path = "template." + path.substr(std::string_view(role).size());
  return path.find("initContainers[]") == path.npos ? path : "";
}

json without_descriptions(json s) {
  if (s.is_object()) s.erase("description");
  if (s.is_structured())
    for (json& one : s) one = without_descriptions(one);
  return s;
}

}  // namespace

TEST_CASE("the schema of TrainingJobs is structural, and its rules stay far within what they may cost") {
  CHECK(schema_errors(schema()).empty());
  double total = 0;
  auto const rules = rule_costs(schema());
  CHECK(rules.size() >= 12);
  for (rule_cost const& r : rules) {
    CAPTURE(r.rule);
    CHECK(r.cost < most_rule_cost / 10);
    total += r.cost;
  }
  CHECK(total < most_definition_cost / 10);
}

TEST_CASE("every field is described by sentences, and the lists and texts of the spec have bounds") {
  each_field(schema(), "", [](std::string const& path, json const& s) {
    CAPTURE(path);
    if (path != "metadata") CHECK(s.value("description", "").ends_with('.'));
    if (!path.starts_with("spec.")) return;
    if (s.value("type", "") == "array") CHECK(s.contains("maxItems"));
    if (s.contains("additionalProperties")) CHECK(s.contains("maxProperties"));
    if (s.value("type", "") == "string")
      CHECK((s.contains("maxLength") || s.contains("enum") || s.contains("format")));
    if (s.value("type", "") == "integer") CHECK((s.contains("minimum") && s.contains("maximum")));
  });
}

TEST_CASE("the templates of the three roles have one schema, without defaults") {
  json const spec = schema()["properties"]["spec"]["properties"];
  json const of_workers = without_descriptions(spec["workers"]["properties"]["template"]);
  CHECK(without_descriptions(spec["master"]["properties"]["template"]) == of_workers);
  CHECK(without_descriptions(spec["servers"]["properties"]["template"]) == of_workers);
  CHECK(of_workers.dump().find("\"default\"") == std::string::npos);
}

TEST_CASE("docs/trainingjob.md has a line for each field, and for no other") {
  std::set<std::string> fields, lines;
  each_field(schema(), "", [&](std::string const& path, json const&) { fields.insert(documented(path)); });
  fields.erase("");
  std::ifstream in(manifests + "/../docs/trainingjob.md");
  REQUIRE(in.good());
  for (std::string line; std::getline(in, line);)
    for (char const* root : {"| `spec.", "| `status.", "| `template."})
      if (line.starts_with(root)) CHECK(lines.insert(line.substr(3, line.find('`', 3) - 3)).second);
  std::set<std::string> none, missing, more;
  std::ranges::set_difference(fields, lines, std::inserter(missing, missing.end()));
  std::ranges::set_difference(lines, fields, std::inserter(more, more.end()));
  CHECK(missing == none);
  CHECK(more == none);
}

TEST_CASE("the examples are TrainingJobs as the definition wants them") {
  for (char const* name : {"/trainingjob-example.yaml", "/trainingjob-spot.yaml"}) {
    CAPTURE(name);
    json job = read_yaml(manifests + name).at(0);
    CHECK(prune(schema(), job).empty());
    fill_defaults(schema(), job);
    CHECK(object_errors(schema(), job, nullptr).empty());
  }
}

}  // namespace edl::testing::kubernetes
