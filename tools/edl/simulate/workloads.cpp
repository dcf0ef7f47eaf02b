// SPDX-License-Identifier: Apache-2.0
#include "simulate/workloads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "common/text_file.hpp"
#include "common/yaml.hpp"
#include "edl/core/error.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/quantity.hpp"
#include "simulate/csv.hpp"
#include "simulate/pollux.hpp"

namespace edl::simulate {
namespace {

using nlohmann::json;
using namespace autoscaler;

constexpr char gpu[] = "nvidia.com/gpu";

/// One value of a file, with the way to it for messages.
class field {
 public:
  field(json const& value, std::string where) : value_(&value), where_(std::move(where)) {}

  [[noreturn]] void wrong(std::string const& why) const { throw usage_error(where_ + ": " + why); }

  field at(std::string const& name) const {
    auto const found = has(name);
    if (!found) wrong("needs '" + name + "'");
    return {value_->at(name), where_ + "." + name};
  }
  bool has(std::string const& name) const {
    if (!value_->is_object()) wrong("expected a mapping");
    return value_->contains(name);
  }
  void only(std::vector<std::string> const& names) const {
    if (!value_->is_object()) wrong("expected a mapping");
    for (auto const& [name, value] : value_->items())
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        std::string list;
        for (std::string const& n : names) list += (list.empty() ? "" : ", ") + n;
        wrong("'" + name + "' is unknown; expected one of " + list);
      }
  }
  std::vector<field> list() const {
    if (!value_->is_array()) wrong("expected a list");
    std::vector<field> all;
    for (std::size_t i = 0; i < value_->size(); ++i)
      all.emplace_back(value_->at(i), fmt::format("{}[{}]", where_, i));
    return all;
  }
  double number(double least, double most) const {
    if (!value_->is_number() || !(value_->get<double>() >= least && value_->get<double>() <= most))
      wrong(fmt::format("expected a number from {:g} to {:g}", least, most));
    return value_->get<double>();
  }
  double number(std::string const& name, double fallback, double least, double most) const {
    return has(name) ? at(name).number(least, most) : fallback;
  }
  int whole(std::string const& name, int fallback, int least, int most) const {
    double const n = number(name, fallback, least, most);
    if (n != std::floor(n)) at(name).wrong("expected a whole number");
    return int(n);
  }
  std::string text() const {
    if (!value_->is_string() || value_->get<std::string>().empty()) wrong("expected a text");
    return value_->get<std::string>();
  }
  resources amounts() const {
    if (!value_->is_object()) wrong("expected resources: {cpu: 4, memory: 8Gi}");
    resources all;
    for (auto const& [name, value] : value_->items()) {
      std::string const amount = value.is_string() ? value.get<std::string>() : value.dump();
      try {
        all[name] = std::int64_t(std::min<std::uint64_t>(thousandths_of(amount), 1ull << 60));
      } catch (error const& bad) {
        wrong(fmt::format("{}: {}", name, bad.what()));
      }
    }
    return all;
  }

 private:
  json const* value_;
  std::string where_;
};

constexpr int most_nodes = 100'000, most_jobs = 100'000;

std::vector<node> nodes_of(field const& list) {
  std::vector<node> all;
  for (field const& f : list.list()) {
    f.only({"name", "count", "resources", "labels"});
    node n{.allocatable = f.at("resources").amounts()};
    if (n.allocatable.count(pod_slots) == 0) n.allocatable[pod_slots] = 110'000;
    std::string const name = f.has("name") ? f.at("name").text() : fmt::format("node{}", all.size());
    int const count = f.whole("count", 1, 1, most_nodes);
    if (int(all.size()) + count > most_nodes) f.wrong(fmt::format("more than {} nodes", most_nodes));
    for (int i = 0; i < count; ++i) {
      n.name = count == 1 ? name : fmt::format("{}-{}", name, i);
      all.push_back(n);
    }
  }
  if (all.empty()) list.wrong("no nodes");
  return all;
}

void add_jobs(field const& f, std::vector<job_spec>& to) {
  f.only({"name", "count", "every", "submitted", "priority", "min", "max", "worker", "fixed", "records",
          "speed", "overhead"});
  job_spec j{.submitted = f.number("submitted", 0, 0, 1e9)};
  std::string const name = f.at("name").text();
  j.priority = f.whole("priority", 0, -1'000'000'000, 1'000'000'000);
  j.min = f.whole("min", 1, 0, 1'000'000);
  j.max = f.whole("max", std::max(1, j.min), 1, 1'000'000);
  if (j.max < j.min) f.wrong(fmt::format("max {} is less than min {}", j.max, j.min));
  j.worker.requests = f.at("worker").amounts();
  if (f.has("fixed"))
    for (field const& pod : f.at("fixed").list()) j.fixed.push_back({.requests = pod.amounts()});
  j.work = std::make_shared<plain_work>(f.at("records").number(1, 1e18), f.number("speed", 1, 1e-9, 1e12),
                                        f.number("overhead", 0, 0, 100));
  int const count = f.whole("count", 1, 1, most_jobs);
  double const every = f.number("every", 0, 0, 1e9);
  if (int(to.size()) + count > most_jobs) f.wrong(fmt::format("more than {} jobs", most_jobs));
  for (int i = 0; i < count; ++i) {
    j.name = count == 1 ? name : fmt::format("{}-{}", name, i);
    to.push_back(j);
    j.submitted += every;
  }
}

service_spec service_of(field const& f) {
  f.only({"name", "pod", "load"});
  service_spec s{.name = f.at("name").text(), .pod = {.requests = f.at("pod").amounts()}};
  for (field const& l : f.at("load").list()) {
    l.only({"at", "pods"});
    s.load.emplace_back(l.number("at", 0, 0, 1e9), l.whole("pods", 0, 0, 1'000'000));
    if (s.load.size() > 1 && s.load.back().first <= s.load[s.load.size() - 2].first)
      l.wrong("is not after the one before");
  }
  return s;
}

json parsed(std::string const& path) {
  return tool::from_yaml(tool::read_small_file("scenario", path), path);
}

double seconds_of(std::string const& time, csv const& in, std::size_t row) {
  std::tm t{};
  int end = 0;
  if (std::sscanf(time.c_str(), "%4d-%2d-%2d %2d:%2d:%2d%n", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour,
                  &t.tm_min, &t.tm_sec, &end) != 6 ||
      end != int(time.size()))
    throw usage_error(fmt::format("{}: '{}' is not a time such as 2017-10-09 07:01:55", in.place(row),
                                  printable(time, 40)));
  t.tm_year -= 1900;
  --t.tm_mon;
  return double(timegm(&t));
}

}  // namespace

std::vector<node> alike(int count, std::string const& name,
                        std::map<std::string, std::string> const& amounts) {
  std::vector<node> all;
  for (int i = 0; i < count; ++i) {
    node n{.name = fmt::format("{}-{}", name, i), .allocatable = {{pod_slots, 110'000}}};
    for (auto const& [what, amount] : amounts) n.allocatable[what] = std::int64_t(thousandths_of(amount));
    all.push_back(std::move(n));
  }
  return all;
}

std::vector<node> read_cluster(std::string const& path) {
  json const all = parsed(path);
  return nodes_of(field(all, path).at("nodes"));
}

scenario read_scenario(std::string const& path) {
  json const all = parsed(path);
  field const f(all, path);
  f.only({"nodes", "jobs", "services"});
  scenario s{.nodes = nodes_of(f.at("nodes"))};
  if (f.has("jobs"))
    for (field const& j : f.at("jobs").list()) add_jobs(j, s.jobs);
  if (f.has("services"))
    for (field const& l : f.at("services").list()) s.services.push_back(service_of(l));
  return s;
}

scenario read_pollux(std::string const& path, std::string const& applications, batch how) {
  csv const in(path, {"name", "time", "application", "num_replicas", "batch_size"});
  std::map<std::string, std::shared_ptr<pollux_application const>> known;
  std::map<std::pair<std::string, int>, std::shared_ptr<pollux_work const>> works;
  scenario s{.nodes = alike(16, "node", {{gpu, "4"}})};
  for (std::size_t r = 0; r < in.rows(); ++r) {
    std::string const& app = in.text(r, 2);
    if (app.find('/') != app.npos || app.empty())
      throw usage_error(fmt::format("{}: '{}' is not an application", in.place(r), printable(app, 40)));
    auto& measured = known[app];
    if (!measured) measured = std::make_shared<pollux_application>(applications + "/" + app);
    int const size = int(in.number(r, 4, 1, 1e9));
    // The published simulation gives this application one GPU and this batch.
    bool const alone = app == "ncf";
    auto& work = works[{app, size}];
    if (!work) work = std::make_shared<pollux_work>(measured, size, how == batch::changing && !alone);
    job_spec j{.name = in.text(r, 0), .submitted = in.number(r, 1, 0, 1e9), .min = 0};
    j.max = alone ? 1 : std::min(64, work->most_workers());
    j.worker.requests = {{gpu, 1000}};
    j.work = work;
    s.jobs.push_back(std::move(j));
  }
  return s;
}

scenario read_philly(std::string const& path, std::size_t most) {
  csv const in(path, {"timestamp", "duration", "num_gpus"});
  scenario s;
  for (std::size_t r = 0; r < in.rows(); ++r) {
    job_spec j{.name = fmt::format("line-{}", r + 2), .submitted = seconds_of(in.text(r, 0), in, r)};
    double const duration = in.number(r, 1, 0, 1e9);
    int const gpus = int(in.number(r, 2, 0, 1e5));
    if (gpus < 1 || duration <= 0) continue;
    j.max = gpus;
    j.worker.requests = {{gpu, 1000}};
    j.work = std::make_shared<plain_work>(duration * gpus, 1);
    s.jobs.push_back(std::move(j));
  }
  std::stable_sort(s.jobs.begin(), s.jobs.end(), [](auto& a, auto& b) { return a.submitted < b.submitted; });
  if (s.jobs.size() > most) s.jobs.resize(most);
  if (s.jobs.empty()) throw usage_error(path + ": has no job with a GPU");
  double const first = s.jobs.front().submitted;
  for (job_spec& j : s.jobs) j.submitted -= first;
  return s;
}

scenario generated(int nodes, int jobs, unsigned seed) {
  std::mt19937 random(seed);
  auto const part = [&] { return std::uniform_real_distribution<double>(0, 1)(random); };
  auto const upto = [&](int a, int b) { return a + int(part() * (b - a + 1)); };
  constexpr double hours = 3600;
  scenario s{.nodes = alike(nodes, "node", {{gpu, "8"}, {"cpu", "64"}, {"memory", "256Gi"}})};
  for (int i = 0; i < jobs; ++i) {
    job_spec j{.name = fmt::format("job-{}", i), .submitted = part() * 8 * hours};
    j.min = upto(1, 4);
    j.max = j.min * upto(1, 16);
    j.worker.requests = {
        {gpu, 1000}, {"cpu", upto(2, 6) * 1000}, {"memory", upto(4, 24) * 1000 * (1ll << 30)}};
    j.fixed.push_back({.requests = {{"cpu", 1000}, {"memory", 1000 * (1ll << 30)}}});
    // From minutes to days of one GPU, more of the short ones.
    j.work = std::make_shared<plain_work>(300 * std::exp(part() * part() * 7), 1, 0.05 * part());
    s.jobs.push_back(std::move(j));
  }
  for (int i = 0; i < std::max(1, nodes / 100); ++i) {
    service_spec v{.name = fmt::format("service-{}", i),
                   .pod = {.requests = {{"cpu", 4000}, {"memory", 8000 * (1ll << 30)}}}};
    int const most = std::max(2, std::min(nodes, 100) * upto(1, 3));
    double const peak = part() * 24 * hours;
    for (int tenth = 0; tenth < 16 * 6; ++tenth) {
      double const at = tenth * 600.0;
      v.load.emplace_back(
          at, int(most * (0.6 + 0.4 * std::cos((at - peak) / (24 * hours) * 2 * 3.14159265358979))));
    }
    s.services.push_back(std::move(v));
  }
  return s;
}

std::string format_of(std::string const& path) {
  std::ifstream in(path);
  if (!in) throw usage_error(fmt::format("{}: {}", path, std::strerror(errno)));
  std::string line(std::size_t{64} << 10, '\0');
  in.read(line.data(), std::streamsize(line.size()));
  line.resize(std::size_t(in.gcount()));
  line.resize(std::min(line.find('\n'), line.size()));
  if (line.find("application") != line.npos && line.find("batch_size") != line.npos) return "pollux";
  return line.find("timestamp") != line.npos && line.find(',') != line.npos ? "philly" : "yaml";
}

}  // namespace edl::simulate
