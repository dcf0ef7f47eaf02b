// SPDX-License-Identifier: Apache-2.0
#include "training_job_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "command_line.hpp"
#include "edl/app/flags.hpp"
#include "edl/core/error.hpp"
#include "edl/core/quantity.hpp"
#include "edl/platform/kubernetes/job_spec.hpp"
#include "edl/platform/kubernetes/names.hpp"
#include "fields.hpp"
#include "manifests.hpp"
#include "schema.hpp"
#include "training_job.hpp"
#include "yaml.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
using namespace nlohmann::literals;
namespace k8s = platform::kubernetes;

/// The schema of the version that is written here.
json const& schema() {
  static json const read = [] {
    for (manifest_file const& m : manifests())
      if (std::string_view(m.name) == "trainingjob-crd.yaml")
        for (json const& version : from_yaml(m.text, m.name).at("spec").at("versions"))
          if (version.at("name") == "v1alpha1") return version.at("schema").at("openAPIV3Schema");
    return json::object();
  }();
  return read;
}

/// What the rules of the schema cannot say, in the order of the fields.
class rules {
 public:
  rules(json const& object, std::string const& origin)
      : object_(object), spec_(object.at("spec")), origin_(origin) {}

  void run() const {
    name();
    sizes();
    for (char const* role : {"master", "servers", "workers"}) pods(role);
    flags();
  }

 private:
  [[noreturn]] void refuse(std::string const& where, std::string const& what) const {
    throw usage_error(fmt::format("{}: {}: {}", origin_, where, what));
  }

  void name() const {
    std::string const text = text_at(object_, "/metadata/name");
    if (!k8s::is_label(text) || text.size() > k8s::longest_job_name)
      refuse("metadata.name",
             fmt::format("'{}': expected lower case letters, digits and '-', at most {} characters", text,
                         k8s::longest_job_name));
  }

  std::int64_t number(char const* pointer, std::int64_t otherwise) const {
    return spec_.value(json::json_pointer(pointer), otherwise);
  }

  std::string strategy() const {
    return text_at(spec_, "/strategy",
                   number("/servers/replicas", 0) > 0 ? "ParameterServerStrategy" : "AllreduceStrategy");
  }

  void sizes() const {
    auto const min = number("/workers/min", 1), max = number("/workers/max", min),
               servers = number("/servers/replicas", 0);
    if (min > max) refuse("spec.workers.min", fmt::format("{} is above max, {}", min, max));
    if (json::json_pointer const at("/workers/replicas"); spec_.contains(at) && !spec_.at(at).is_null())
      if (auto const n = number("/workers/replicas", min); n < min || n > max)
        refuse("spec.workers.replicas",
               fmt::format("{}: expected a number from min, {}, to max, {}", n, min, max));
    std::string const how = strategy();
    if (how == "ParameterServerStrategy" && servers == 0)
      refuse("spec.servers.replicas", "ParameterServerStrategy needs a server at least");
    if (how != "ParameterServerStrategy" && servers > 0)
      refuse("spec.servers.replicas", fmt::format("{}: {} has no servers", servers, how));
    if (how == "Local" && max > 1) refuse("spec.workers.max", fmt::format("{}: Local has one worker", max));
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
      refuse(where + ".spec.containers", "expected a list whose first container is the program's");
    if (text_at(containers[0], "/image").empty())
      refuse(where + ".spec.containers[0].image", "is missing: which image holds the model?");
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
          bytes_of(amount);
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
    try {
      if (!app::parse("edl", line).run)
        refuse("spec.flags", "--help and --version start no job: leave them out");
    } catch (usage_error const& bad) {
      refuse("spec.flags", bad.what());
    }
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
  rules(object, origin).run();
}

}  // namespace edl::tool
