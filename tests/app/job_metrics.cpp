// SPDX-License-Identifier: Apache-2.0
#include "edl/app/job_metrics.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <iterator>
#include <regex>
#include <set>

#include "app/tiny_job.hpp"
#include "base/http/client.hpp"
#include "openmetrics.hpp"

namespace job_metrics_test {

using namespace tiny;
using namespace std::chrono_literals;

std::string_view type_name(edl::metric_type t) {
  using enum edl::metric_type;
  return t == counter ? "counter" : t == gauge ? "gauge" : t == info ? "info" : "histogram";
}

// EDL_WRITE_DOCS=1 writes the table anew.
TEST_CASE("docs/metrics.md has the metrics as they are") {
  std::string table = "| metric | type | exported by | meaning |\n|---|---|---|---|\n";
  for (auto const& m : edl::app::job_metrics())
    table += fmt::format("| `{}` | {} | {} | {} |\n", m.name, type_name(m.type), m.roles, m.help);
  std::string const path = EDL_DOCS "/metrics.md", begin = "tests/test-app -->\n",
                    end = "<!-- end of the generated";
  std::string page = job::slurp(path);
  auto const from = page.find(begin), to = page.find(end);
  REQUIRE(from != page.npos);
  REQUIRE(to != page.npos);
  bool const same = page.substr(from + begin.size(), to - from - begin.size()) == table;
  if (!same && std::getenv("EDL_WRITE_DOCS")) {
    std::ofstream(path) << page.replace(from + begin.size(), to - from - begin.size(), table);
    return;
  }
  INFO("EDL_WRITE_DOCS=1 tests/test-app writes the table anew");
  CHECK(same);
}

TEST_CASE("alerts and the board ask for metrics that there are") {
  std::string known = job::slurp(EDL_DOCS "/metrics.md") + job::slurp(EDL_DOCS "/controller.md") +
                      job::slurp(EDL_DOCS "/tasks/serve.md");
  std::string const asked = job::slurp(EDL_MANIFESTS "/monitoring/alerts.yaml") +
                            job::slurp(EDL_MANIFESTS "/monitoring/dashboard.json");
  std::regex const name("\\b(edl|process)_[a-z_]+");
  std::set<std::string> found;
  for (std::sregex_iterator i(asked.begin(), asked.end(), name), none; i != none; ++i) found.insert(i->str());
  CHECK(found.size() > 20);
  for (std::string const& one : found) {
    CAPTURE(one);
    CHECK((has(known, "`" + one + "`") || has(known, "`" + one + "{")));
  }
}

/// What each process of a job tells, by the addresses of its log.
std::vector<openmetrics::page> pages_of(std::string const& log, std::string& last) {
  std::vector<openmetrics::page> all;
  std::regex const line("metrics: http://127\\.0\\.0\\.1:([0-9]+)/metrics");
  for (std::sregex_iterator i(log.begin(), log.end(), line), none; i != none; ++i) {
    std::string const said =
        http_client::ask(std::uint16_t(std::stoi((*i)[1])), http_client::get("/metrics"));
    REQUIRE(has(said, "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"));
    last = said.substr(said.find("\r\n\r\n") + 4);
    all.push_back(openmetrics::parse(last));
  }
  return all;
}

TEST_CASE("every process of a job with --metrics_port tells its numbers") {
  job::run r(cluster(1, 2, {"--metrics_port=0", "--num_epochs=3"}), held);
  REQUIRE(r.says("metrics: http://", 4));
  REQUIRE(job::eventually([&] {
    std::string last;
    auto const pages = pages_of(r.log(), last);
    double trained = 0;
    for (auto const& p : pages)
      if (p.samples.contains("edl_minibatches_total") && p.samples.contains("edl_workers"))
        trained = p.samples.at("edl_minibatches_total");
    return trained > 0;
  }));
  std::string last;
  auto const pages = pages_of(r.log(), last);
  REQUIRE(pages.size() == 4);
  std::set<std::string> told;
  std::multiset<std::string> roles;
  for (auto const& p : pages) {
    for (auto const& [name, value] : p.samples) {
      std::string const bare = name.substr(0, name.find('{'));
      told.insert(bare);
      if (bare == "edl_process_info") roles.insert(name.substr(name.find("role=") + 6, 2));
      CHECK(std::ranges::any_of(edl::app::job_metrics(), [&](auto const& m) { return m.name == bare; }));
    }
    CHECK(p.samples.at("process_resident_memory_bytes") > 1e6);
    CHECK(p.samples.at("edl_net_received_bytes_total") > 0);
  }
  CHECK(roles == std::multiset<std::string>{"ma", "ps", "wo", "wo"});
  for (auto const& m : edl::app::job_metrics())
    if (m.name != "process_memory_limit_bytes") {
      CAPTURE(m.name);
      CHECK(told.contains(std::string(m.name)));
    }
  if (std::system("/usr/bin/python3 -c 'import prometheus_client' 2>/dev/null") == 0) {
    job::scratch const dir;
    std::ofstream(dir / "page") << last;
    CHECK(std::system(("/usr/bin/python3 -c 'import sys; from prometheus_client.openmetrics import parser; "
                       "assert list(parser.text_fd_to_metric_families(open(sys.argv[1])))' " +
                       dir / "page")
                          .c_str()) == 0);
  } else {
    MESSAGE("skipped: Debian's python3-prometheus-client, whose reader is another's, is not installed");
  }
  r.open_gate();
  CHECK(r.wait() == 0);
}

TEST_CASE("without --metrics_port nothing listens for it") {
  job::run r(cluster(1, 1, {"--num_epochs=1"}));
  CHECK(r.wait() == 0);
  CHECK(!has(r.log(), "/metrics"));
}

}  // namespace job_metrics_test
