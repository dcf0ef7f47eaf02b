// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <regex>
#include <set>
#include <string_view>

#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/cluster/kubernetes/names.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/quantity.hpp"
#include "edl/core/text.hpp"

namespace edl::kubernetes {
namespace detail::spec {

inline std::vector<std::string> parts(std::string_view text, char separator) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at <= text.size();) {
    auto const end = std::min(text.find(separator, at), text.size());
    all.emplace_back(trimmed(text.substr(at, end - at)));
    at = end + 1;
  }
  return all;
}

/// Splits "key=value"; both parts must not be empty.
inline std::pair<std::string, std::string> pair_of(std::string const& flag, std::string const& text,
                                                   char const* expected) {
  auto const at = text.find('=');
  std::string key(trimmed(std::string_view(text).substr(0, at)));
  std::string value(at == std::string::npos ? "" : trimmed(std::string_view(text).substr(at + 1)));
  if (key.empty() || value.empty())
    throw usage_error(fmt::format("{}: '{}': expected {}", flag, text, expected));
  return {std::move(key), std::move(value)};
}

inline bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 18 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// A number, or [1-9][0-9]*m.
inline bool is_cpu(std::string const& text) {
  if (text.ends_with('m'))
    return text[0] != '0' && is_number(std::string_view(text).substr(0, text.size() - 1));
  return (text[0] == '.' || (text[0] >= '0' && text[0] <= '9')) && number_from<double>(text);
}

/// Kubernetes' name of a key; empty: unknown.
inline std::string resource_name(std::string const& key) {
  if (key == "cpu" || key == "memory" || key == "ephemeral-storage") return key;
  if (key == "disk") return "ephemeral-storage";
  if (key == "gpu") return "nvidia.com/gpu";
  auto const slash = key.find('/');
  if (slash == std::string::npos || !is_subdomain(std::string_view(key).substr(0, slash))) return {};
  std::string const vendor = key.substr(0, slash), own = key.substr(slash + 1);
  return own == "gpu" || (vendor == "nvidia.com" && own.size() <= 63 && is_subdomain(own)) ? key : "";
}

/// Parses `text` as a number; nothing if it is none.
inline std::optional<double> number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || std::string_view("-.0123456789").find(text[0]) == std::string_view::npos) return {};
  return number_from<double>(text);
}

inline volume volume_of(std::string const& text) {
  static std::set<std::string, std::less<>> const types{
      "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"};
  constexpr char const* expected =
      "host_path=PATH or claim_name=NAME, mount_path=PATH, and perhaps sub_path, type, read_only";
  volume v;
  std::set<std::string> seen;
  for (std::string const& part : parts(text, ',')) {
    auto const [key, value] = pair_of("--volume", part, expected);
    auto const refuse = [&, k = key, x = value](char const* why) {
      throw usage_error(fmt::format("--volume: {}={}: {}", k, x, why));
    };
    if (!seen.insert(key).second) refuse("is given twice; separate volumes with ';'");
    if (key == "claim_name") {
      if (!is_subdomain(value)) refuse("no claim has such a name: lower case letters, digits, '-' and '.'");
      v.claim_name = value;
    } else if (key == "host_path" || key == "mount_path") {
      if (value[0] != '/') refuse("expected a path from the root, as /data");
      if (value.find(':') != std::string::npos || ("/" + value + "/").find("/../") != std::string::npos)
        refuse("a path may contain neither ':' nor '..'");
      (key == "host_path" ? v.host_path : v.mount_path) = value;
    } else if (key == "sub_path") {
      if (value[0] == '/' || ("/" + value + "/").find("/../") != std::string::npos)
        refuse("expected a path inside of the volume, without '..', as train/mnist");
      v.sub_path = value;
    } else if (key == "type") {
      if (!types.contains(value)) refuse("expected Directory, DirectoryOrCreate, File or FileOrCreate");
      v.type = value;
    } else if (key == "read_only") {
      if (value != "true" && value != "false") refuse("expected true or false");
      v.read_only = value == "true";
    } else if (key != "volume_name") {
      refuse(fmt::format("is unknown; expected {}", expected).c_str());
    }
  }
  auto const refuse = [&](char const* why) {
    throw usage_error(fmt::format("--volume: '{}': {}", text, why));
  };
  if (v.claim_name.empty() == v.host_path.empty())
    refuse("expected one of host_path=PATH and claim_name=NAME");
  if (v.mount_path.empty()) refuse("its mount point is missing: add mount_path=PATH");
  if (!v.type.empty() && v.host_path.empty()) refuse("type= is only for a host_path: leave it out");
  return v;
}

}  // namespace detail::spec

EDL_INLINE resources parse_resources(std::string const& flag, std::string const& text) {
  using namespace detail::spec;
  resources all;
  std::set<std::string> seen;
  if (trimmed(text).empty()) return all;
  for (std::string const& part : parts(text, ',')) {
    auto [key, value] = pair_of(flag, part, "NAME=AMOUNT, as cpu=1,memory=4096Mi");
    auto const refuse = [&, k = key, x = value](char const* why) {
      throw usage_error(fmt::format("{}: {}={}: {}", flag, k, x, why));
    };
    std::string const name = resource_name(key);
    if (name.empty()) refuse("is unknown; expected cpu, memory, disk, ephemeral-storage, gpu or VENDOR/gpu");
    if (!seen.insert(key).second || (key != name && name != "ephemeral-storage" && !seen.insert(name).second))
      refuse("is given twice");
    if (name == "cpu") {
      if (!is_cpu(value)) refuse("expected processors, as 2, 0.5 or 500m");
    } else if (name != "memory" && name != "ephemeral-storage" && !is_number(value)) {
      refuse("expected a whole number");
    }
    try {
      check_amount(name, value);
      if (name != "cpu" && name.find('/') == std::string::npos && bytes_of(value) == 0)
        refuse("expected a size, as 4096Mi or 4Gi");
      if (auto const old = all.find(name); old != all.end() && bytes_of(old->second) > bytes_of(value))
        continue;
    } catch (usage_error const&) {
      throw;
    } catch (error const& e) {
      refuse(e.what());
    }
    all[name] = value;
  }
  return all;
}

EDL_INLINE resources limit_of(resources const& request, resources const& limit) {
  if (limit.empty()) return request;
  resources all = limit;
  for (auto const& [name, amount] : request)
    if (name.find('/') != std::string::npos) all.emplace(name, amount);
  return all;
}

EDL_INLINE std::vector<volume> parse_volumes(std::string const& text) {
  using namespace detail::spec;
  std::vector<volume> all;
  std::set<std::string> mounted;
  for (std::string const& part : parts(text, ';')) {
    if (part.empty()) continue;
    all.push_back(volume_of(part));
    if (!mounted.insert(all.back().mount_path).second)
      throw usage_error(fmt::format("--volume: mount_path={}: is given twice", all.back().mount_path));
  }
  return all;
}

EDL_INLINE platform::environment parse_environment(std::string const& flag, std::string const& text) {
  using namespace detail::spec;
  platform::environment all;
  std::set<std::string> seen;
  if (trimmed(text).empty()) return all;
  for (std::size_t at = 0; at <= text.size();) {
    auto const equals = text.find('=', at);
    std::string const name(trimmed(std::string_view(text).substr(at, equals - at)));
    if (equals == std::string::npos || !is_variable(name))
      throw usage_error(
          fmt::format("{}: '{}': expected NAME=VALUE,NAME=VALUE, names of letters, digits and '_'", flag,
                      text.substr(at)));
    if (!seen.insert(name).second) throw usage_error(fmt::format("{}: {} is given twice", flag, name));
    auto comma = text.find(',', equals);
    for (; comma != std::string::npos; comma = text.find(',', comma + 1)) {
      auto const next = text.find_first_of(",=", comma + 1);
      if (next == std::string::npos || text[next] == ',') continue;
      if (is_variable(trimmed(std::string_view(text).substr(comma + 1, next - comma - 1)))) break;
    }
    auto const end = std::min(comma, text.size());
    all.emplace_back(name, text.substr(equals + 1, end - equals - 1));
    at = end + 1;
  }
  return all;
}

EDL_INLINE bool reserved_variable(std::string const& name) {
  static std::set<std::string> const names{
      "EDL_ROLE",     "EDL_PORT",    "EDL_JOB_NAME", "EDL_JOB_TOKEN",   "EDL_JOB",
      "EDL_PLATFORM", "EDL_JOURNAL", "EDL_LAUNCHER", "EDL_JOB_DIR",     "EDL_LAUNCHER_TOKEN",
      "EDL_LOCK",     "MASTER_ADDR", "WORKER_ID",    "PS_ID",           "WORKER_NUM",
      "MY_POD_IP",    "MY_POD_NAME", "MY_POD_UID",   "MY_POD_NAMESPACE"};
  return names.contains(name);
}

EDL_INLINE platform::environment populated(std::string const& expression, platform::environment const& mine) {
  if (expression.empty()) return {};
  try {
    std::regex const pattern(expression);
    platform::environment all;
    for (auto const& [name, value] : mine)
      if (!reserved_variable(name) && is_variable(name) && std::regex_match(name, pattern))
        all.emplace_back(name, value);
    return all;
  } catch (std::regex_error const&) {
    throw usage_error(fmt::format(
        "--populate_env_names={}: is not a regular expression; expected one as PATH|NCCL_.*", expression));
  }
}

EDL_INLINE std::string worker_priority(std::string const& flag_value, std::uint32_t id,
                                       std::uint32_t num_workers) {
  using namespace detail::spec;
  if (flag_value.empty()) return "";
  bool const first = flag_value.starts_with("high=");
  auto const share = number(std::string_view(flag_value).substr(first ? 5 : 0));
  if (!share && !first && is_subdomain(flag_value)) return flag_value;
  if (!share || !(*share >= 0 && *share <= 1))
    throw usage_error(fmt::format(
        "--worker_pod_priority={}: expected high, low, a share of the workers from 0 to 1 (0.5 or "
        "high=0.5) or the name of a priority class",
        flag_value));
  // A product such as 100 × 0.07 is slightly more than 7: recover the whole number that was meant.
  double const exact = num_workers * *share;
  auto const high = std::uint32_t(first ? std::floor(exact + 1e-6) : std::ceil(exact - 1e-6));
  if (id >= num_workers) return "low";
  if (first) return id < high ? "high" : "low";
  // The i-th of the share is i / 2 for even i, and counted from the end for odd ones.
  std::uint32_t const from_end = num_workers - 1 - id;
  return std::min(2 * id, 2 * from_end + 1) < high ? "high" : "low";
}

EDL_INLINE std::string pod_name(std::string const& job, process_id const& who) {
  return fmt::format("elasticdl-{}-{}", job, to_string(who));
}

EDL_INLINE std::string job_selector(std::string const& job) { return "elasticdl-job-name=" + job; }

}  // namespace edl::kubernetes
