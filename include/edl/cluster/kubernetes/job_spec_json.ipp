// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"

namespace edl::kubernetes {
namespace detail::spec_json {

using nlohmann::json;

inline constexpr std::size_t longest_text = std::size_t{1} << 20;  // bytes

inline json role_to(role_spec const& r) {
  json out = json::object();
  if (!r.request.empty()) out["request"] = r.request;
  if (resources const limit = limit_of(r.request, r.limit); !limit.empty()) out["limit"] = limit;
  if (!r.priority.empty()) out["priority"] = r.priority;
  return out;
}

inline json volume_to(volume const& v) {
  json out{{"mount_path", v.mount_path}};
  if (!v.claim_name.empty()) out["claim_name"] = v.claim_name;
  if (!v.host_path.empty()) out["host_path"] = v.host_path;
  if (!v.type.empty()) out["type"] = v.type;
  if (!v.sub_path.empty()) out["sub_path"] = v.sub_path;
  if (v.read_only) out["read_only"] = true;
  return out;
}

inline json owner_to(owner const& by) {
  if (by.empty()) return json::object();
  return {{"api_version", by.api_version}, {"kind", by.kind}, {"name", by.name}, {"uid", by.uid}};
}

/// Keeps a text that is not JSON as it is; `check` and `job_from_json` refuse it.
inline json template_to(std::string const& text) {
  if (text.empty()) return json::object();
  json parsed = parse_json(text);
  return parsed.is_discarded() ? json(text) : parsed;
}

inline json whole(job_spec const& s) {
  json all{{"job_name", s.name},
           {"namespace", s.space},
           {"image_name", s.image},
           {"worker_image", s.worker_image},
           {"command", s.command},
           {"num_workers", s.num_workers},
           {"num_ps_pods", s.num_servers},
           {"master", role_to(s.master)},
           {"ps", role_to(s.server)},
           {"worker", role_to(s.worker)},
           {"image_pull_policy", s.image_pull_policy},
           {"restart_policy", s.restart_policy},
           {"image_pull_secrets", s.image_pull_secrets},
           {"service_account", s.service_account},
           {"volumes", json::array()},
           {"envs", json::array()},
           {"populate_env_names", s.populate_env_names},
           {"cluster_spec", s.cluster_spec},
           {"relaunch", s.relaunch},
           {"grace_seconds", s.grace_seconds},
           {"owner", owner_to(s.by)},
           {"secret", s.secret},
           {"initial_workers", s.initial_workers},
           {"ps_template", template_to(s.server_template)},
           {"worker_template", template_to(s.worker_template)}};
  for (volume const& v : s.volumes) all["volumes"].push_back(volume_to(v));
  for (auto const& [name, value] : s.variables) all["envs"].push_back({name, value});
  return all;
}

/// Takes the fields of an object one by one; fields that remain are unknown.
class fields {
 public:
  fields(json const& of, std::string where) : object_(of), where_(std::move(where)) {
    if (!of.is_object()) fail("is not an object");
  }

  void take(char const* name, std::string& into) {
    if (auto const* v = find(name)) into = text(*v, name);
  }
  void take(char const* name, bool& into) {
    auto const* v = find(name);
    if (v && !v->is_boolean()) fail(fmt::format("'{}' is neither true nor false", name));
    if (v) into = v->get<bool>();
  }
  void take(char const* name, std::uint32_t& into) {
    auto const* v = find(name);
    if (v &&
        (!v->is_number_unsigned() || v->get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max()))
      fail(fmt::format("'{}' is not a number from 0 to 2^32 - 1", name));
    if (v) into = v->get<std::uint32_t>();
  }
  void take(char const* name, std::vector<std::string>& into) {
    for (json const& v : list(name)) into.push_back(text(v, name));
  }
  void take(char const* name, resources& into) {
    auto const* v = find(name);
    if (v && !v->is_object()) fail(fmt::format("'{}' is not an object", name));
    if (v)
      for (auto const& [key, amount] : v->items()) into[key] = text(amount, name);
  }
  void take(char const* name, platform::environment& into) {
    for (json const& v : list(name)) {
      if (!v.is_array() || v.size() != 2) fail(fmt::format("'{}' is not a list of pairs", name));
      into.emplace_back(text(v[0], name), text(v[1], name));
    }
  }
  void take(char const* name, role_spec& into) {
    auto const* v = find(name);
    if (!v) return;
    fields f(*v, fmt::format("{}'{}': ", where_, name));
    f.take("request", into.request);
    f.take("limit", into.limit);
    into.limit = limit_of(into.request, into.limit);
    f.take("priority", into.priority);
    f.end();
  }
  void take(char const* name, std::vector<volume>& into) {
    for (json const& v : list(name)) {
      fields f(v, fmt::format("{}'{}': ", where_, name));
      volume& one = into.emplace_back();
      f.take("claim_name", one.claim_name);
      f.take("host_path", one.host_path);
      f.take("type", one.type);
      f.take("mount_path", one.mount_path);
      f.take("sub_path", one.sub_path);
      f.take("read_only", one.read_only);
      f.end();
    }
  }

  void take(char const* name, owner& into) {
    auto const* v = find(name);
    if (!v) return;
    fields f(*v, fmt::format("{}'{}': ", where_, name));
    f.take("api_version", into.api_version);
    f.take("kind", into.kind);
    f.take("name", into.name);
    f.take("uid", into.uid);
    f.end();
    if (into.api_version.empty() || into.kind.empty() || into.name.empty() || into.uid.empty())
      f.fail("'api_version', 'kind', 'name' and 'uid' are needed");
  }
  void take_object(char const* name, std::string& into) {
    auto const* v = find(name);
    if (v && !v->is_object()) fail(fmt::format("'{}' is not an object", name));
    if (v) into = v->dump();
  }

  void end() const {
    for (auto const& [name, value] : object_.items())
      if (!taken_.contains(name))
        fail(fmt::format(
            "'{}' is unknown here: build the image with the version of the command that starts it", name));
  }

 private:
  json const* find(char const* name) {
    taken_.insert(name);
    auto const found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  json const& list(char const* name) {
    static json const none = json::array();
    auto const* v = find(name);
    if (v && !v->is_array()) fail(fmt::format("'{}' is not a list", name));
    return v ? *v : none;
  }
  std::string text(json const& v, char const* name) const {
    if (!v.is_string()) fail(fmt::format("'{}' has an element that is not a string", name));
    return v.get<std::string>();
  }
  [[noreturn]] void fail(std::string const& what) const {
    throw error(fmt::format("this is not a job: {}{}", where_, what));
  }

  json const& object_;
  std::string where_;
  std::set<std::string> taken_;
};

}  // namespace detail::spec_json

EDL_INLINE std::string to_json(job_spec const& s) {
  using namespace detail::spec_json;
  json const usual = whole({});
  json out = json::object();
  json const all = whole(s);
  for (auto const& [key, value] : all.items())
    if (value != usual[key]) out[key] = value;
  try {
    return out.dump();
  } catch (json::exception const&) {
    throw usage_error(
        "a flag of this job has bytes that are not UTF-8, which Kubernetes cannot store: leave them out");
  }
}

EDL_INLINE job_spec job_from_json(std::string const& text) {
  using namespace detail::spec_json;
  if (text.size() > longest_text)
    throw error(fmt::format("this is not a job: {} bytes are more than {}", text.size(), longest_text));
  json const parsed = parse_json(text);
  if (parsed.is_discarded()) throw error("this is not a job: it is " + why_no_json(text));
  job_spec s;
  fields f(parsed, "");
  f.take("job_name", s.name);
  f.take("namespace", s.space);
  f.take("image_name", s.image);
  f.take("worker_image", s.worker_image);
  f.take("command", s.command);
  f.take("num_workers", s.num_workers);
  f.take("num_ps_pods", s.num_servers);
  f.take("master", s.master);
  f.take("ps", s.server);
  f.take("worker", s.worker);
  f.take("image_pull_policy", s.image_pull_policy);
  f.take("restart_policy", s.restart_policy);
  f.take("image_pull_secrets", s.image_pull_secrets);
  f.take("service_account", s.service_account);
  f.take("volumes", s.volumes);
  f.take("envs", s.variables);
  f.take("populate_env_names", s.populate_env_names);
  f.take("cluster_spec", s.cluster_spec);
  f.take("relaunch", s.relaunch);
  f.take("grace_seconds", s.grace_seconds);
  f.take("owner", s.by);
  f.take("secret", s.secret);
  f.take("initial_workers", s.initial_workers);
  f.take_object("ps_template", s.server_template);
  f.take_object("worker_template", s.worker_template);
  f.end();
  return s;
}

}  // namespace edl::kubernetes
