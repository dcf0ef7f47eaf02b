// SPDX-License-Identifier: Apache-2.0
#include "cluster/dashboard.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cluster/cluster.hpp"
#include "cluster/explain.hpp"
#include "cluster/get.hpp"
#include "cluster/training_jobs.hpp"
#include "edl/app/signals.hpp"
#include "edl/base/bucket/place.hpp"
#include "edl/cli/program.hpp"
#include "edl/core/error.hpp"
#include "edl/core/json.hpp"
#include "edl/job/train/observe/run_list.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;

std::string text_of(json const& of) { return of.dump(-1, ' ', false, json::error_handler_t::replace); }

[[noreturn]] void unknown(std::string const& id) {
  throw http::failure(404, fmt::format("no '{}'", printable(id)));
}

/// The runs of a directory.
struct directory_of_runs {
  explicit directory_of_runs(bucket::place const& path) : runs(path) {}
  std::mutex mutex;
  train::run_list runs;
};

overview_options over_directory(std::string const& path) {
  std::error_code unreadable;
  bucket::place const place(path);
  if (!place.in_bucket() && !std::filesystem::is_directory(path, unreadable))
    throw error(fmt::format("no directory '{}'; without one the page shows the jobs of a cluster", path));
  if (place.in_bucket() && place.names().empty()) throw error(fmt::format("{}: no object lies there", path));
  auto const of = std::make_shared<directory_of_runs>(place);
  return {.what = "runs",
          .where = path,
          .rows =
              [of](std::string& problem) {
                std::lock_guard const lock(of->mutex);
                auto const& all = of->runs.look();
                problem = of->runs.problem();
                if (!of->runs.complete())
                  problem = fmt::format("only {} runs are shown", train::run_list::most);
                return all;
              },
          .one =
              [of](std::string const& id) {
                std::lock_guard const lock(of->mutex);
                std::string const lines = of->runs.lines_of(id);
                if (lines.empty()) unknown(id);
                return "{\"lines\":" + lines + "}";
              },
          .pause = std::chrono::milliseconds(place.in_bucket() ? 5000 : 500)};
}

/// The jobs of a cluster. What is asked for one is asked when somebody looks at it.
class cluster_jobs {
 public:
  explicit cluster_jobs(command_line const& l)
      : cluster_(connect(l)), everywhere_(l.truth("all_namespaces")) {}

  std::string where() const { return everywhere_ ? "all namespaces" : "namespace " + cluster_.space; }
  void stop() { cluster_.api.stop(); }

  row_feed::rows rows(std::string& problem) {
    std::lock_guard const lock(mutex_);
    row_feed::rows all;
    for (job_summary const& j : jobs_of(cluster_, everywhere_, problem)) {
      std::string const id = everywhere_ ? j.space + "/" + j.name : j.name;
      json row = to_json(j);
      row["id"] = id;
      json const report = parse_json(j.report);
      if (report.is_object()) {
        for (char const* const name :
             {"version", "records", "total_records", "records_per_s", "seconds_left"})
          if (report.contains(name)) row[name] = report[name];
        for (json const& line : lines_of(report))
          for (char const* const name : {"loss", "metrics"})
            if (line.contains(name)) row[name] = line[name];
      }
      all[id] = text_of(row);
    }
    return all;
  }

  std::string one(std::string const& id) {
    std::lock_guard const lock(mutex_);
    auto const slash = id.find('/');
    std::string const job = everywhere_ && slash != id.npos ? id.substr(slash + 1) : id, own = cluster_.space;
    if (everywhere_ && slash != id.npos) cluster_.space = id.substr(0, slash);
    struct way_back {
      std::string &space, before;
      ~way_back() { space = before; }
    } const back{cluster_.space, own};
    auto const above = find_training_job(cluster_, job);
    json const pods = own_pods(cluster_.pods_of(job), above ? above->resource.uid : "");
    if (pods.empty() && !above) unknown(id);
    auto events = events_of(cluster_, job, pods, above ? &above->resource : nullptr);
    if (above) erase_resizes(events.list, above->resource);
    explanation x = explain_pods(cluster_.named(job), pods, events.list);
    if (above) explain_training_job(*above, cluster_.named(job), x);
    json out{{"now", to_json(x.now)},
             {"before", to_json(x.before)},
             {"missing", events.missing},
             {"pods", json::array()},
             {"lines", json::array()}};
    if (above) out["training_job"] = edl::kubernetes::status_json(above->resource.status);
    for (json const& pod : pods) out["pods"].push_back(to_json_pod(pod));
    auto const of_pods = summarise(pods);
    if (!of_pods.empty()) out["lines"] = lines_of(parse_json(of_pods[0].report));
    return text_of(out);
  }

 private:
  /// A pod may say anything of itself.
  static json lines_of(json const& report) {
    json all = json::array();
    if (!report.is_object() || !report.contains("history")) return all;
    for (json const& line : report["history"])
      if (line.is_object() && line.contains("step") && line["step"].is_number_unsigned()) all.push_back(line);
    return all;
  }

  std::mutex mutex_;
  cluster cluster_;
  bool everywhere_;
};

overview_options over_cluster(command_line const& l) {
  auto const of = std::make_shared<cluster_jobs>(l);
  return {.what = "jobs",
          .where = of->where(),
          .rows = [of](std::string& problem) { return of->rows(problem); },
          .one = [of](std::string const& id) { return of->one(id); },
          .stop = [of] { of->stop(); }};
}

}  // namespace

std::vector<flag> dashboard_flags() {
  auto all = cluster_flags();
  all.push_back({.name = "all_namespaces",
                 .fallback = "false",
                 .help = "jobs of all namespaces",
                 .aliases = {"A"},
                 .type = flag::value_type::truth});
  all.push_back({.name = "port",
                 .fallback = "0",
                 .help = "port of the page; 0: any free one",
                 .type = flag::value_type::whole,
                 .least = 0,
                 .most = 65535});
  all.push_back({.name = "host",
                 .fallback = "127.0.0.1",
                 .help = "address of the page; from other machines it needs the printed token"});
  return all;
}

overview_options overview_of(command_line const& l) {
  auto o = l.arguments().empty() ? over_cluster(l) : over_directory(l.arguments()[0]);
  o.host = l.text("host");
  o.port = std::uint16_t(l.number("port"));
  return o;
}

int show_dashboard(words const& line) {
  command_line const l("dashboard", dashboard_flags(), line, 0, 1, "a directory of runs");
  app::signals const stop{SIGTERM, SIGINT};
  overview const page(overview_of(l));
  fmt::print("{}\n", page.address());
  cli::flush_output();  // who does not hear where it is has no page
  while (!stop.wait(std::chrono::hours(1))) {
  }
  return done;
}

}  // namespace edl::tool
