// SPDX-License-Identifier: Apache-2.0
#include "edl/base/platform/cloud_notice.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/http/client/wire_server.hpp"
#include "edl/base/platform/notice_source.hpp"
#include "edl/core/error.hpp"

namespace cloud_notice_test {

using namespace edl::platform;
using namespace std::chrono_literals;

namespace {

bool never() { return false; }

/// A metadata service that answers each target as a test likes; others are 404.
class service {
 public:
  using answer = std::function<void(test::request const&, test::wire&)>;

  explicit service(std::map<std::string, answer> answers)
      : answers_(std::move(answers)), server_(nullptr, [this](test::request const& r, test::wire& w) {
          {
            std::lock_guard const lock(mutex_);
            asked_.push_back(r);
          }
          auto const it = answers_.find(r.method + " " + r.target);
          it == answers_.end() ? w.json(404, "<not found>") : it->second(r, w);
        }) {}

  std::unique_ptr<notice_source> source(std::string const& cloud) const {
    return make_notice_source(cloud, [this](std::string const& name) {
      return name == "GCE_METADATA_HOST" ? "127.0.0.1:" + std::to_string(server_.port()) : server_.url();
    });
  }
  notice_source::report look(std::string const& cloud) const { return source(cloud)->look(never); }

  std::vector<test::request> asked() {
    std::lock_guard const lock(mutex_);
    return asked_;
  }

 private:
  std::map<std::string, answer> answers_;
  std::mutex mutex_;
  std::vector<test::request> asked_;
  test::wire_server server_;  // last: its threads use the others
};

service::answer says(int code, std::string body, std::string fields = {}) {
  return [=](test::request const&, test::wire& w) { w.json(code, body, fields); };
}

constexpr char const *token = "PUT /latest/api/token", *action = "GET /latest/meta-data/spot/instance-action",
                     *rebalance = "GET /latest/meta-data/events/recommendations/rebalance",
                     *preempted = "GET /computeMetadata/v1/instance/preempted",
                     *maintenance = "GET /computeMetadata/v1/instance/maintenance-event",
                     *machine = "GET /metadata/instance/compute/name?api-version=2021-02-01&format=text",
                     *events = "GET /metadata/scheduledevents?api-version=2020-07-01",
                     *google = "Metadata-Flavor: Google\r\n";

std::string event(std::string const& type, std::string const& of = "vm_1") {
  return R"({"DocumentIncarnation": 2, "Events": [{"EventId": "A", "EventStatus": "Scheduled", "EventType": ")" +
         type + R"(", "ResourceType": "VirtualMachine", "Resources": ["other", ")" + of +
         R"("], "NotBefore": "Mon, 30 Nov 2026 18:29:47 GMT"}]})";
}

}  // namespace

TEST_CASE("what AWS says") {
  CHECK(read_aws_action(R"({"action": "terminate", "time": "2026-11-20T10:39:00Z"})") ==
        "AWS will terminate its machine at 2026-11-20T10:39:00Z");
  CHECK(read_aws_action(R"({"action": "stop"})") == "AWS will stop its machine");
  CHECK(read_aws_action(R"({"action": "hibernate", "time": 5})") == "AWS will hibernate its machine");
  CHECK(read_aws_action(R"({"action": "stop", "time": "a\u001bb"})") == "AWS will stop its machine at a b");
  for (char const* const none : {"", "{", "[]", "null", "3", R"({"action": "none"})", R"({"action": 1})",
                                 R"({"time": "2026-11-20T10:39:00Z"})", R"({"action": "stop", )"})
    CHECK(read_aws_action(none).empty());
  CHECK(read_aws_rebalance(R"({"noticeTime": "2026-11-20T10:39:00Z"})") ==
        "AWS recommended at 2026-11-20T10:39:00Z to leave its machine, which it is likely to take away");
  for (char const* const none : {"", "{}", "[1]", R"({"noticeTime": 1})"})
    CHECK(read_aws_rebalance(none).empty());
}

TEST_CASE("what Google Cloud says") {
  CHECK(read_gcp_preempted("TRUE\n") == "Google Cloud preempts its machine");
  for (char const* const none : {"", "FALSE", "true", "TRUETRUE", "\xff"})
    CHECK(read_gcp_preempted(none).empty());
  CHECK(read_gcp_maintenance("TERMINATE_ON_HOST_MAINTENANCE") ==
        "Google Cloud will terminate its machine for maintenance");
  for (char const* const none : {"", "NONE", "MIGRATE_ON_HOST_MAINTENANCE"})
    CHECK(read_gcp_maintenance(none).empty());
}

TEST_CASE("what Azure says of this machine, and of events that end its processes") {
  CHECK(read_azure_events(event("Preempt"), "vm_1") ==
        "Azure will preempt its machine, not before Mon, 30 Nov 2026 18:29:47 GMT");
  CHECK(read_azure_events(event("Terminate", "VM_1"), "vm_1").starts_with("Azure will terminate"));
  CHECK(read_azure_events(event("Freeze"), "vm_1").empty());
  CHECK(read_azure_events(event("Preempt", "vm_2"), "vm_1").empty());
  for (char const* const none : {"", "{}", "[]", R"({"Events": {}})", R"({"Events": [1, null, []]})",
                                 R"({"Events": [{}]})", R"({"Events": [{"EventType": "Preempt"}]})",
                                 R"({"Events": [{"EventType": "Preempt", "Resources": "vm_1"}]})",
                                 R"({"Events": [{"EventType": "Preempt", "Resources": [1, {}]}]})"})
    CHECK(read_azure_events(none, "vm_1").empty());
}

TEST_CASE("AWS is asked with a token, which is fetched again when it is void") {
  std::atomic<int> tokens = 0;
  std::atomic<bool> taken = false;
  service s(
      {{token, [&](test::request const&, test::wire& w) { w.json(200, "T" + std::to_string(++tokens)); }},
       {action, [&](test::request const& r, test::wire& w) {
          if (r.field("X-aws-ec2-metadata-token") != "T" + std::to_string(tokens.load()))
            return w.json(401, "");
          taken ? w.json(200, R"({"action": "terminate", "time": "2026-11-20T10:39:00Z"})") : w.json(404, "");
        }}});
  auto const source = s.source("aws");
  CHECK(source->interval() == 5s);
  auto seen = source->look(never);
  CHECK((seen.answered && seen.notice.empty()));
  CHECK(tokens == 1);
  auto const first = s.asked().at(0);
  CHECK(first.field("X-aws-ec2-metadata-token-ttl-seconds") == "21600");
  CHECK(first.field("Content-Length") == "0");
  taken = true;
  CHECK(source->look(never).notice == "AWS will terminate its machine at 2026-11-20T10:39:00Z");
  CHECK(tokens == 1);
  ++tokens;  // as after six hours
  CHECK_FALSE(source->look(never).notice.empty());
  CHECK(tokens == 3);
}

TEST_CASE("AWS recommends to leave before it takes a machine") {
  service s({{token, says(200, "T")}, {rebalance, says(200, R"({"noticeTime": "2026-11-20T10:39:00Z"})")}});
  CHECK(s.look("aws").notice.starts_with("AWS recommended at 2026-11-20T10:39:00Z"));
}

TEST_CASE("Google Cloud and Azure are asked as they want it") {
  service g({{preempted, says(200, "FALSE", google)},
             {maintenance, says(200, "TERMINATE_ON_HOST_MAINTENANCE", google)}});
  CHECK(g.look("gcp").notice == "Google Cloud will terminate its machine for maintenance");
  CHECK(g.asked().at(0).field("Metadata-Flavor") == "Google");
  service a({{machine, says(200, "vm_1\n")}, {events, says(200, event("Preempt"))}});
  auto const source = a.source("azure");
  CHECK(source->look(never).notice.starts_with("Azure will preempt its machine"));
  CHECK(source->look(never).notice.starts_with("Azure will preempt its machine"));
  auto const asked = a.asked();
  REQUIRE(asked.size() == 3);  // the name once
  for (auto const& r : asked) CHECK(r.field("Metadata") == "true");
}

TEST_CASE("auto stays with the first cloud that answers") {
  service g({{preempted, says(200, "TRUE", google)}, {token, says(405, "")}});
  auto const source = g.source("auto");
  CHECK(source->look(never).notice == "Google Cloud preempts its machine");
  CHECK(source->name() == "Google Cloud's metadata service");
  std::size_t const before = g.asked().size();
  source->look(never);
  CHECK(g.asked().size() == before + 1);
  // What answers everything with a page is no cloud.
  service const page(
      {{token, says(200, "<html> </html>")}, {preempted, says(200, "TRUE")}, {machine, says(500, "")}});
  auto const none = page.look("auto");
  CHECK_FALSE(none.answered);
  CHECK(none.notice.empty());
}

TEST_CASE("replies of no use are no notice, and none ends or delays anything") {
  std::string const deep(100'000, '[');
  std::string const huge = R"({"action": "stop", "time": ")" + std::string(1 << 20, 'x') + "\"}";
  auto const broken = [](test::request const&, test::wire& w) {
    w.send("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"action\": \"stop\"");
    w.cut();
  };
  auto const no_http = [](test::request const&, test::wire& w) {
    w.send("\x01\x02 hello\r\n\r\n");
    w.close();
  };
  auto const redirects = says(302, "", "Location: http://127.0.0.1:1/\r\n");
  for (auto const& reply : {says(500, "sorry"), says(200, R"({"action": "sto)"), says(200, deep),
                            says(200, huge), service::answer(broken), service::answer(no_http), redirects}) {
    service const a({{token, says(200, "T")}, {action, reply}});
    CHECK(a.look("aws").notice.empty());
    service const g({{preempted, reply}});
    CHECK(g.look("gcp").notice.empty());
    service const z({{machine, says(200, "vm_1")}, {events, reply}});
    CHECK(z.look("azure").notice.empty());
  }
  // A second is the longest that anybody waits.
  service const slow({{token, [](test::request const&, test::wire& w) { w.stall(); }}});
  CHECK_FALSE(slow.look("aws").answered);
  service const no_token({{token, says(403, "")}});
  CHECK_FALSE(no_token.look("aws").answered);
  service const bad_token({{token, says(200, "a\r\nb: c")}});
  CHECK_FALSE(bad_token.look("aws").answered);
}

TEST_CASE("a look that is stopped ends at once, and a service that is not there is told") {
  std::atomic<bool> asked = false;
  service const s({{token, [&](test::request const&, test::wire& w) {
                      asked = true;
                      w.stall();
                    }}});
  auto const seen = s.source("aws")->look([&] { return asked.load(); });
  CHECK((!seen.answered && seen.notice.empty()));
  auto const nobody = make_notice_source("aws", [](char const*) { return "http://127.0.0.1:1"; });
  CHECK_FALSE(nobody->look(never).answered);
}

TEST_CASE("an address from the environment is checked") {
  for (char const* const wrong : {"https://127.0.0.1:1", "127.0.0.1", "http://", "http://a b"})
    CHECK_THROWS_AS(make_notice_source("aws", [&](char const*) { return wrong; }), edl::usage_error);
  CHECK_NOTHROW(make_notice_source("auto", [](char const*) { return ""; }));
}

}  // namespace cloud_notice_test
