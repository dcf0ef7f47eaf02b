// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/scheduler.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "kubernetes/api.hpp"
#include "kubernetes/events.hpp"
#include "kubernetes/quantity.hpp"

namespace edl::testing::kubernetes {
namespace {

std::string name_of(json const& o) { return o["metadata"]["name"]; }
int priority(json const& pod) { return pod["spec"].value("priority", 0); }
std::string node_of(json const& pod) { return pod["spec"].value("nodeName", ""); }
std::string nominated(json const& pod) { return pod["status"].value("nominatedNodeName", ""); }
bool before(object const& a, object const& b) {  // the more important one, then the older one
  return std::tuple(-priority(*a), std::stoll((*a)["metadata"]["resourceVersion"].get<std::string>())) <
         std::tuple(-priority(*b), std::stoll((*b)["metadata"]["resourceVersion"].get<std::string>()));
}

// What keeps a pod off a node with those pods on it: resources that do not suffice; empty: it fits.
std::set<std::string> lacks(json const& node, json const& pod, std::vector<object> const& there) {
  amounts used;
  for (object const& p : there)
    for (auto const& [name, amount] : requests(*p)) used[name] += amount;
  json const room = node["status"]["allocatable"];
  std::set<std::string> out;
  for (auto const& [name, amount] : requests(pod))
    if (used[name] + amount > (room.contains(name) ? quantity(room[name]) : 0) + 1e-9)
      out.insert(name == "pods" ? "Too many pods" : "Insufficient " + name);
  return out;
}

bool tolerates(json const& pod, json const& taint) {
  for (json const& t : pod["spec"].value("tolerations", json::array())) {
    bool const key = !t.contains("key") || t["key"] == taint["key"];
    bool const value =
        t.value("operator", "Equal") == "Exists" || t.value("value", "") == taint.value("value", "");
    bool const effect = t.value("effect", "").empty() || t["effect"] == taint["effect"];
    if (key && value && effect) return true;
  }
  return taint["effect"] == "PreferNoSchedule";
}

// What no preemption helps against.
std::string unsuited(json const& node, json const& pod) {
  for (json const& taint : node["spec"].value("taints", json::array()))
    if (!tolerates(pod, taint)) return "node(s) had untolerated taint(s)";
  if (node["spec"].value("unschedulable", false)) return "node(s) were unschedulable";
  json const labels = node["metadata"].value("labels", json::object());
  json const& spec = pod["spec"];
  bool fits = has_labels(labels, spec.value("nodeSelector", json::object()));
  json const terms = spec.value("affinity", json::object())
                         .value("nodeAffinity", json::object())
                         .value("requiredDuringSchedulingIgnoredDuringExecution", json::object())
                         .value("nodeSelectorTerms", json::array());
  bool any = terms.empty();
  for (json const& term : terms) {
    bool all = true;
    for (json const& e : term.value("matchExpressions", json::array())) {
      json const value = labels.value(e["key"].get<std::string>(), json());
      json const values = e.value("values", json::array());
      bool const among = std::ranges::find(values, value) != values.end();
      std::string const how = e["operator"];
      all &= how == "In"       ? among
             : how == "NotIn"  ? !among
             : how == "Exists" ? !value.is_null()
                               : value.is_null();
    }
    any |= all;
  }
  return fits && any ? "" : "node(s) didn't match Pod's node affinity/selector";
}

struct scheduling {
  store& in;
  options const& with;
  type const& pods = in.kind("pods");
  std::vector<object> nodes = in.list(in.kind("nodes"));

  // Pods that are not over, by the node that they are on or have been promised; made anew when somebody left.
  std::map<std::string, std::vector<object>> by_node;

  void look() {
    by_node.clear();
    for (object const& p : in.list(pods, "", [](json const& p) { return !is_over(p); })) note(p);
  }
  void note(object const& p) {
    std::string const node = node_of(*p).empty() ? nominated(*p) : node_of(*p);
    if (!node.empty()) by_node[node].push_back(p);
  }

  // The pods that a node's room goes to, as far as `pod` is concerned: also those that have been promised it.
  std::vector<object> on(json const& node, json const& pod) const {
    std::vector<object> out;
    auto const found = by_node.find(name_of(node));
    if (found == by_node.end()) return out;
    for (object const& p : found->second)
      if ((*p)["metadata"]["uid"] != pod["metadata"]["uid"] &&
          (!node_of(*p).empty() || priority(*p) >= priority(pod)))
        out.push_back(p);
    return out;
  }

  bool condition(json const& pod, bool holds, std::string const& message,
                 std::function<void(json&)> const& more) {
    object const now = in.change_by(pods, pod["metadata"]["namespace"], name_of(pod), [&](json& p) {
      json c{{"type", "PodScheduled"},
             {"status", holds ? "True" : "False"},
             {"lastProbeTime", nullptr},
             {"lastTransitionTime", timestamp()}};
      if (!holds)
        c.update({{"reason", "Unschedulable"},
                  {"message", message},
                  {"observedGeneration", p["metadata"]["generation"]}});
      json& all = p["status"]["conditions"];
      json others = json::array();
      for (json const& was : all.is_array() ? all : json::array()) {
        if (was["type"] != "PodScheduled")
          others.push_back(was);
        else if (was["status"] == c["status"])
          c["lastTransitionTime"] = was["lastTransitionTime"];
      }
      others.push_back(c);
      all = others;
      more(p);
    });
    return *now != pod;
  }

  void bind(json const& pod, json const& node) {
    condition(pod, true, "", [&](json& p) {
      p["spec"]["nodeName"] = name_of(node);
      p["status"].erase("nominatedNodeName");
    });
    tell_event(in, pod, "default-scheduler", "Normal", "Scheduled",
               fmt::format("Successfully assigned {}/{} to {}",
                           pod["metadata"]["namespace"].get<std::string>(), name_of(pod), name_of(node)));
    if (!nominated(pod).empty()) return look();
    note(in.find(pods, pod["metadata"]["namespace"], name_of(pod)));
  }

  // Who has to leave a node for a pod: none when that does not help. Spares the important and the old.
  std::vector<object> victims(json const& node, json const& pod) const {
    std::vector<object> stay, lesser;
    for (object const& p : on(node, pod)) (priority(*p) < priority(pod) ? lesser : stay).push_back(p);
    if (!lacks(node, pod, stay).empty()) return {};
    std::ranges::sort(lesser, before);
    std::vector<object> out;
    for (object const& p : lesser) {
      stay.push_back(p);
      if (lacks(node, pod, stay).empty()) continue;
      stay.pop_back();
      out.push_back(p);
    }
    return out;
  }

  void preempt(json const& pod, json const& node, std::vector<object> const& those,
               std::string const& message) {
    condition(pod, false, message, [&](json& p) { p["status"]["nominatedNodeName"] = name_of(node); });
    for (object const& v : those) {
      if (is_leaving(*v)) continue;
      std::string const space = (*v)["metadata"]["namespace"];
      object const now = in.change_by(pods, space, name_of(*v), [&](json& p) {
        p["status"]["conditions"].push_back(
            {{"type", "DisruptionTarget"},
             {"status", "True"},
             {"observedGeneration", p["metadata"]["generation"]},
             {"lastProbeTime", nullptr},
             {"lastTransitionTime", timestamp()},
             {"reason", "PreemptionByScheduler"},
             {"message", "default-scheduler: preempting to accommodate a higher priority pod"}});
      });
      api::remove_pod(in, *now, (*v)["spec"]["terminationGracePeriodSeconds"]);
      tell_event(in, *v, "default-scheduler", "Normal", "Preempted",
                 fmt::format("Preempted by pod {} on node {}", pod["metadata"]["uid"].get<std::string>(),
                             name_of(node)));
    }
    look();
  }

  std::string missing_claim(json const& pod) const {
    for (json const& v : pod["spec"].value("volumes", json::array())) {
      if (!v.contains("persistentVolumeClaim")) continue;
      std::string const claim = v["persistentVolumeClaim"]["claimName"];
      if (!with.claims.contains(claim) &&
          !in.find(in.kind("persistentvolumeclaims"), pod["metadata"]["namespace"], claim))
        return fmt::format("persistentvolumeclaim \"{}\" not found", claim);
    }
    return "";
  }

  void place(json const& pod) {
    std::map<std::string, int> reasons;
    std::vector<object> chances;  // nodes where preemption may help
    std::string const claim = missing_claim(pod);
    for (object const& n : claim.empty() ? nodes : std::vector<object>()) {
      std::set<std::string> const why = lacks(*n, pod, on(*n, pod));
      std::string const never = unsuited(*n, pod);
      if (never.empty() && why.empty()) return bind(pod, *n);
      if (never.empty()) chances.push_back(n);
      if (!never.empty())
        ++reasons[never];
      else
        for (std::string const& w : why) ++reasons[w];
    }
    std::string message = fmt::format("0/{} nodes are available: ", nodes.size());
    for (char const* comma = ""; auto const& [why, count] : reasons)
      message += fmt::format("{}{} {}", std::exchange(comma, ", "), count, why);
    message += claim.empty() ? "." : claim + ".";

    std::pair<int, std::size_t> best{};
    object where;
    std::vector<object> whom;
    for (object const& n : chances) {
      std::vector<object> const v = victims(*n, pod);
      if (v.empty()) continue;
      std::pair const cost{priority(*v.front()), v.size()};
      if (!where || cost < best) best = cost, where = n, whom = v;
    }
    if (where && pod["spec"].value("preemptionPolicy", "") != "Never")
      return preempt(pod, *where, whom, message);
    std::size_t const other = nodes.size() - chances.size();
    std::string help;
    if (!chances.empty())
      help = fmt::format("{} No preemption victims found for incoming pod", chances.size());
    if (other)
      help += fmt::format("{}{} Preemption is not helpful for scheduling", help.empty() ? "" : ", ", other);
    message += fmt::format(" no new claims to deallocate, preemption: 0/{} nodes are available: {}.",
                           nodes.size(), help);
    if (condition(pod, false, message, [](json&) {}))
      tell_event(in, pod, "default-scheduler", "Warning", "FailedScheduling", message);
  }
};

}  // namespace

void schedule(store& in, options const& o) {
  auto const held = in.lock();
  scheduling s{in, o};
  std::vector<object> waiting =
      in.list(s.pods, "", [](json const& p) { return node_of(p).empty() && !is_leaving(p) && !is_over(p); });
  if (waiting.empty()) return;
  std::ranges::sort(waiting, before);
  s.look();
  for (object const& p : waiting)
    if (object const now = in.find(s.pods, (*p)["metadata"]["namespace"], name_of(*p))) s.place(*now);
}

}  // namespace edl::testing::kubernetes
