// SPDX-License-Identifier: Apache-2.0
#include "cluster/events.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "cluster/pods.hpp"
#include "edl/base/platform/platform.hpp"
#include "edl/core/text.hpp"

namespace edl::tool {

using nlohmann::json;

namespace {

/// Erases what is of an older job of that name. The master's uid is the job's; a member's pod that is gone is
/// known by its time only.
void keep_own(std::vector<happening>& all, json const& pods) {
  std::set<std::string> present;
  std::string master;
  std::optional<std::chrono::system_clock::time_point> since;
  for (json const& pod : pods) {
    std::string const uid = text_at(pod, "/metadata/uid");
    if (!uid.empty()) present.insert(uid);
    if (role_name(pod) != "master") continue;
    master = uid;
    since = parse_time(text_at(pod, "/metadata/creationTimestamp"));
  }
  if (master.empty()) {  // it is gone: the last of that name
    for (happening const& h : all)
      if (h.who == "master" && !h.uid.empty()) master = h.uid;
    for (happening const& h : all)
      if (h.uid == master && !master.empty()) since = std::min(since.value_or(h.first), h.first);
  }
  // The older job's members may end when the new master is there already; they began before it.
  std::map<std::string, std::chrono::system_clock::time_point> began;
  for (happening const& h : all) {
    auto& first = began.try_emplace(h.uid.empty() ? h.who : h.uid, h.first).first->second;
    first = std::min(first, h.first);
  }
  std::erase_if(all, [&](happening const& h) {
    if (present.count(h.uid) > 0) return false;
    if (h.who == "master") return !h.uid.empty() && h.uid != master;
    return since && began.at(h.uid.empty() ? h.who : h.uid) <= *since;
  });
}

/// The same of a TrainingJob: masters come and go in it, and its own beginning is known.
void keep_own(std::vector<happening>& all, json const& pods, edl::kubernetes::training_job const& above) {
  std::set<std::string> present;
  for (json const& pod : pods) present.insert(text_at(pod, "/metadata/uid"));
  auto const since = parse_time(above.created);
  std::erase_if(all, [&](happening const& h) {
    if (h.who == "job") return h.uid != above.uid;
    return present.count(h.uid) == 0 && since && h.first < *since;
  });
}

}  // namespace

std::vector<happening> read_events(json const& items, std::string const& job, json const& pods,
                                   edl::kubernetes::training_job const* above) {
  std::vector<happening> all;
  for (json const& e : items) {
    std::string const kind = text_at(e, "/involvedObject/kind"), name = text_at(e, "/involvedObject/name");
    auto const who = instance_of(job, name);
    bool const of_job = above != nullptr && kind == edl::kubernetes::training_job_kind && name == job;
    if (!of_job && (!who || kind != "Pod")) continue;
    happening h{.who = of_job ? "job" : to_string(*who),
                .uid = text_at(e, "/involvedObject/uid"),
                .by = text_at(e, "/source/component"),
                .reason = text_at(e, "/reason"),
                .message = text_at(e, "/message")};
    if (h.by.empty()) h.by = text_at(e, "/reportingComponent");
    std::replace(h.message.begin(), h.message.end(), '\n', ' ');
    h.warning = text_at(e, "/type") == "Warning";
    // Older reporters write lastTimestamp and count, newer ones eventTime and a series.
    for (char const* at : {"/lastTimestamp", "/series/lastObservedTime", "/eventTime", "/firstTimestamp",
                           "/metadata/creationTimestamp"})
      if (auto const when = parse_time(h.when_text = text_at(e, at))) {
        h.when = *when;
        break;
      }
    h.first = std::min(h.when, parse_time(text_at(e, "/firstTimestamp")).value_or(h.when));
    for (char const* at : {"/count", "/series/count"})
      if (json::json_pointer const p(at); e.contains(p) && e.at(p).is_number_integer())
        h.count = e.at(p).get<int>();
    std::string const version = text_at(e, "/metadata/resourceVersion");
    h.order = number_from<decltype(h.order)>(version).value_or(0);
    all.push_back(std::move(h));
  }
  std::ranges::stable_sort(all, {}, [](happening const& h) { return std::pair(h.when, h.order); });
  if (above != nullptr)
    keep_own(all, pods, *above);
  else
    keep_own(all, pods);
  return all;
}

history events_of(cluster& c, std::string const& job, json const& pods,
                  edl::kubernetes::training_job const* above) {
  try {
    return {read_events(c.api.get(c.path("events")).at("items"), job, pods, above), ""};
  } catch (kubernetes::api_error const& bad) {
    if (bad.code() != 403 && bad.code() != 404) throw;
    return {{}, std::string("events are not shown: ") + bad.what()};
  }
}

}  // namespace edl::tool
