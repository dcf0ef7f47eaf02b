// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "edl/app/sweep_plan.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/random.hpp"
#include "edl/core/text.hpp"

namespace edl::app {
namespace detail {

inline constexpr std::size_t most_trials = 10'000;
inline constexpr std::size_t longest_failure = 1000;  // characters
inline constexpr std::uint64_t most_attempts = 10'000;

struct named_text {
  std::string name, text;
};

inline named_text split_name(char const* flag, std::string const& given) {
  auto const at = given.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == given.size())
    throw usage_error(fmt::format(
        "--{}={}: expected name={}", flag, given,
        std::string_view(flag) == "grid" ? "value,value,…" : "from:to, followed by :log or :whole"));
  // ';' separates the values that the runs receive in one text.
  if (given.find(';') != std::string::npos)
    throw usage_error(
        fmt::format("--{}={}: no name and no value may have a ';'; give --{} once for each hyperparameter",
                    flag, given, flag));
  return {given.substr(0, at), given.substr(at + 1)};
}

/// The values of a grid; none may be empty.
inline cli::words values_of(std::string const& given, std::string const& text) {
  if (text.starts_with(',') || text.ends_with(',') || text.find(",,") != std::string::npos)
    throw usage_error(fmt::format("--grid={}: a value is empty: expected name=value,value,…", given));
  return cli::split(text, ',');
}

/// The interval of a drawn value.
struct interval {
  std::string name;
  double from = 0, to = 0;
  bool log = false, whole = false;
};

inline interval interval_of(std::string const& given, std::optional<train::hyperparameters> const& known) {
  auto const [name, text] = split_name("random", given);
  cli::words const parts = cli::split(text, ':');
  interval i{.name = name};
  auto const number = [&](std::string const& s) {
    auto const n = number_from<double>(s);
    if (!n || !std::isfinite(*n))
      throw usage_error(fmt::format("--random={}: '{}' is not a number", given, s));
    return *n;
  };
  auto const wrong = [&] {
    return usage_error(fmt::format("--random={}: expected name=from:to, followed by :log or :whole", given));
  };
  if (parts.size() < 2) throw wrong();
  i.from = number(parts[0]), i.to = number(parts[1]);
  for (std::size_t p = 2; p < parts.size(); ++p) {
    bool& is = parts[p] == "log" ? i.log : i.whole;
    if ((parts[p] != "log" && parts[p] != "whole") || std::exchange(is, true)) throw wrong();
  }
  if (i.from > i.to || (i.log && i.from <= 0))
    throw usage_error(
        fmt::format("--random={}: expected from ≤ to{}", given, i.log ? ", and more than 0" : ""));
  for (cli::flag const& f : known.value_or(train::hyperparameters()))
    if (f.name == name) i.whole |= f.type == cli::flag::value_type::whole;
  constexpr double most = 1e15;  // a double holds every whole number up to here
  if (i.whole && (std::ceil(i.from) > std::floor(i.to) || i.from < -most || i.to > most))
    throw usage_error(fmt::format("--random={}: no whole number that can be drawn lies between {} and {}",
                                  given, i.from, i.to));
  return i;
}

/// A function of the seed, the trial and the name alone, so a sweep with more trials begins with the same
/// ones.
inline std::string drawn(interval const& i, std::uint64_t seed, std::size_t trial) {
  std::uint64_t of_name = 0;
  for (char const c : i.name) of_name = mix(of_name, std::uint64_t(static_cast<unsigned char>(c)));
  double const u = double(mix(mix(seed, trial), of_name) >> 11) / double(std::uint64_t{1} << 53);
  double const x = i.log ? std::exp(std::log(i.from) + u * (std::log(i.to) - std::log(i.from)))
                         : i.from + u * (i.to - i.from);
  if (!i.whole) return fmt::format("{:.6g}", std::clamp(x, i.from, i.to));
  return fmt::format("{}", std::int64_t(std::clamp(std::round(x), std::ceil(i.from), std::floor(i.to))));
}

}  // namespace detail

EDL_INLINE std::vector<cli::flag> sweep_flags() {
  using enum cli::flag::value_type;
  return {
      {.name = "by", .help = "METRIC[:max|min] by which trials are ranked", .needed = true},
      {.name = "grid",
       .help = "name=value,value,…: a hyperparameter with these values; several: all combinations",
       .repeats = true},
      {.name = "random",
       .help = "name=from:to, drawn between these; with :log appended, equal chances of each order of "
               "magnitude, with :whole whole numbers; needs --trials",
       .repeats = true},
      {.name = "trials",
       .fallback = "0",
       .help = "trials to draw for --random",
       .type = whole,
       .least = 0,
       .most = 10'000},
      {.name = "halving",
       .fallback = "0",
       .help = "successive halving: each round goes on with the best of so many trials, for so many times "
               "the steps; 0: all run to --max_step",
       .type = whole,
       .least = 0,
       .most = 100},
      {.name = "first_steps",
       .fallback = "0",
       .help = "steps of the first round; 0: an eighth of --max_step",
       .type = whole,
       .least = 0}};
}

EDL_INLINE sweep_options sweep_options_of(cli::command_line const& l) {
  return {.grid = l.all("grid"),
          .random = l.all("random"),
          .set = l.all("set"),
          .trials = std::uint32_t(l.number("trials")),
          .seed = std::uint64_t(l.number("seed")),
          .steps = std::uint64_t(l.number("max_step")),
          .halving = std::uint32_t(l.number("halving")),
          .first_steps = std::uint64_t(l.number("first_steps"))};
}

EDL_INLINE std::vector<trial> trials_of(sweep_options const& o,
                                        std::optional<train::hyperparameters> const& known) {
  if (o.grid.empty() && o.random.empty())
    throw usage_error("a sweep needs --grid name=value,value,… or --random name=from:to");
  if (o.random.empty() != (o.trials == 0))
    throw usage_error(
        "--random and --trials go together: --trials is the number of values to draw, --random their range");
  std::vector<trial> all(1);
  train::settings names;
  auto const claim = [&](std::string const& name) {
    if (std::ranges::find(names, name, &train::settings::value_type::first) != names.end())
      throw usage_error(fmt::format("a sweep searches {} twice: give it once", name));
    names.emplace_back(name, "");
  };
  for (std::string const& given : o.grid) {
    auto const [name, text] = detail::split_name("grid", given);
    claim(name);
    std::vector<trial> more;
    for (trial const& t : all)
      for (std::string const& value : detail::values_of(given, text)) {
        more.push_back(t);
        more.back().values.emplace_back(name, value);
        if (more.size() > detail::most_trials)
          throw usage_error(fmt::format("a sweep has at most {} trials", detail::most_trials));
      }
    all = std::move(more);
  }
  std::vector<detail::interval> intervals;
  for (std::string const& given : o.random) {
    intervals.push_back(detail::interval_of(given, known));
    claim(intervals.back().name);
  }
  if (o.trials > 0) {
    if (all.size() * o.trials > detail::most_trials)
      throw usage_error(fmt::format("a sweep has at most {} trials", detail::most_trials));
    std::vector<trial> more;
    for (trial const& t : all)
      for (std::uint32_t n = 0; n < o.trials; ++n) {
        more.push_back(t);
        for (detail::interval const& i : intervals)
          more.back().values.emplace_back(i.name, detail::drawn(i, o.seed, more.size() - 1));
      }
    all = std::move(more);
  }
  train::settings const fixed = train::read_settings(fmt::format("{}", fmt::join(o.set, ";")));
  for (auto const& [name, value] : fixed)
    if (std::ranges::find(names, name, &train::settings::value_type::first) != names.end())
      throw usage_error(
          fmt::format("--set {}={}: the sweep searches {}; give one of the two", name, value, name));
  for (trial const& t : all) {
    if (!known) break;
    train::hyperparameters values = *known;
    train::set(values, fixed);
    train::set(values, t.values);
  }
  return all;
}

EDL_INLINE std::vector<std::uint64_t> rounds_of(sweep_options const& o) {
  if (o.steps == 0) throw usage_error("a sweep needs --max_step=N, the length of a whole run");
  if (o.halving == 0) return {o.steps};
  if (o.halving < 2) throw usage_error("--halving=1: every round would keep all trials; expected 2 or more");
  if (o.first_steps >= o.steps)
    throw usage_error(
        fmt::format("--first_steps={}: a whole run has --max_step={}: give fewer steps, or leave "
                    "--halving out",
                    o.first_steps, o.steps));
  std::uint64_t const first = o.first_steps > 0 ? o.first_steps : std::max<std::uint64_t>(1, o.steps / 8);
  std::vector<std::uint64_t> rounds;
  for (std::uint64_t steps = first; steps < o.steps; steps *= o.halving) {
    rounds.push_back(steps);
    if (steps > o.steps / o.halving) break;
  }
  rounds.push_back(o.steps);
  return rounds;
}

EDL_INLINE std::vector<std::size_t> runs_of(std::size_t round, std::vector<trial> const& all,
                                            sweep_options const& o, monitor const& by) {
  std::vector<std::size_t> runs(all.size());
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i] = i;
  auto const rounds = rounds_of(o);
  for (std::size_t r = 0; r < round; ++r) {
    // The later result of a trial that was promoted says nothing about this round: it was promoted, so it was
    // chosen.
    auto const passed = [&](std::size_t i) { return all[i].steps > rounds[r]; };
    std::erase_if(runs,
                  [&](std::size_t i) { return !all[i].value && all[i].steps >= rounds[r] && !passed(i); });
    if (std::ranges::any_of(runs, [&](std::size_t i) { return all[i].steps < rounds[r]; })) return {};
    std::size_t const most = std::max<std::size_t>(1, (runs.size() + o.halving - 1) / o.halving);
    std::ranges::stable_sort(runs, [&](std::size_t a, std::size_t b) {
      if (passed(a) != passed(b)) return passed(a);
      return !passed(a) && by.better(*all[a].value, *all[b].value);
    });
    runs.resize(std::min(runs.size(), most));
    std::ranges::sort(runs);
  }
  return runs;
}

EDL_INLINE std::optional<std::size_t> best_of(std::vector<trial> const& all, monitor const& by) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].value && (!best || all[i].steps > all[*best].steps ||
                         (all[i].steps == all[*best].steps && by.better(*all[i].value, *all[*best].value))))
      best = i;
  return best;
}

EDL_INLINE std::string table_of(std::vector<trial> const& all, monitor const& by, std::size_t most) {
  std::vector<std::size_t> order(all.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    if (all[a].value.has_value() != all[b].value.has_value()) return all[a].value.has_value();
    if (all[a].steps != all[b].steps) return all[a].steps > all[b].steps;
    return all[a].value && by.better(*all[a].value, *all[b].value);
  });
  std::string text =
      fmt::format("{:>5}  {:>8}  {:>12}  {}\n", "trial", "steps", by.metric, "hyperparameters");
  for (std::size_t i = 0; i < std::min(order.size(), most); ++i) {
    trial const& t = all[order[i]];
    text += fmt::format("{:>5}  {:>8}  {:>12}  {}\n", order[i], t.steps,
                        t.value ? fmt::format("{:.6g}", *t.value) : std::string(t.steps > 0 ? "failed" : "-"),
                        train::write_settings(t.values) + (t.failure.empty() ? "" : "  (" + t.failure + ")"));
  }
  if (order.size() > most) text += fmt::format("and {} more\n", order.size() - most);
  return text;
}

EDL_INLINE std::string to_json(sweep_list const& all) {
  nlohmann::json trials = nlohmann::json::array();
  for (trial const& t : all.trials) {
    trials.push_back({{"hyperparameters", train::write_settings(t.values)},
                      {"steps", t.steps},
                      {"value", t.value ? nlohmann::json(*t.value) : nlohmann::json(nullptr)}});
    // The failure may quote a log, which may contain anything.
    if (!t.failure.empty()) trials.back()["failure"] = printable(t.failure, detail::longest_failure);
    if (t.attempt > 0) trials.back()["attempt"] = t.attempt;
  }
  return nlohmann::json{{"sweep", all.sweep}, {"trials", std::move(trials)}}.dump(1) + "\n";
}

namespace detail {

inline std::uint64_t steps_from(nlohmann::json const& number, std::string const& where) {
  if (!number.is_number_unsigned())
    throw error(fmt::format("{}: a trial has made {} steps: expected a whole number", where,
                            printable(number.dump(), longest_failure)));
  return number.get<std::uint64_t>();
}

inline std::uint32_t attempt_from(nlohmann::json const& of_trial, std::string const& where) {
  nlohmann::json const number = of_trial.value("attempt", nlohmann::json(0u));
  if (!number.is_number_unsigned() || number.get<std::uint64_t>() > most_attempts)
    throw error(fmt::format("{}: a trial has the attempt {}: expected a whole number from 0 to {}", where,
                            printable(number.dump(), longest_failure), most_attempts));
  return number.get<std::uint32_t>();
}

}  // namespace detail

EDL_INLINE sweep_list list_from_json(std::string const& text, std::string const& where) try {
  sweep_list all;
  nlohmann::json const list = parse_json(text);
  if (list.is_discarded())
    throw error(fmt::format("{} is not the list of a sweep's trials: it is {}", where, why_no_json(text)));
  all.sweep = list.at("sweep").get<std::string>();
  for (nlohmann::json const& one : list.at("trials")) {
    trial t{.values = train::read_settings(one.at("hyperparameters").get<std::string>()),
            .steps = detail::steps_from(one.at("steps"), where),
            .value = {},
            .failure = one.value("failure", ""),
            .attempt = detail::attempt_from(one, where)};
    if (!one.at("value").is_null()) t.value = one.at("value").get<double>();
    all.trials.push_back(std::move(t));
  }
  return all;
} catch (nlohmann::json::exception const& e) {
  throw error(fmt::format("{} is not the list of a sweep's trials: {}", where, e.what()));
} catch (usage_error const& e) {
  throw error(fmt::format("{} is not the list of a sweep's trials: {}", where, e.what()));
}

EDL_INLINE void check_steps(sweep_list const& all, std::uint64_t most, std::string const& where) {
  for (trial const& t : all.trials)
    if (t.steps > most)
      throw error(fmt::format("{}: a trial has made {} steps, and a whole run has {}: the file is damaged",
                              where, t.steps, most));
}

}  // namespace edl::app
