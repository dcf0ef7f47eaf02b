// SPDX-License-Identifier: Apache-2.0
#include "cluster/dashboard.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/http/client.hpp"
#include "command/tool.hpp"
#include "job/train/dashboard/browser.hpp"

namespace dashboard_command_test {

using edl::tool::row_feed;
using nlohmann::json;

namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

std::string get(std::string const& path, std::string const& host = "localhost") {
  return "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n";
}

void append(std::string const& file, std::string const& text) {
  std::filesystem::create_directories(std::filesystem::path(file).parent_path());
  std::ofstream(file, std::ios::app) << text;
}

edl::tool::overview_options over(edl::tool::words const& line) {
  return edl::tool::overview_of({"dashboard", edl::tool::dashboard_flags(), line, 0, 1});
}

}  // namespace

TEST_CASE("a reader of rows gets those that are new, changed or gone, and what hinders") {
  row_feed feed("{\"what\":\"runs\"}");
  row_feed::place at;
  CHECK(feed.show({{"a", "{\"id\":\"a\"}"}, {"b", "{\"id\":\"b\"}"}}, ""));
  CHECK(feed.news(at) ==
        "event: reset\ndata: {\"what\":\"runs\"}\n\nevent: rows\ndata: [{\"id\":\"a\"},{\"id\":\"b\"}]\n\n");
  CHECK(feed.news(at).empty());
  CHECK_FALSE(feed.show({{"a", "{\"id\":\"a\"}"}, {"b", "{\"id\":\"b\"}"}}, ""));
  CHECK(feed.show({{"b", "{\"id\":\"b\",\"step\":1}"}}, "no answer"));
  std::string const news = feed.news(at);
  CHECK(has(news, "event: problem\ndata: {\"text\":\"no answer\"}\n\n"));
  CHECK(has(news, "{\"gone\":true,\"id\":\"a\"}"));
  CHECK(has(news, "{\"id\":\"b\",\"step\":1}"));
  CHECK(feed.all() == "[{\"id\":\"b\",\"step\":1}]");
  CHECK(feed.show({{"a", "{\"id\":\"a\"}"}, {"b", "{\"id\":\"b\",\"step\":1}"}}, "no answer"));
  CHECK(feed.news(at) == "event: rows\ndata: [{\"id\":\"a\"}]\n\n");
}

TEST_CASE("edl dashboard DIRECTORY lists its runs, tells each, and what changes in them") {
  scratch const dir;
  append(dir / "a/history.jsonl", "{\"step\":10,\"loss\":0.5}\n");
  edl::tool::overview const page(over({dir / ""}));
  auto const ask = [&](std::string const& request) { return http_client::ask(page.port(), request); };
  CHECK(has(page.address(), "http://127.0.0.1:"));
  CHECK(has(ask(get("/")), "<!doctype html>"));
  CHECK(ask(get("/")).size() <= 100'000);
  CHECK(has(ask(get("/api/about")), "\"what\":\"runs\""));
  CHECK(has(ask(get("/api/runs")), "\"loss\":0.5"));
  CHECK(has(ask(get("/api/runs/a")), "{\"lines\":[{\"loss\":0.5,\"step\":10}]}"));
  for (char const* const path : {"/api/runs/..", "/api/runs/%2e%2e%2fa", "/api/runs/b"})
    CHECK(ask(get(path)).starts_with("HTTP/1.1 404 "));
  CHECK(ask(get("/api/runs", "evil.example")).starts_with("HTTP/1.1 403 "));
  CHECK(ask("POST /api/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
            .starts_with("HTTP/1.1 405 "));
  http_client::connection live(page.port());
  live.say(get("/api/live")).until("\"step\":10");
  append(dir / "a/history.jsonl", "{\"step\":20,\"loss\":0.25}\n");
  live.until("\"step\":20");
  append(dir / "b/checkpoints/history.jsonl", "{\"step\":30}\n");
  live.until("\"step\":30");
  std::filesystem::remove_all(dir / "b");
  CHECK(has(live.until("\"id\":\"b\"}"), "\"gone\":true"));
}

TEST_CASE("edl dashboard refuses what is no directory, and serves others only who have its token") {
  auto const none = tool_test::run({"dashboard", "/none/here"});
  CHECK(none.code == 1);
  CHECK(has(none.err, "no directory '/none/here'"));
  scratch const dir;
  edl::tool::overview const page(over({dir / "", "--host=0.0.0.0"}));
  std::string const address = page.address();
  REQUIRE(has(address, "/?token="));
  CHECK(http_client::ask(page.port(), get("/api/runs")).starts_with("HTTP/1.1 401 "));
  std::string const way = address.substr(address.find("?token="));
  CHECK(http_client::ask(page.port(), get("/api/runs" + way, "node-7")).starts_with("HTTP/1.1 200 "));
}

TEST_CASE("a page of which nobody can be told where it is ends at once") {
  scratch const dir;
  std::fflush(stdout);
  pid_t const child = ::fork();
  if (child == 0) {
    ::alarm(300);
    ::dup2(::open("/dev/full", O_WRONLY), 1);
    ::dup2(::open("/dev/null", O_WRONLY), 2);
    ::_exit(edl::tool::run({"dashboard", dir / ""}));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 1));
}

TEST_CASE("what cannot be read is told, and what was known stays") {
  bool away = false;
  edl::tool::overview const page({.what = "jobs",
                                  .where = "namespace n",
                                  .rows =
                                      [&](std::string&) {
                                        if (away) throw edl::error("the cluster cannot be reached");
                                        return row_feed::rows{{"j", "{\"id\":\"j\"}"}};
                                      },
                                  .one = [](std::string const&) { return std::string("{}"); }});
  CHECK(has(http_client::ask(page.port(), get("/api/runs")), "[{\"id\":\"j\"}]"));
  away = true;
  CHECK(has(http_client::ask(page.port(), get("/api/runs")), "[{\"id\":\"j\"}]"));
  http_client::connection live(page.port());
  CHECK(has(live.say(get("/api/live")).until("{\"id\":\"j\"}"), "the cluster cannot be reached"));
}

TEST_CASE("a browser lists 10,000 runs, finds one, and compares two by keys alone") {
  if (!browser::there()) return;
  scratch const dir;
  std::string trials;
  for (int i = 0; i < 10'000; ++i)
    trials +=
        std::string(i ? "," : "") + "{\"hyperparameters\":\"rate=" + std::to_string(i) + "\",\"steps\":1}";
  append(dir / "sweep.json", "{\"trials\":[" + trials + "]}");
  for (int const i : {2, 10})
    append(dir / ("trial-" + std::to_string(i) + "/checkpoints/history.jsonl"),
           "{\"step\":1,\"loss\":1.5}\n{\"step\":2,\"loss\":0.5}\n{\"step\":2,\"metrics\":{\"accuracy\":0.75}"
           "}\n");
  edl::tool::overview const page(over({dir / ""}));
  browser b;
  b.open(page.address());
  b.until("document.querySelector('#list p')?.innerText.startsWith('10,000 in the list')");
  CHECK(b.run("document.querySelectorAll('#list tbody tr').length") == 200);
  b.run(
      "const find = document.querySelector('input[type=search]'); find.value = 'rate=2'; "
      "find.dispatchEvent(new Event('input'))");
  b.until("document.querySelector('#list tbody tr').innerText.includes('trial-2')");
  for (char const* const trial : {"trial-2", "trial-10"}) {
    b.run("find.value = '" + std::string(trial) + "'; find.dispatchEvent(new Event('input'))");
    b.run("document.querySelector('input[value=" + std::string(trial) + "]').focus()");
    b.press(" ");
    b.until("document.getElementById('charts').innerText.includes('" + std::string(trial) +
            "') || document.querySelectorAll('.plot path').length > 0");
  }
  b.until("document.getElementById('charts').innerText.includes('trial-10')");
  CHECK(b.run("document.querySelectorAll('figure')[0].querySelectorAll('path').length") == 2);
  CHECK(b.run("location.hash") == "#trial-2&trial-10");
  append(dir / "trial-2/checkpoints/history.jsonl", "{\"step\":3,\"loss\":0.125}\n");
  b.until("document.getElementById('charts').innerText.includes('0.125')");
  b.check_names();
  b.check_widths();
  for (std::string const& problem : b.problems()) CHECK_MESSAGE(false, problem);
}

TEST_CASE("a browser lists and draws runs whose histories are odd, and goes on") {
  if (!browser::there()) return;
  scratch const dir;
  append(dir / "a/history.jsonl", "{\"step\":1,\"time\":-1e300,\"loss\":\"high\"}\n");
  append(dir / "b/history.jsonl",
         "{\"step\":1,\"time\":\"noon\",\"loss\":1}\n{\"step\":2,\"loss\":1.0000000000000002}\n"
         "{\"step\":18446744073709551615,\"loss\":1e308}\n{\"step\":3,\"loss\":-1e308}\n");
  append(dir / "sweep.json", R"({"trials":[{"hyperparameters":5}]})");
  edl::tool::overview const page(over({dir / ""}));
  browser b;
  b.open(page.address());
  b.until("document.querySelectorAll('#list tbody tr').length === 3");
  b.run("document.querySelector('#list input[value=b]').focus()");
  b.press(" ");
  b.until("document.querySelectorAll('.plot path').length > 0");
  // Another column: who stands on a run stays there.
  append(dir / "c/history.jsonl", "{\"step\":1}\n{\"step\":1,\"metrics\":{\"accuracy\":0.5}}\n");
  b.until("document.querySelector('#list thead').innerText.includes('accuracy')");
  CHECK(b.run("document.activeElement.value") == "b");
  CHECK(b.run("document.querySelectorAll('#list tbody tr').length") == 4);
  for (std::string const& problem : b.problems()) CHECK_MESSAGE(false, problem);
}

TEST_CASE("a browser shows why a TrainingJob is as it is, and what happened to its roles on one time line") {
  if (!browser::there()) return;
  json const row{{"id", "j"},
                 {"status", "Running"},
                 {"range", "1-8"},
                 {"workers", {{"running", 2}, {"wanted", 4}}},
                 {"created", "2026-11-22T10:00:00Z"}};
  json const record{
      {"time", "2026-11-22T10:10:00Z"}, {"from", 2}, {"to", 4}, {"reason", "There is <b>room</b>."}};
  json const condition{{"type", "Admitted"},
                       {"status", "True"},
                       {"reason", "Room"},
                       {"message", "It has its room."},
                       {"lastTransitionTime", "2026-11-22T10:01:00Z"}};
  json const one{
      {"now", {{{"who", "worker-3"}, {"text", "waits for room"}}}},
      {"before",
       {{{"who", "job"}, {"text", "its workers became 4 instead of 2"}, {"time", "2026-11-22T10:10:00Z"}},
        {{"who", "ps-0"}, {"text", "lost: killed"}, {"time", "2026-11-22T10:11:00Z"}}}},
      {"missing", ""},
      {"lines", {{{"step", 1}, {"loss", 2.5}}, {{"step", 2}, {"loss", 1.5}}}},
      {"pods",
       {{{"role", "worker-0"},
         {"status", "Running"},
         {"restarts", 0},
         {"created", "2026-11-22T10:00:00Z"},
         {"node", "node-7"}}}},
      {"training_job",
       {{"scaleRecords", {record}},
        {"speeds", {{{"workers", 2}, {"recordsPerSecond", 930.5}}}},
        {"conditions", {condition}}}}};
  edl::tool::overview const page({.what = "jobs",
                                  .where = "namespace n",
                                  .rows = [&](std::string&) { return row_feed::rows{{"j", row.dump()}}; },
                                  .one = [&](std::string const&) { return one.dump(); }});
  browser b;
  b.open(page.address());
  b.until("document.querySelector('#list input[value=j]') !== null");
  b.run("document.querySelector('#list input[value=j]').focus()");
  b.press(" ");
  auto const shows = [&](std::string const& id, std::string const& text) {
    b.until("document.getElementById('" + id + "').innerText.includes('" + text + "')");
  };
  shows("plan-title", "Why j is as it is");
  shows("now", "worker-3: waits for room");
  for (char const* text : {"2 to 4", "There is <b>room</b>.", "930.5", "It has its room.", "node-7"})
    shows("tables", text);
  shows("events", "lost: killed");
  CHECK(b.run("document.querySelectorAll('#strip circle').length") == 2);
  CHECK(b.run("document.querySelectorAll('.plot path').length") == 1);
  b.check_names();
  b.check_widths();
  for (std::string const& problem : b.problems()) CHECK_MESSAGE(false, problem);
}

}  // namespace dashboard_command_test
