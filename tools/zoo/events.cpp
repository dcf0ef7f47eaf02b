// SPDX-License-Identifier: Apache-2.0
#include "events.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "edl/platform/platform.hpp"
#include "pods.hpp"

namespace edl::tool {

using nlohmann::json;

std::vector<happening> read_events(json const& items, std::string const& job) {
  std::vector<happening> all;
  for (json const& e : items) {
    auto const who = instance_of(job, text_at(e, "/involvedObject/name"));
    if (!who || text_at(e, "/involvedObject/kind") != "Pod") continue;
    happening h{
        .who = platform::name(*who), .reason = text_at(e, "/reason"), .message = text_at(e, "/message")};
    std::replace(h.message.begin(), h.message.end(), '\n', ' ');
    h.warning = text_at(e, "/type") == "Warning";
    // Older reporters write lastTimestamp and count, newer ones eventTime and a series.
    for (char const* at : {"/lastTimestamp", "/series/lastObservedTime", "/eventTime", "/firstTimestamp",
                           "/metadata/creationTimestamp"})
      if (auto const when = parse_time(h.when_text = text_at(e, at))) {
        h.when = *when;
        break;
      }
    for (char const* at : {"/count", "/series/count"})
      if (json::json_pointer const p(at); e.contains(p) && e.at(p).is_number_integer())
        h.count = e.at(p).get<int>();
    std::string const version = text_at(e, "/metadata/resourceVersion");
    std::from_chars(version.data(), version.data() + version.size(), h.order);
    all.push_back(std::move(h));
  }
  std::ranges::stable_sort(all, {}, [](happening const& h) { return std::pair(h.when, h.order); });
  return all;
}

history events_of(cluster& c, std::string const& job) {
  try {
    return {read_events(c.api.get(c.path("events")).at("items"), job), ""};
  } catch (platform::kubernetes::api_error const& bad) {
    if (bad.code() != 403 && bad.code() != 404) throw;
    return {{}, std::string("events are not shown: ") + bad.what()};
  }
}

}  // namespace edl::tool
