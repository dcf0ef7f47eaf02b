// SPDX-License-Identifier: Apache-2.0
#include "simulate/spot_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <map>

#include "edl/cli/flag.hpp"
#include "edl/core/error.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"
#include "simulate/csv.hpp"

namespace edl::simulate {
namespace {

constexpr double least_price = 1e-6, most_price = 1e6;  // costs are divided by that of the optimum

spot_zone empty_zone(std::string const& name) {
  std::string region = name;
  if (region.size() > 1 && region.back() >= 'a' && region.back() <= 'z') region.pop_back();
  if (region.ends_with('-')) region.pop_back();
  return {.name = name, .region = region, .continent = region.substr(0, region.find('-')), .up{}, .price{}};
}

double seconds_of(csv const& file, std::size_t row) {
  std::tm at{};
  std::string const& text = file.text(row, 0);
  if (std::sscanf(text.c_str(), "%4d-%2d-%2d%*1[ T]%2d:%2d:%2d", &at.tm_year, &at.tm_mon, &at.tm_mday,
                  &at.tm_hour, &at.tm_min, &at.tm_sec) != 6)
    throw usage_error(
        fmt::format("{}: '{}' is no time: YYYY-MM-DD HH:MM:SS", file.place(row), printable(text, 40)));
  at.tm_year -= 1900;
  --at.tm_mon;
  return double(::timegm(&at));
}

double step_of(csv const& file, double tick) {
  bool const times = file.columns()[0] == "time";
  if (!times && file.columns()[0] != "tick")
    throw usage_error(file.place(std::size_t(-1)) + ": the first column has to be 'tick' or 'time'");
  double first = 0, last = 0;
  for (std::size_t r = 0; r < file.rows(); ++r) {
    double const at = times ? seconds_of(file, r) : file.number(r, 0, 0, 1e9);
    if (r > 0 && (times ? at <= last : at != last + 1))
      throw usage_error(fmt::format("{}: {} '{}' does not follow that of the line before", file.place(r),
                                    file.columns()[0], printable(file.text(r, 0), 40)));
    (r > 0 ? last : first) = at;
    last = at;
  }
  return times ? (last - first) / double(file.rows() - 1) : tick;
}

}  // namespace

spot_trace read_spot(std::string const& prefix, double tick, std::string const& on_demand, bool lost) {
  csv const there(prefix + "-available.csv", {});
  if (there.rows() < 2 || there.columns().size() < 2)
    throw usage_error(prefix + "-available.csv: needs at least two lines below the names, and one zone");
  spot_trace all{.tick = step_of(there, tick), .zones{}};
  csv const prices(prefix + "-prices.csv", {});
  std::vector<std::string> const& of = prices.columns();
  bool const constant = of[0] == "zone";
  if (constant && (of.size() < 2 || of[1] != "spot_usd_per_hour"))
    throw usage_error(prefix + "-prices.csv:1: column 'spot_usd_per_hour' is missing");
  if (!constant && prices.rows() != there.rows())
    throw usage_error(fmt::format("{0}-prices.csv: has {1} lines of prices, {0}-available.csv has {2}",
                                  prefix, prices.rows(), there.rows()));
  for (std::size_t c = 1; c < there.columns().size(); ++c) {
    spot_zone z = empty_zone(there.columns()[c]);
    if (constant) {
      for (std::size_t r = 0; r < prices.rows(); ++r)
        if (prices.text(r, 0) == z.name)
          z.price.assign(there.rows(), prices.number(r, 1, least_price, most_price));
    } else if (auto const at = std::find(of.begin(), of.end(), z.name); at != of.end()) {
      for (std::size_t r = 0; r < prices.rows(); ++r)
        z.price.push_back(prices.number(r, std::size_t(at - of.begin()), least_price, most_price));
    }
    if (z.price.empty()) continue;
    for (std::size_t r = 0; r < there.rows(); ++r) {
      double const up = there.number(r, c, 0, 1);
      if (up != 0 && up != 1)
        throw usage_error(fmt::format("{}: '{}' of {} is neither 0 nor 1", there.place(r),
                                      printable(there.text(r, c), 40), z.name));
      z.up.push_back(char((up != 0) != lost));
    }
    all.zones.push_back(std::move(z));
  }
  if (all.zones.empty())
    throw usage_error(fmt::format("{0}-available.csv and {0}-prices.csv have no zone in common", prefix));
  for (std::string const& part : cli::split(on_demand, ',')) {
    auto const equals = part.find('=');
    auto const value = number_from<double>(equals == part.npos ? part : part.substr(equals + 1));
    if (!value || !(*value > 0 && *value <= most_price))
      throw usage_error(fmt::format("--on_demand: '{}' is no price above 0", printable(part, 40)));
    for (spot_zone& z : all.zones)
      if (equals == part.npos || z.name.starts_with(part.substr(0, equals))) z.on_demand = *value;
  }
  for (spot_zone const& z : all.zones)
    if (z.on_demand <= 0) throw usage_error("--on_demand: gives no price for " + z.name);
  return all;
}

std::vector<spot_case> read_published(std::string const& path, spot_trace const& trace) {
  csv const file(path, {"strategy", "scenario_name", "regions_in_scenario", "region", "task_duration",
                        "checkpoint_size", "deadline_hours", "env_start_hours", "cost", "deadline_ratio"});
  auto const zone_called = [&](std::string_view name, std::size_t row) {
    name = name.substr(0, name.find('_'));
    for (std::size_t z = 0; z < trace.zones.size(); ++z)
      if (trace.zones[z].name == name) return z;
    throw usage_error(fmt::format("{}: the trace has no zone '{}'", file.place(row), printable(name, 40)));
  };
  std::map<std::string, std::size_t> const strategies{
      {"optimal", optimal},
      {"multi_region_rc_cr_threshold_eager_failover", uniform_anywhere},
      {"skynomad", published_skynomad}};
  std::vector<spot_case> all;
  std::map<std::string, std::size_t> known;
  for (std::size_t r = 0; r < file.rows(); ++r) {
    auto const strategy = strategies.find(file.text(r, 0));
    bool const alone = file.text(r, 0) == "rc_cr_threshold";
    if (strategy == strategies.end() && !alone) continue;
    double const hours = file.number(r, 6, 0.1, 1e5), work = file.number(r, 4, 0.01, 1e5);
    std::string const name = fmt::format("{}, {:g} GB, {:g}", printable(file.text(r, 1), 60),
                                         file.number(r, 5, 0, 1e7), file.number(r, 9, 0, 1e6));
    double const start = file.number(r, 7, 0, 1e6);
    auto const [at, fresh] = known.emplace(fmt::format("{} from {:.4g}", name, start), all.size());
    if (fresh) {
      spot_case c{.name = name, .zones{}};
      std::string list = file.text(r, 2);
      std::erase_if(list, [](char x) { return x == '[' || x == ']' || x == '\'' || x == ' '; });
      for (std::string const& zone : cli::split(list, ',')) c.zones.push_back(zone_called(zone, r));
      c.alone.assign(c.zones.size(), 0);
      c.start = std::size_t(std::ceil(start * 3600 / trace.tick));
      c.ticks = int(std::floor(hours * 3600 / trace.tick + 1e-6));
      c.work = work * 3600;
      c.gigabytes = file.number(r, 5, 0, 1e7);
      if (c.start + std::size_t(c.ticks) > trace.zones[0].up.size())
        throw usage_error(file.place(r) + ": the window ends after the trace");
      all.push_back(std::move(c));
    }
    spot_case& c = all[at->second];
    double* cost = nullptr;
    if (!alone) {
      cost = &c.published[strategy->second];
    } else {
      std::size_t const zone = zone_called(file.text(r, 3), r);
      auto const here = std::find(c.zones.begin(), c.zones.end(), zone);
      if (here != c.zones.end()) cost = &c.alone[std::size_t(here - c.zones.begin())];
    }
    if (cost && *cost == 0) *cost = file.number(r, 8, 0, 1e9);  // the rows of means stand behind
  }
  if (all.empty()) throw usage_error(path + ": has no strategy that is known here");
  return all;
}

}  // namespace edl::simulate
