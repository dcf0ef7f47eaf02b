// SPDX-License-Identifier: Apache-2.0
#include "submit/plain_job.hpp"

#include <mutex>
#include <nlohmann/json.hpp>

#include "base/http/client/wire_server.hpp"
#include "command/tool.hpp"

namespace plain_job_test {

using namespace edl::tool;
using nlohmann::json;
using support::has;
namespace k8s = edl::kubernetes;

namespace {

/// What a server is asked, as "POST pods elasticdl-j-master", and what it says to pods.
struct server {
  std::function<int(json const& pod)> pods;
  std::string message = "refused";
  json there = json::object();  ///< what is got
  int minor = 36;               ///< of its version
  std::mutex mutex;
  words requests;
  test::wire_server wire{nullptr, [this](test::request const& r, test::wire& w) { answer(r, w); }};

  void answer(test::request const& r, test::wire& w) {
    json const body = r.body.empty() ? json::object() : json::parse(r.body);
    std::string const path = r.target.substr(0, r.target.find('?'));
    if (path == "/version") return w.json(200, json{{"major", "1"}, {"minor", std::to_string(minor)}}.dump());
    std::string const name =
        r.method == "POST" ? body["metadata"]["name"].get<std::string>() : path.substr(path.rfind('/') + 1);
    bool const is_pod = body.value("kind", "") == "Pod";
    {
      std::lock_guard const lock(mutex);
      requests.push_back(r.method + " " + name +
                         (r.method == "PATCH"
                              ? " " + body["metadata"]["ownerReferences"][0]["uid"].get<std::string>()
                              : ""));
    }
    int const code = is_pod && pods ? pods(body) : 200;
    json made = r.method == "GET" ? there : body;
    made["metadata"]["uid"] = "uid-of-" + name;
    json const status{{"kind", "Status"},
                      {"reason", code == 409 ? "AlreadyExists" : "Invalid"},
                      {"message", message},
                      {"code", code}};
    w.json(code, (code == 200 ? made : status).dump());
  }
};

k8s::job_spec spec() { return {.name = "j", .image = "i:1", .command = {"m", "train"}, .num_workers = 2}; }

}  // namespace

TEST_CASE("a job's objects are made in order, and belong to the master's pod") {
  server s;
  k8s::client c(k8s::access{.server = s.wire.url()});
  words notes;
  json const master =
      create_job(c, spec(), "token", {.note = [&](std::string const& n) { notes.push_back(n); }});
  CHECK(master["metadata"]["uid"] == "uid-of-elasticdl-j-master");
  CHECK(s.requests == words{"POST elasticdl-j", "POST elasticdl-j-master", "POST elasticdl-j-master",
                            "PATCH elasticdl-j uid-of-elasticdl-j-master",
                            "PATCH elasticdl-j-master uid-of-elasticdl-j-master"});
  CHECK(notes.empty());
}

TEST_CASE("a server that does not know rules for restarting is given a pod without them") {
  server s;
  s.message =
      "Pod \"elasticdl-j-master\" is invalid: spec.containers[0].restartPolicy: Forbidden: may not be set "
      "for non-init containers";
  s.pods = [](json const& pod) { return pod["spec"]["containers"][0].contains("restartPolicy") ? 422 : 200; };
  k8s::client c(k8s::access{.server = s.wire.url()});
  words notes;
  create_job(c, spec(), "token", {.note = [&](std::string const& n) { notes.push_back(n); }});
  CHECK(s.requests.size() == 6);
  REQUIRE(notes.size() == 1);
  CHECK(has(notes[0], "--restart_policy=OnFailure"));
  // One that says how old it is has nothing to refuse, and another one is strict.
  for (int const minor : {34, 36}) {
    server other;
    other.minor = minor;
    other.message = "strict decoding error: unknown field \"spec.containers[0].restartPolicyRules\"";
    other.pods = [](json const& pod) {
      return pod["spec"]["containers"][0].contains("restartPolicy") ? 400 : 200;
    };
    k8s::client to(k8s::access{.server = other.wire.url()});
    notes.clear();
    create_job(to, spec(), "token", {.note = [&](std::string const& n) { notes.push_back(n); }});
    CHECK(other.requests.size() == (minor < 35 ? 5 : 6));
    CHECK(notes.size() == 1);
  }
}

TEST_CASE("what was made is removed when the rest is refused") {
  server s;
  s.message = "Pod \"elasticdl-j-master\" is invalid: spec.containers[0].image: Invalid value";
  s.pods = [](json const&) { return 422; };
  k8s::client c(k8s::access{.server = s.wire.url()});
  CHECK_THROWS_AS(create_job(c, spec(), "token", {.note = [](std::string const&) {}}), k8s::api_error);
  CHECK(s.requests == words{"POST elasticdl-j", "POST elasticdl-j-master", "POST elasticdl-j-master",
                            "DELETE elasticdl-j-master", "DELETE elasticdl-j"});

  s.requests.clear();
  s.message = "pods \"elasticdl-j-master\" already exists";
  s.pods = [](json const&) { return 409; };
  std::string said;
  try {
    create_job(c, spec(), "token", {.note = [](std::string const&) {}, .reach = " --context=c"});
  } catch (k8s::api_error const& taken) {
    said = taken.what();
  }
  CHECK(has(said, "`edl delete j -n default --context=c`"));
  CHECK(s.requests.size() == 7);  // it has looked whose the pod is, and whether it ends
}

TEST_CASE("a pod that was made by a request whose answer was lost is taken as made") {
  server s;
  s.message = "pods \"elasticdl-j-master\" already exists";
  s.pods = [&](json const& pod) { return s.there = pod, 409; };
  k8s::client c(k8s::access{.server = s.wire.url()});
  json const master = create_job(c, spec(), "token", {.note = [](std::string const&) {}});
  CHECK(master["metadata"]["uid"] == "uid-of-elasticdl-j-master");
  CHECK(s.requests.back() == "PATCH elasticdl-j-master uid-of-elasticdl-j-master");
}

TEST_CASE("a job waits for the name of one that is being removed, and says so") {
  server s;
  s.message = "pods \"elasticdl-j-master\" already exists";
  s.there["metadata"]["deletionTimestamp"] = "2026-11-20T10:39:00Z";
  int tries = 0;
  s.pods = [&](json const&) { return ++tries < 4 ? 409 : 200; };
  k8s::client c(k8s::access{.server = s.wire.url()});
  words notes;
  submission_options const with{.note = [&](std::string const& n) { notes.push_back(n); },
                                .timeout = std::chrono::seconds(60)};
  json const master = create_job(c, spec(), "token", with);
  CHECK(master["metadata"]["uid"] == "uid-of-elasticdl-j-master");
  CHECK(notes == words{"job 'j' is being removed: waiting until its name is free"});

  tries = 0;
  submission_options const hasty{.note = [](std::string const&) {}};
  CHECK_THROWS_AS(create_job(c, spec(), "token", hasty), k8s::api_error);
}

TEST_CASE("an account that there is not is named with what makes it") {
  server s;
  s.message =
      "pods \"elasticdl-j-master\" is forbidden: error looking up service account default/edl: "
      "serviceaccount "
      "\"edl\" not found";
  s.pods = [](json const&) { return 403; };
  k8s::client c(k8s::access{.server = s.wire.url()});
  std::string said;
  try {
    create_job(c, spec(), "token", {.note = [](std::string const&) {}});
  } catch (k8s::api_error const& no) {
    said = no.what();
  }
  CHECK(has(said, "`edl rbac --apply -n default` makes the account 'edl'"));
}

}  // namespace plain_job_test
