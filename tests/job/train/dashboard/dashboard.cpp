// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/dashboard/dashboard.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/bucket/unkind_store.hpp"
#include "base/http/client.hpp"
#include "base/wire/scratch.hpp"
#include "edl/core/error.hpp"
#include "scratch_directory.hpp"
#include "variables.hpp"

namespace dashboard_test {

using nlohmann::json;
using namespace std::chrono_literals;

namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

std::string get(std::string const& path, std::string const& host = "localhost:80",
                std::string const& more = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n" + more + "\r\n";
}

std::string body_of(std::string const& answer) { return answer.substr(answer.find("\r\n\r\n") + 4); }

edl::job on(std::string const& host) {
  edl::job j;
  j.name = "</script><img src=x>";
  j.observe.dashboard = 0;
  j.observe.dashboard_host = host;
  return j;
}

struct shown_job {
  explicit shown_job(std::string const& host = "127.0.0.1", std::string const& token = "",
                     std::string const& history = "")
      : j(on(host)) {
    page.emplace(j, history, edl::train::dashboard_context{.token = token},
                 edl::logger(edl::severity::critical));
  }
  std::string ask(std::string const& request) const { return http_client::ask(page->port(), request); }
  void look() { page->look(decisions, decisions.progress(), {}); }

  edl::job j;
  edl::master::coordinator decisions{{.training = {{"t", 640}}, .num_workers = 1, .num_servers = 1}, {}};
  std::optional<edl::train::dashboard> page;
};

}  // namespace

TEST_CASE("the page and its facts are there, as what they are, and nothing can be done by them") {
  shown_job s;
  std::string const page = s.ask(get("/"));
  CHECK(page.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(has(page, "Content-Type: text/html; charset=utf-8\r\n"));
  CHECK(has(page, "Content-Security-Policy: default-src 'none'; script-src 'sha256-"));
  CHECK(has(page, "X-Content-Type-Options: nosniff\r\n"));
  CHECK(has(page, "Referrer-Policy: no-referrer\r\n"));
  CHECK(body_of(s.ask(get("/api/job"))) == "{}");
  s.look();
  json const job = json::parse(body_of(s.ask(get("/api/job"))));
  CHECK(job["name"] == s.j.name);
  CHECK(job["state"] == "gathering");
  s.page->listener().line(edl::train::history_file::kind::training, 7, "{\"step\":7}\n");
  s.page->happened({edl::severity::info, "worker 0 joined", edl::master::topic::joined});
  s.page->happened({edl::severity::debug, "nobody wants to know"});
  CHECK(json::parse(body_of(s.ask(get("/api/history")))) == json::parse("[{\"step\":7}]"));
  json const events = json::parse(body_of(s.ask(get("/api/events"))));
  REQUIRE(events.size() == 1);
  CHECK(events[0]["text"] == "worker 0 joined");
  for (char const* const path : {"/", "/api/job", "/api/live"})
    CHECK(s.ask("POST " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
              .starts_with("HTTP/1.1 405 "));
}

TEST_CASE("events come as they happen, and a reader that comes again misses none") {
  shown_job s;
  s.page->happened({edl::severity::info, "the first"});
  std::string id;
  {
    http_client::connection c(s.page->port());
    std::string const begin = c.say(get("/api/live")).until("the first\"");
    CHECK(has(begin, "Content-Type: text/event-stream\r\n"));
    CHECK(has(begin, "retry: 1000\n\n"));
    CHECK(has(begin, "event: reset\n"));
    s.page->happened({edl::severity::info, "the second"});
    std::string const next = c.until("the second\"");
    auto const at = next.find("id: ") + 4;
    id = next.substr(at, next.find('\n', at) - at);
    s.look();
    CHECK(has(c.until("\"worst\":null}"), "event: job\n"));
  }
  s.page->happened({edl::severity::info, "the third"});
  http_client::connection again(s.page->port());
  std::string const rest =
      again.say(get("/api/live", "127.0.0.1", "Last-Event-ID: " + id + "\r\n")).until("the third\"");
  CHECK_FALSE(has(rest, "event: reset"));
  CHECK_FALSE(has(rest, "the second"));
  s.decisions.fail("the disk is full");
  s.page->close(s.decisions, s.decisions.progress(), {});
  std::thread ends([&s] { s.page.reset(); });
  std::string const last = again.rest();
  ends.join();
  CHECK(has(last, "\"state\":\"failed\""));
  CHECK(has(last, "event: end\n"));
}

TEST_CASE("a reader that takes nothing holds nobody up, and no end") {
  shown_job s;
  http_client::connection lazy(s.page->port());
  lazy.say(get("/api/live"));
  std::string const long_text(900, 'x');
  for (int i = 0; i < 20'000; ++i) s.page->happened({edl::severity::info, long_text});
  CHECK(json::parse(body_of(s.ask(get("/api/events")))).size() <= 2000);
  s.page.reset();
}

TEST_CASE("off this machine a token is wanted, in the head or in the address") {
  shown_job s("0.0.0.0", "a-token-of-the-job");
  CHECK(s.page->token() == "a-token-of-the-job");
  for (char const* const path : {"/", "/api/job", "/api/history", "/api/events", "/api/live"}) {
    CAPTURE(path);
    std::string const refused = s.ask(get(path, "node-7:8080"));
    CHECK(refused.starts_with("HTTP/1.1 401 "));
    CHECK_FALSE(has(refused, "token-of"));
    CHECK(s.ask(get(std::string(path) + "?token=a-token-of-the-jo", "x")).starts_with("HTTP/1.1 401 "));
    CHECK(s.ask(get(std::string(path) + "?token=", "x")).starts_with("HTTP/1.1 401 "));
  }
  CHECK(s.ask(get("/api/job?token=a-token-of-the-job", "node-7:8080")).starts_with("HTTP/1.1 200 "));
  CHECK(s.ask(get("/api/job", "x", "Authorization: Bearer a-token-of-the-job\r\n"))
            .starts_with("HTTP/1.1 200 "));
  shown_job const drawn("0.0.0.0");
  CHECK(drawn.page->token().size() == 64);
  CHECK(drawn.ask(get("/", "x")).starts_with("HTTP/1.1 401 "));
  CHECK_THROWS_WITH_AS(shown_job("0.0.0.0", "guessed"), doctest::Contains("16 or more"), edl::error);
}

TEST_CASE("a page of another name does not read this machine's") {
  shown_job const s;
  CHECK(s.page->token().empty());
  for (char const* const host : {"localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:8080"})
    CHECK(s.ask(get("/api/job", host)).starts_with("HTTP/1.1 200 "));
  for (char const* const path : {"/", "/api/job", "/api/live"})
    CHECK(s.ask(get(path, "evil.example:8080")).starts_with("HTTP/1.1 403 "));
}

TEST_CASE("lines of a history that goes on are there from the start, and go where the job goes back") {
  scratch const dir;
  std::ofstream(dir / "history.jsonl") << "{\"step\":10}\n{\"step\":20}\n";
  shown_job s("127.0.0.1", "", dir / "history.jsonl");
  CHECK(json::parse(body_of(s.ask(get("/api/history")))).size() == 2);
  s.page->listener().go_on_from(10);
  CHECK(json::parse(body_of(s.ask(get("/api/history")))) == json::parse("[{\"step\":10}]"));
}

TEST_CASE("runs beside a job's own are listed, in a directory and in a bucket") {
  scratch const dir;
  test::unkind_store store;
  test::variables const account({{"AWS_ACCESS_KEY_ID", "A"},
                                 {"AWS_SECRET_ACCESS_KEY", "secret"},
                                 {"AWS_ENDPOINT_URL", store.url()},
                                 {"XDG_CACHE_HOME", dir / "cache"}});
  for (std::string const name : {"runs/one/checkpoints/", "runs/two/checkpoints/", "three/", "four/"}) {
    std::string const line = "{\"step\":8,\"loss\":0.5}\n";
    store.objects[name + "history.jsonl"] = line;
    std::filesystem::create_directories(dir / name);
    std::ofstream(dir / (name + "history.jsonl")) << line;
  }
  for (std::string const& at : {dir.path() + "/", std::string("s3://box/")}) {
    CAPTURE(at);
    shown_job const s("127.0.0.1", "", at + "runs/one/checkpoints/history.jsonl");
    CHECK(json::parse(body_of(s.ask(get("/api/runs")))) ==
          json::parse(R"([{"id": "two", "loss": 0.5, "step": 8}])"));
    CHECK(has(s.ask(get("/api/runs/two")), R"({"lines":[{"loss":0.5,"step":8}]})"));
    CHECK(s.ask(get("/api/runs/three")).starts_with("HTTP/1.1 404 "));
  }
  int const before = store.lists;
  shown_job const top("127.0.0.1", "", "s3://box/three/history.jsonl");
  CHECK(body_of(top.ask(get("/api/runs"))) == "[]");
  CHECK(store.lists == before);  // of all that is in a bucket
}

TEST_CASE("a port that is taken is an error that names it, and a look too soon is not due") {
  shown_job s;
  edl::job j = on("127.0.0.1");
  j.observe.dashboard = s.page->port();
  std::string const address = "127.0.0.1:" + std::to_string(s.page->port());
  try {
    edl::train::dashboard const second(j, "", {}, edl::logger(edl::severity::critical));
    FAIL("it is taken");
  } catch (edl::error const& e) {
    CHECK(has(e.what(), address));
  }
  CHECK(s.page->due({}));
  s.look();
  CHECK_FALSE(s.page->due(edl::time_point() + 300ms));
  CHECK(s.page->due(edl::time_point() + 400ms));
}

}  // namespace dashboard_test
