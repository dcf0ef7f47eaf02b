// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "kubernetes/store.hpp"

namespace edl::testing::kubernetes {

/// Adds an event (of the API's kind) about an object, or counts it where it has been told before.
inline void tell_event(store& in, json const& about, std::string const& component, std::string const& kind,
                       std::string const& reason, std::string const& message) {
  json const& meta = about["metadata"];
  type const& events = in.kind("events");
  std::string const space = meta.value("namespace", "default"), uid = meta["uid"];
  std::string const name = fmt::format("{}.{:x}", meta["name"].get<std::string>(),
                                       std::hash<std::string>{}(uid + component + reason + message));
  bool const known = in.change_by(events, space, name, [](json& e) {
    e["count"] = e["count"].get<int>() + 1;
    e["lastTimestamp"] = timestamp();
  }) != nullptr;
  if (known) return;
  in.add(events, {{"kind", "Event"},
                  {"apiVersion", "v1"},
                  {"metadata", {{"name", name}, {"namespace", space}}},
                  {"involvedObject",
                   {{"kind", about["kind"]},
                    {"apiVersion", about["apiVersion"]},
                    {"name", meta["name"]},
                    {"namespace", space},
                    {"uid", uid},
                    {"resourceVersion", meta["resourceVersion"]}}},
                  {"type", kind},
                  {"reason", reason},
                  {"message", message},
                  {"count", 1},
                  {"source", {{"component", component}}},
                  {"reportingComponent", component},
                  {"reportingInstance", ""},
                  {"eventTime", nullptr},
                  {"firstTimestamp", timestamp()},
                  {"lastTimestamp", timestamp()}});
}

}  // namespace edl::testing::kubernetes
