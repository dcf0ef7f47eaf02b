// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/custom.hpp"

#include <algorithm>
#include <charconv>

namespace edl::testing::kubernetes {
namespace {

json pointer_steps(std::string const& path) {  // ".a.b[0]" as ["a", "b", 0]
  json steps = json::array();
  for (std::size_t at = 0; at < path.size();) {
    auto const end = std::min(path.find_first_of(".[", at + 1), path.size());
    std::string const step = path.substr(at + 1, end - at - 1);
    if (path[at] == '[')
      steps.push_back(std::stoul(step));
    else
      steps.push_back(step);
    at = end;
  }
  return steps;
}

}  // namespace

type defined_by(json const& crd) {
  json const& spec = crd.at("spec");
  json const& names = spec.at("names");
  json const& versions = spec.at("versions");
  auto const stored = std::ranges::find_if(versions, [](json const& v) { return v.value("storage", false); });
  json const& version = stored == versions.end() ? versions.at(0) : *stored;
  json const sub = version.value("subresources", json::object());
  type t{spec.at("group"), version.at("name"), names.at("plural"), names.at("kind"),
         spec.value("scope", "Namespaced") == "Namespaced"};
  t.has_status = sub.contains("status");
  for (char const* one : {"status", "scale"})
    if (sub.contains(one)) t.subresources.push_back(one);
  if (sub.contains("scale")) {
    t.spec_replicas = sub["scale"].at("specReplicasPath");
    t.status_replicas = sub["scale"].at("statusReplicasPath");
    t.selector = sub["scale"].value("labelSelectorPath", "");
  }
  t.short_names = names.value("shortNames", std::vector<std::string>{});
  t.categories = names.value("categories", std::vector<std::string>{});
  t.singular = names.value("singular", "");
  t.needs_version = true;
  t.columns = version.value("additionalPrinterColumns", json::array());
  t.schema = version.value("schema", json::object()).value("openAPIV3Schema", json::object());
  return t;
}

bool is_established(json const& crd) {
  json const status = crd.value("status", json::object());
  json const conditions = status.value("conditions", json());
  return conditions.is_array() && std::ranges::any_of(conditions, [](json const& c) {
           return c["type"] == "Established" && c["status"] == "True";
         });
}

void establish(store& in, std::string const& crd) {
  auto const held = in.lock();
  type const& crds = in.kind("customresourcedefinitions");
  object const o = in.find(crds, "", crd);
  if (!o) return;
  in.define(defined_by(*o));
  in.change_by(crds, "", crd, [](json& c) {
    c["status"]["acceptedNames"] = c["spec"]["names"];
    if (is_established(c)) return;
    json& conditions = c["status"]["conditions"] = json::array();
    for (auto const& [kind, reason, message] :
         {std::tuple{"NamesAccepted", "NoConflicts", "no conflicts found"},
          {"Established", "InitialNamesAccepted", "the initial names have been accepted"}})
      conditions.push_back({{"type", kind},
                            {"status", "True"},
                            {"lastTransitionTime", timestamp()},
                            {"reason", reason},
                            {"message", message}});
  });
}

clock::time_point definitions::pass() {
  auto const held = store_.lock();
  auto next = clock::time_point::max();
  for (object const& o : store_.list(store_.kind("customresourcedefinitions"))) {
    if (is_established(*o)) continue;
    auto const due =
        made_.emplace((*o)["metadata"]["uid"], clock::now()).first->second + options_.establish_delay;
    if (due <= clock::now())
      establish(store_, (*o)["metadata"]["name"]);
    else
      next = std::min(next, due);
  }
  return next;
}

json at_path(json const& o, std::string const& path) {
  json const* at = &o;
  for (json const& step : pointer_steps(path)) {
    bool const there = step.is_string() ? at->is_object() && at->contains(step.get<std::string>())
                                        : at->is_array() && step.get<std::size_t>() < at->size();
    if (!there) return nullptr;
    at = step.is_string() ? &at->at(step.get<std::string>()) : &at->at(step.get<std::size_t>());
  }
  return *at;
}

json scale_of(type const& of, json const& o, bool strict) {
  if (strict && !at_path(o, of.spec_replicas).is_number_integer()) {
    std::string const why = fmt::format("the spec replicas field \"{}\" does not exist", of.spec_replicas);
    throw refusal{500, failure(500, "InternalError", "Internal error occurred: " + why,
                               {{"causes", {{{"message", why}}}}})};
  }
  auto const number = [&](std::string const& path) {
    json const v = at_path(o, path);
    return v.is_number_integer() ? v.get<std::int64_t>() : 0;
  };
  json out{{"kind", "Scale"},
           {"apiVersion", "autoscaling/v1"},
           {"spec", json::object()},
           {"status", {{"replicas", number(of.status_replicas)}}}};
  // Go leaves out a zero in the one, and not in the other.
  if (auto const n = number(of.spec_replicas)) out["spec"]["replicas"] = n;
  if (json const s = of.selector.empty() ? json() : at_path(o, of.selector); s.is_string())
    out["status"]["selector"] = s;
  return out;
}

void set_scale(type const& of, json& o, json const& replicas) {
  json* at = &o;
  for (json const& step : pointer_steps(of.spec_replicas)) at = &(*at)[step.get<std::string>()];
  *at = replicas;
}

}  // namespace edl::testing::kubernetes
