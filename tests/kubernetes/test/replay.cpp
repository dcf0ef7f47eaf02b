// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>
#include <regex>

#include "kubernetes/test/support.hpp"
#include "kubernetes/test/transcript.hpp"

// The recorded exchanges, replayed: what was asked of the real server is asked of the double, in the same
// order and the same states, and the answers say the same. Time runs twenty times as fast.
namespace edl::testing::kubernetes {
namespace {

namespace fs = std::filesystem;

std::string const rec = "/api/v1/namespaces/rec/pods/";

options laboratory() {
  options o{.namespaces = {"rec", "default"}, .nodes = {{"lab-node", "2", "24581692Ki"}}};
  o.images["debian:bookworm"] = {};
  o.second = std::chrono::milliseconds(50);
  o.bookmarks = std::chrono::milliseconds(200);
  return o;
}

// "sleep 4" is "sleep 0.2", and what would eat the machine's memory sleeps until it is told that it did.
std::string hastened(std::string const& body) {
  std::string out = std::regex_replace(body, std::regex("tail /dev/zero"), "sleep 12000");
  std::smatch m;
  std::string rest = std::exchange(out, "");
  for (; std::regex_search(rest, m, std::regex("sleep ([0-9]+)")); rest = m.suffix())
    out += m.prefix().str() + "sleep " + std::to_string(std::stod(m[1]) / 20);
  return out + rest;
}

void priority_classes(cluster& c) {
  for (auto const& [name, value] : {std::pair{"low", 1000}, {"high", 1000000}})
    c.post("/apis/scheduling.k8s.io/v1/priorityclasses", {{"metadata", {{"name", name}}}, {"value", value}});
}

// Versions differ from server to server.
json comparable(json status) {
  if (status.contains("message"))
    status["message"] = std::regex_replace(status["message"].get<std::string>(),
                                           std::regex("version: 5 \\([0-9]+\\)"), "version: 5 (N)");
  if (status.contains("details")) status["details"].erase("uid");
  return status;
}

// A pod's spec without the names that are drawn.
json spec_of(json o) {
  if (o.value("kind", "") == "Service")
    for (char const* drawn : {"clusterIP", "clusterIPs"}) o["spec"].erase(drawn);
  json& spec = o["spec"];
  spec.erase("volumes");
  if (spec.contains("containers"))
    for (json& container : spec["containers"]) container.erase("volumeMounts"), container.erase("command");
  return spec;
}

void same(json const& recorded, json const& answered) {
  CAPTURE(answered.dump());
  REQUIRE(recorded.value("kind", "") == answered.value("kind", ""));
  if (recorded["kind"] == "Status") {
    CHECK(comparable(recorded) == comparable(answered));
    return;
  }
  CHECK(recorded["apiVersion"] == answered["apiVersion"]);
  if (recorded.contains("items")) {
    CHECK(recorded["metadata"].value("continue", "").empty() ==
          answered["metadata"].value("continue", "").empty());
    REQUIRE(recorded["items"].size() == answered["items"].size());
    for (std::size_t i = 0; i < recorded["items"].size(); ++i) {
      CHECK(recorded["items"][i]["metadata"]["name"] == answered["items"][i]["metadata"]["name"]);
      CHECK(recorded["items"][i].contains("kind") == answered["items"][i].contains("kind"));
    }
    return;
  }
  for (char const* field : {"name", "namespace", "labels", "generation"})
    CHECK(recorded["metadata"].value(field, json()) == answered["metadata"].value(field, json()));
  CHECK(recorded["metadata"].contains("deletionTimestamp") ==
        answered["metadata"].contains("deletionTimestamp"));
  CHECK(spec_of(recorded) == spec_of(answered));
}

class session {
 public:
  explicit session(cluster& c) : cluster_(c), client_(c) {}

  void replay(std::string const& number) {
    fs::path file;
    for (auto const& f : fs::directory_iterator(transcripts()))
      if (f.path().filename().string().starts_with(number)) file = f.path();
    INFO(file.string());
    transcript const t(file);
    httplib::Request r;
    r.method = t.method;
    r.path = t.path;
    r.headers = t.headers;
    r.body = hastened(t.body);
    if (number != "24" && number != "25") r.headers.emplace("Authorization", "Bearer " + cluster_.token());
    auto const answer = client_.send(r);
    REQUIRE(bool(answer));
    CHECK(answer->status == t.code);
    CHECK(answer->get_header_value("Content-Type") == "application/json");
    if (t.path.find("watch=1") == t.path.npos) return same(json::parse(t.answer), json::parse(answer->body));
    json const expected = json::parse(t.answer), got = json::parse(answer->body);
    CHECK(expected["type"] == got["type"]);
    CHECK(comparable(expected["object"]) == comparable(got["object"]));
  }

 private:
  cluster& cluster_;
  caller client_;
};

std::string state_in_words(json const& c) {
  for (auto const& [name, state] : c["state"].items())
    return name + ":" + state.value("reason", "") + ":" + state.value("message", "") + ":" +
           std::to_string(state.value("exitCode", 0)) + (c["ready"] == true ? " ready" : "") +
           (c["started"] == true ? " started" : "");
  return "";
}

// What a watch says of each pod, one after the other; the kubelet says some things twice.
std::map<std::string, std::vector<std::string>> stories(std::vector<json> const& events) {
  std::map<std::string, std::vector<std::string>> out;
  for (json const& e : events) {
    if (e["type"] == "BOOKMARK") continue;
    json const& meta = e["object"]["metadata"];
    json const is = e["object"]["status"];
    std::string text = e["type"].get<std::string>() + " " + is["phase"].get<std::string>();
    text += " priority " + e["object"]["spec"]["priority"].dump();
    text += " generation " + meta["generation"].dump() + "/" + is.value("observedGeneration", json()).dump();
    if (meta.contains("deletionTimestamp"))
      text += " leaves within " + meta["deletionGracePeriodSeconds"].dump();
    if (e["object"]["spec"].contains("nodeName"))
      text += " on " + e["object"]["spec"]["nodeName"].get<std::string>();
    if (is.contains("nominatedNodeName")) text += " nominated";
    if (is.contains("podIP")) text += " addressed";
    for (json const& c : is.value("conditions", json::array()))
      text += "\n    " + c["type"].get<std::string>() + " " + c["status"].get<std::string>() + " " +
              c.value("reason", "") + " " + c.value("message", "") + " " +
              c.value("observedGeneration", json()).dump();
    for (json const& c : is.value("containerStatuses", json::array())) text += "\n    " + state_in_words(c);
    auto& story = out[meta["name"]];
    if (story.empty() || story.back() != text) story.push_back(text);
  }
  return out;
}

void same_stories(transcript const& t, watching const& w) {
  auto const recorded = stories(t.events()), seen = stories(w.events());
  REQUIRE(recorded.size() == seen.size());
  for (auto const& [name, story] : recorded) {
    INFO(name);
    auto const& mine = seen.at(name);
    CHECK(story.size() == mine.size());
    for (std::size_t i = 0; i < std::min(story.size(), mine.size()); ++i) {
      CAPTURE(i);
      CHECK(story[i] == mine[i]);
    }
  }
}

std::string watch_now(cluster& c) {
  std::string const version = c.get("/api/v1/namespaces/rec/pods")["metadata"]["resourceVersion"];
  return "/api/v1/namespaces/rec/"
         "pods?watch=1&labelSelector=elasticdl_job_name%3Dtest-mnist&resourceVersion=" +
         version + "&allowWatchBookmarks=true";
}

bool absent() {
  bool const there = fs::exists(transcripts());
  if (!there) MESSAGE("skipped: no transcripts in ", transcripts().string());
  return !there;
}

bool is(cluster& c, std::string const& name, std::string const& phase) {
  return c.get(rec + name).value("status", json()).value("phase", "") == phase;
}

bool gone(cluster& c, std::string const& name) { return c.get(rec + name).value("code", 0) == 404; }

bool has_all(cluster& c, watching const& w) {  // as its last bookmark says
  auto const events = w.events();
  return !events.empty() && events.back()["type"] == "BOOKMARK" &&
         events.back()["object"]["metadata"]["resourceVersion"] ==
             c.get("/api/v1/namespaces/rec/pods")["metadata"]["resourceVersion"];
}

}  // namespace

TEST_CASE("the lives of six pods are as recorded") {
  if (absent()) return;
  cluster c(laboratory());
  session s(c);
  s.replay("01");
  watching const w(c, watch_now(c));
  for (char const* number : {"03", "04", "05", "06", "07", "08", "09", "10", "11"}) s.replay(number);
  REQUIRE(c.wait([&] { return is(c, "w2", "Running"); }));
  c.out_of_memory("rec", "w2");
  REQUIRE(c.wait([&] { return is(c, "w0", "Succeeded") && is(c, "w1", "Failed") && is(c, "w2", "Failed"); }));
  for (char const* number : {"12", "13", "14", "15", "16", "17"}) s.replay(number);
  REQUIRE(c.wait([&] { return gone(c, "w3") && has_all(c, w); }));
  same_stories(transcript(transcripts() / "02-pods-watch-life-of-six-pods.http"), w);
}

TEST_CASE("refusals, custom resources and preemption answer as recorded") {
  if (absent()) return;
  cluster c(laboratory());
  priority_classes(c);
  session s(c);
  for (char const* number : {"03", "05", "06"}) s.replay(number);
  REQUIRE(c.wait([&] { return is(c, "w2", "Running"); }));
  c.out_of_memory("rec", "w2");
  REQUIRE(c.wait([&] { return is(c, "w0", "Succeeded") && is(c, "w1", "Failed") && is(c, "w2", "Failed"); }));
  s.replay("18");
  REQUIRE(c.wait([&] { return is(c, "low0", "Running"); }));
  s.replay("19");
  REQUIRE(c.wait([&] { return gone(c, "low0") && is(c, "high0", "Running"); }));
  s.replay("20");
  REQUIRE(c.wait([&] { return c.get(rec + "low1")["status"].contains("conditions"); }));
  for (char const* number : {"21", "22", "24", "25", "26", "27", "28", "29", "30", "31", "32", "33"})
    s.replay(number);
  CHECK(gone(c, "low1"));
  REQUIRE(c.wait([&] { return is(c, "high0", "Succeeded"); }));
  for (char const* number : {"23", "34", "35", "36"}) s.replay(number);
  CHECK(c.get("/api/v1/namespaces/rec/pods")["items"].empty());
}

TEST_CASE("preemption, waiting and deletion tell their story as recorded") {
  if (absent()) return;
  cluster c(laboratory());
  priority_classes(c);
  watching const w(c, watch_now(c));
  auto const create = [&](std::string const& number, std::string const& script) {
    for (auto const& f : fs::directory_iterator(transcripts()))
      if (f.path().filename().string().starts_with(number)) {
        json p = json::parse(transcript(f.path()).body);
        p["spec"]["terminationGracePeriodSeconds"] = 2;
        p["spec"]["containers"][0]["command"] = {"sh", "-c", script};
        c.post("/api/v1/namespaces/rec/pods", p);
      }
  };
  create("18", "sleep 600; true");
  REQUIRE(c.wait([&] { return is(c, "low0", "Running"); }));
  create("19", "sleep 0.6");
  REQUIRE(c.wait([&] { return gone(c, "low0"); }));
  create("20", "sleep 600; true");
  REQUIRE(c.wait([&] { return is(c, "low1", "Running"); }));
  c.call("DELETE", rec + "low1", {{"kind", "DeleteOptions"}});
  REQUIRE(c.wait([&] { return gone(c, "low1") && has_all(c, w); }));
  same_stories(transcript(transcripts() / "37-pods-watch-preemption-and-kubectl-delete.http"), w);
}

}  // namespace edl::testing::kubernetes
