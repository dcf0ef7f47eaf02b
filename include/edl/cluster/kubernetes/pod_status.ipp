// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/cluster/kubernetes/job_size.hpp"
#include "edl/cluster/kubernetes/pod_status.hpp"
#include "edl/core/inline.hpp"

namespace edl::kubernetes {
namespace detail {

inline pod_status::phase phase_of(std::string const& name) {
  using enum pod_status::phase;
  return name == "Pending"     ? pending
         : name == "Running"   ? running
         : name == "Succeeded" ? succeeded
         : name == "Failed"    ? failed
                               : unknown;
}

inline std::string joined(std::string const& reason, std::string const& message) {
  if (reason.empty() || message.empty()) return reason + message;
  return reason + ": " + message;
}

}  // namespace detail

EDL_INLINE nlohmann::json const& program_status(nlohmann::json const& pod) {
  auto const& all = field(pod, {"status", "containerStatuses"});
  std::string const name = text(field(first(field(pod, {"spec", "containers"})), {"name"}));
  if (all.is_array())
    for (auto const& one : all)
      if (text(field(one, {"name"})) == name) return one;
  return first(all);
}

namespace detail {

/// Whether the container's restart rules, which servers support since 1.35, restart it after this exit code.
inline bool rules_restart(nlohmann::json const& pod, int code) {
  auto const& rules = field(first(field(pod, {"spec", "containers"})), {"restartPolicyRules"});
  if (!rules.is_array()) return false;
  for (auto const& rule : rules) {
    auto const& codes = field(rule, {"exitCodes", "values"});
    if (text(field(rule, {"action"})) != "Restart" || !codes.is_array()) continue;
    bool const listed = std::find(codes.begin(), codes.end(), code) != codes.end();
    if (listed == (text(field(rule, {"exitCodes", "operator"})) == "In")) return true;
  }
  return false;
}

}  // namespace detail

EDL_INLINE std::optional<pod_status> read_pod(nlohmann::json const& pod) {
  using namespace detail;
  auto const& labels = field(pod, {"metadata", "labels"});
  auto const what = parse_role(text(field(labels, {"elasticdl-replica-type"})));
  auto const id = number(field(labels, {"elasticdl-replica-index"}));
  if (!what || !id) return std::nullopt;

  pod_status s;
  s.who = {*what, *id};
  s.index = number(field(labels, {"elasticdl-original-index"})).value_or(*id);
  s.name = text(field(pod, {"metadata", "name"}));
  s.uid = text(field(pod, {"metadata", "uid"}));
  s.node = text(field(pod, {"spec", "nodeName"}));
  s.pool = pool_of(pod);
  s.owner = text(field(first(field(pod, {"metadata", "ownerReferences"})), {"uid"}));
  s.at = phase_of(text(field(pod, {"status", "phase"})));
  std::string const policy = text(field(pod, {"spec", "restartPolicy"}));
  s.restarts = policy == "Always" || policy == "OnFailure";
  s.terminating = field(pod, {"metadata", "deletionTimestamp"}).is_string();
  s.memory = text(field(first(field(pod, {"spec", "containers"})), {"resources", "limits", "memory"}));
  s.reason = text(field(pod, {"status", "reason"}));
  s.message = text(field(pod, {"status", "message"}));

  if (auto const& conditions = field(pod, {"status", "conditions"}); conditions.is_array())
    for (auto const& c : conditions) {
      std::string const type = text(field(c, {"type"})), status = text(field(c, {"status"}));
      if (type == "PodScheduled" && status == "False")
        s.unplaced = joined(text(field(c, {"reason"})), text(field(c, {"message"})));
      if (type == "DisruptionTarget" && status == "True")
        s.disruption = joined(text(field(c, {"reason"})), text(field(c, {"message"})));
    }
  auto const& all = field(pod, {"spec", "containers"});
  s.others = all.is_array() && all.size() > 1;
  auto const& container = program_status(pod);
  if (auto const& waiting = field(container, {"state", "waiting"}); waiting.is_object()) {
    s.waiting = text(field(waiting, {"reason"}));
    s.waiting_why = text(field(waiting, {"message"}));
  }
  if (auto const& end = field(container, {"state", "terminated"}); end.is_object()) {
    auto const& code = field(end, {"exitCode"});
    s.ended = {code.is_number_integer() ? code.get<int>() : 0, text(field(end, {"reason"})),
               text(field(end, {"message"}))};
    s.restarts = s.restarts || (!s.terminating && rules_restart(pod, s.ended->code));
  }
  return s;
}

EDL_INLINE platform::ending ending_of(pod_status const& pod) {
  platform::ending e{.who = pod.who};
  if (pod.ended) {
    e.code = pod.ended->code;
    if (e.code > 128 && e.code < 128 + 65) e.signal = e.code - 128;
  }
  bool const vanished = !pod.ended || pod.ended->reason == "ContainerStatusUnknown";
  if (!pod.disruption.empty())
    e.words = "was taken away: " + pod.disruption;
  else if (pod.at == pod_status::phase::failed && !pod.reason.empty())
    e.words = "was taken away: " + detail::joined(pod.reason, pod.message);
  else if (pod.terminating || (vanished && !pod.over()))
    e.words = "was deleted";
  else if (vanished)
    e.words = "ended, but its node did not report the exit status";
  e.outside = !e.words.empty();
  if (e.outside) return e;
  if (pod.out_of_memory()) {
    e.signal = 0;  // the process itself was at fault
    e.words = fmt::format("used more memory than its limit{}", pod.memory.empty() ? "" : " of " + pod.memory);
  } else if (std::string const said = platform::last_words(pod.ended->message);
             !said.empty() && e.signal == 0) {
    std::string const how = describe(e);
    e.words = fmt::format("{}: {}", how,
                          pod.ended->reason == "Error" ? said : detail::joined(pod.ended->reason, said));
  }
  return e;
}

EDL_INLINE std::string trouble(pod_status const& pod) {
  if (pod.over() || pod.terminating) return {};
  if (!pod.unplaced.empty()) return pod.unplaced;
  // The usual stages of a starting pod.
  if (pod.waiting.empty() || pod.waiting == "ContainerCreating" || pod.waiting == "PodInitializing")
    return {};
  return detail::joined(pod.waiting, pod.waiting_why);
}

EDL_INLINE bool hopeless(pod_status const& pod) {
  static constexpr std::array reasons{"ErrImageNeverPull", "InvalidImageName"};
  for (char const* reason : reasons)
    if (pod.waiting == reason) return true;
  return false;
}

}  // namespace edl::kubernetes
