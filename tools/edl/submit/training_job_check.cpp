// SPDX-License-Identifier: Apache-2.0
#include "submit/training_job_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cluster/manifests.hpp"
#include "common/command_line.hpp"
#include "common/fields.hpp"
#include "common/yaml.hpp"
#include "edl/app/arguments.hpp"
#include "edl/cluster/kubernetes/training_job.hpp"
#include "edl/core/error.hpp"
#include "edl/core/quantity.hpp"
#include "submit/schema.hpp"
#include "submit/training_job.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
using namespace nlohmann::literals;

/// The schema of the version that is written here.
json const& schema() {
  static json const read = [] {
    for (manifest_file const& m : manifests()) {
      if (std::string_view(m.name) != "trainingjob-crd.yaml") continue;
      json const definition = from_yaml(m.text, m.name);
      for (json const& version : definition.at("spec").at("versions"))
        if (version.at("name") == "v1alpha1") return version.at("schema").at("openAPIV3Schema");
    }
    return json::object();
  }();
  return read;
}

/// What a server does not look at: whether the pods can be, and the flags of the program.
class rules {
 public:
  rules(json const& object, std::string const& origin)
      : object_(object), spec_(object.at("spec")), origin_(origin) {}

  void run() const {
    for (char const* role : {"master", "servers", "workers"}) pods(role);
    flags();
  }

 private:
  [[noreturn]] void refuse(std::string const& where, std::string const& what) const {
    throw usage_error(fmt::format("{}: {}: {}", origin_, where, what));
  }

  std::int64_t number(char const* pointer, std::int64_t otherwise) const {
    return spec_.value(json::json_pointer(pointer), otherwise);
  }

  std::string strategy() const {
    return text_at(spec_, "/strategy",
                   number("/servers/replicas", 0) > 0 ? "ParameterServerStrategy" : "AllreduceStrategy");
  }

  void pods(std::string const& role) const {
    std::string const where = "spec." + role + ".template";
    json::json_pointer const at("/" + role + "/template/spec/containers");
    bool const needed = role != "servers" || number("/servers/replicas", 0) > 0;
    if (!spec_.contains(at)) {
      if (needed) refuse(where, "is missing");
      return;
    }
    json const& containers = spec_.at(at);
    if (!containers.is_array() || containers.empty() || !containers[0].is_object())
      refuse(where + ".spec.containers", "expected a list with the program's container first");
    if (text_at(containers[0], "/image").empty())
      refuse(where + ".spec.containers[0].image", "is missing: name the image that holds the model");
    for (std::size_t i = 0; i < containers.size(); ++i)
      resources(containers[i], fmt::format("{}.spec.containers[{}]", where, i));
  }

  void resources(json const& container, std::string const& where) const {
    json const most = container.value("/resources/limits"_json_pointer, json::object());
    for (char const* which : {"requests", "limits"}) {
      json const list =
          container.value(json::json_pointer(std::string("/resources/") + which), json::object());
      for (auto const& [name, unused] : list.items()) {
        std::string const at = fmt::format("{}.resources.{}.{}", where, which, name);
        try {
          std::string const amount = text_of(list, name),
                            limit = most.contains(name) ? text_of(most, name) : amount;
          check_amount(name, amount);
          if (thousandths_of(amount) > thousandths_of(limit))
            refuse(at, fmt::format("{} is above its limit, {}", amount, limit));
        } catch (usage_error const&) {
          throw;
        } catch (error const& bad) {
          refuse(at, bad.what());
        }
      }
    }
  }

  static std::string text_of(json const& list, std::string const& name) {
    json const& v = list.at(name);
    return v.is_string() ? v.get<std::string>() : v.dump();
  }

  void flags() const {
    std::string const command = text_at(spec_, "/command", "train");
    bool const servers = strategy() == "ParameterServerStrategy";
    words line{
        command, "--job_name=" + text_at(object_, "/metadata/name"),
        fmt::format("--distribution_strategy={}", servers ? "ParameterServerStrategy" : "AllreduceStrategy"),
        fmt::format("--num_workers={}", number("/workers/max", 1))};
    if (servers) line.push_back(fmt::format("--num_ps_pods={}", number("/servers/replicas", 0)));
    json const list = spec_.value("flags", json::array());
    for (std::size_t i = 0; i < list.size(); ++i) {
      std::string const flag = list[i].is_string() ? list[i].get<std::string>() : "";
      for (char const* own :
           {"job_name", "distribution_strategy", "num_workers", "num_ps_pods", "host", "port"})
        if (flag == std::string("--") + own || flag.starts_with(std::string("--") + own + "="))
          refuse(fmt::format("spec.flags[{}]", i),
                 fmt::format("--{} follows from the other fields: leave it out", own));
      line.push_back(flag);
    }
    bool starts = false;
    try {
      starts = app::parse("edl", line).run.has_value();
    } catch (usage_error const& bad) {
      refuse("spec.flags", bad.what());
    }
    if (!starts) refuse("spec.flags", "--help and --version start no job: leave them out");
  }

  json const &object_, &spec_;
  std::string const& origin_;
};

}  // namespace

void check_training_job(json const& object, std::string const& origin) {
  if (std::string const version = text_at(object, "/apiVersion"); version != training_job_version)
    throw usage_error(fmt::format("{}: apiVersion: {}: expected {}", origin, version, training_job_version));
  check_schema(schema(), object, origin);
  if (!object.contains("spec") || !object.at("spec").is_object())
    throw usage_error(fmt::format("{}: spec: is missing", origin));
  json placed = object;  // a server adds the namespace
  if (json& metadata = placed["metadata"]; !metadata.contains("namespace")) metadata["namespace"] = "default";
  try {
    edl::kubernetes::read_training_job(placed);
  } catch (error const& bad) {
    throw usage_error(fmt::format("{}: {}", origin, bad.what()));
  }
  rules(object, origin).run();
}

}  // namespace edl::tool
