// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/table.hpp"

#include <ctime>
#include <functional>
#include <map>

#include "kubernetes/custom.hpp"
#include "kubernetes/quantity.hpp"

namespace edl::testing::kubernetes {
namespace {

using cells = std::function<json(json const&)>;
struct layout {
  std::vector<std::string> columns;  // a leading '+': only with -o wide
  cells row;
};

std::string ago(json const& stamp) {
  if (!stamp.is_string()) return "<unknown>";
  std::tm utc{};
  if (!::strptime(stamp.get<std::string>().c_str(), "%Y-%m-%dT%H:%M:%SZ", &utc)) return "<unknown>";
  std::int64_t const since = std::time(nullptr) - ::timegm(&utc);
  if (since < -1) return "<invalid>";
  auto const s = std::max<std::int64_t>(0, since), m = s / 60, h = m / 60;
  if (s < 120) return fmt::format("{}s", s);
  if (m < 10) return s % 60 ? fmt::format("{}m{}s", m, s % 60) : fmt::format("{}m", m);
  if (h < 3) return fmt::format("{}m", m);
  if (h < 8) return m % 60 ? fmt::format("{}h{}m", h, m % 60) : fmt::format("{}h", h);
  return h < 48 ? fmt::format("{}h", h) : fmt::format("{}d", h / 24);
}

std::string age(json const& o) { return ago(o["metadata"].value("creationTimestamp", json())); }
json status(json const& o) { return o.value("status", json::object()); }
std::string or_none(json const& o, char const* name) { return o.value(name, "<none>"); }

json pod_row(json const& pod) {
  json const is = status(pod);
  int ready = 0, restarts = 0;
  json last;
  for (json const& c : is.value("containerStatuses", json::array())) {
    ready += c.value("ready", false);
    restarts += c.value("restartCount", 0);
    json const ended = c.value("lastState", json::object()).value("terminated", json::object());
    if (ended.contains("finishedAt") && (last.is_null() || ended["finishedAt"] > last))
      last = ended["finishedAt"];
  }
  std::string const restarted =
      last.is_null() ? std::to_string(restarts) : fmt::format("{} ({} ago)", restarts, ago(last));
  return {pod["metadata"]["name"],
          fmt::format("{}/{}", ready, pod["spec"]["containers"].size()),
          status_in_words(pod),
          restarted,
          age(pod),
          or_none(is, "podIP"),
          or_none(pod["spec"], "nodeName"),
          or_none(is, "nominatedNodeName"),
          "<none>"};
}

json service_row(json const& s) {
  std::string ports;
  for (json const& p : s["spec"].value("ports", json::array()))
    ports += fmt::format("{}{}/{}", ports.empty() ? "" : ",", p["port"].dump(), p.value("protocol", "TCP"));
  return {s["metadata"]["name"], s["spec"]["type"], s["spec"]["clusterIP"], "<none>", ports, age(s)};
}

json deployment_row(json const& d) {
  json const is = status(d);
  return {d["metadata"]["name"],
          fmt::format("{}/{}", is.value("readyReplicas", 0), d["spec"]["replicas"].dump()),
          is.value("updatedReplicas", 0), is.value("availableReplicas", 0), age(d)};
}

json event_row(json const& e) {
  json const& of = e["involvedObject"];
  std::string kind = of.value("kind", "");
  for (char& c : kind) c = char(std::tolower(c));
  return {ago(e.value("lastTimestamp", json())), e.value("type", ""), e.value("reason", ""),
          kind + "/" + of.value("name", ""), e.value("message", "")};
}

layout layout_of(type const& of) {
  static std::map<std::string, layout> const layouts{
      {"pods",
       {{"Name", "Ready", "Status", "Restarts", "Age", "+IP", "+Node", "+Nominated Node", "+Readiness Gates"},
        pod_row}},
      {"services", {{"Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age"}, service_row}},
      {"deployments", {{"Name", "Ready", "Up-to-date", "Available", "Age"}, deployment_row}},
      {"events", {{"Last Seen", "Type", "Reason", "Object", "Message"}, event_row}},
      {"nodes",
       {{"Name", "Status", "Roles", "Age", "Version"},
        [](json const& n) { return json{n["metadata"]["name"], "Ready", "<none>", age(n), "v1.36.0"}; }}},
      {"priorityclasses",
       {{"Name", "Value", "Global-Default", "Age", "PreemptionPolicy"},
        [](json const& p) {
          return json{p["metadata"]["name"], p["value"], p.value("globalDefault", false), age(p),
                      p["preemptionPolicy"]};
        }}},
      {"secrets",
       {{"Name", "Type", "Data", "Age"},
        [](json const& s) {
          return json{s["metadata"]["name"], s["type"], s.value("data", json::object()).size(), age(s)};
        }}},
      {"namespaces",
       {{"Name", "Status", "Age"},
        [](json const& n) { return json{n["metadata"]["name"], status(n).value("phase", ""), age(n)}; }}},
      {"persistentvolumeclaims", {{"Name", "Status", "Age"}, [](json const& c) {
                                    return json{c["metadata"]["name"], status(c).value("phase", ""), age(c)};
                                  }}}};
  auto const it = layouts.find(of.plural);
  if (it != layouts.end()) return it->second;
  return {{"Name", "Age"}, [](json const& o) { return json{o["metadata"]["name"], age(o)}; }};
}

}  // namespace

std::string status_in_words(json const& pod) {
  json const is = status(pod);
  std::string const phase = is.value("phase", "");
  std::string word = is.value("reason", phase);
  bool runs = false;
  json const containers = is.value("containerStatuses", json::array());
  for (auto it = containers.rbegin(); it != containers.rend(); ++it) {
    json const& state = (*it)["state"];
    if (state.contains("waiting")) {
      word = state["waiting"].value("reason", word);
    } else if (state.contains("terminated")) {
      json const& end = state["terminated"];
      word = end.value("reason", fmt::format("ExitCode:{}", end.value("exitCode", 0)));
    } else {
      runs |= it->value("ready", false);
    }
  }
  if (word == "Completed" && runs) word = "Running";
  if (pod["metadata"].contains("deletionTimestamp") && !is_over(pod)) word = "Terminating";
  return word;
}

namespace {

// The cells of a custom resource, by the paths of its definition. A date is told as how long ago it was.
json custom_row(type const& of, json const& o) {
  json row = json::array({o["metadata"]["name"]});
  for (json const& c : of.columns) {
    json const v = at_path(o, c["jsonPath"]);
    row.push_back(c["type"] == "date" && !v.is_null() ? json(ago(v)) : v);
  }
  return row;
}

}  // namespace

json table(type const& of, std::vector<object> const& objects) {
  layout l = layout_of(of);
  json columns = json::array(), rows = json::array();
  if (!of.columns.empty()) l = {{"Name"}, [&](json const& o) { return custom_row(of, o); }};
  for (std::string const& c : l.columns) {
    bool const wide = c.starts_with('+');
    columns.push_back({{"name", c.substr(wide)},
                       {"type", "string"},
                       {"format", c == "Name" ? "name" : ""},
                       {"description", ""},
                       {"priority", int(wide)}});
  }
  for (json const& c : of.columns)
    columns.push_back({{"name", c["name"]},
                       {"type", c["type"]},
                       {"format", c.value("format", "")},
                       {"description", c.value("description", "")},
                       {"priority", c.value("priority", 0)}});
  for (object const& o : objects)
    rows.push_back({{"cells", l.row(*o)},
                    {"object",
                     {{"kind", "PartialObjectMetadata"},
                      {"apiVersion", "meta.k8s.io/v1"},
                      {"metadata", (*o)["metadata"]}}}});
  return {{"kind", "Table"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata",
           {{"resourceVersion", objects.size() == 1 ? (*objects[0])["metadata"]["resourceVersion"] : ""}}},
          {"columnDefinitions", columns},
          {"rows", rows}};
}

}  // namespace edl::testing::kubernetes
