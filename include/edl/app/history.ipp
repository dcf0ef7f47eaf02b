// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "edl/app/history.hpp"
#include "edl/base/bucket/cache.hpp"
#include "edl/base/checkpoint/directory.hpp"
#include "edl/base/checkpoint/manifest.hpp"
#include "edl/core/chart.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/input_file.hpp"
#include "edl/core/json.hpp"
#include "edl/core/printable.hpp"
#include "edl/job/train/observe/history_log.hpp"

namespace edl::app {
namespace detail {

inline constexpr std::uint64_t longest_history_text = 256u << 20;  // bytes
inline constexpr std::size_t most_columns = 1000, most_values = 32u << 20;
inline constexpr std::string_view of_metrics = "metrics.";
inline constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

/// The name of the job's checkpoints, or else of the directory.
inline std::string job_of(bucket::place const& directory) {
  try {
    if (auto const newest = checkpoint::newest_valid(directory, checkpoint::check::sizes))
      return checkpoint::read_manifest(directory.at(*newest)).job;
  } catch (std::exception const&) {  // a missing name is not worth an error
  }
  std::error_code unknown;
  auto const whole = std::filesystem::absolute(directory.path(), unknown).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

inline double number_of(nlohmann::ordered_json const& value) {
  return value.is_number() ? value.get<double>() : no_value;
}

/// The index of the column with this name.
inline std::optional<std::size_t> column_of(history const& h, std::string_view name) {
  auto const it = std::ranges::find(h.columns, name);
  if (it == h.columns.end()) return std::nullopt;
  return std::size_t(it - h.columns.begin());
}

/// False: there is no room for another column.
inline bool put(history& h, history::row& into, std::string const& name, double value) {
  auto const known = column_of(h, name);
  if (!known && h.columns.size() >= most_columns) return false;
  std::size_t const at = known.value_or(h.columns.size());
  if (!known) h.columns.push_back(name);
  into.values.resize(std::max(into.values.size(), at + 1), no_value);
  if (std::isnan(into.values[at])) into.values[at] = value;
  return true;
}

inline double value(history::row const& r, std::size_t column) {
  return column < r.values.size() ? r.values[column] : no_value;
}

/// Whether a column carries no information, so that a person need not see it.
inline bool says_nothing(history const& h, std::size_t column) {
  bool const counts = h.columns[column] == "servers" || h.columns[column] == "lost" ||
                      h.columns[column] == "repeated" || h.columns[column] == "recovered";
  return std::ranges::all_of(h.rows, [&](history::row const& r) {
    double const v = value(r, column);
    return std::isnan(v) || (counts && v == 0);
  });
}

inline std::string time_cell(double v) {
  auto const seconds = std::time_t(std::clamp(v, 0.0, 1e11));
  std::tm at{};
  ::gmtime_r(&seconds, &at);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%F %T", &at)};
}

/// A column's numbers, all with the same number of decimals: as many as give the smallest number four digits.
/// If the numbers differ too much for that, or are too large, all use scientific notation.
inline std::vector<std::string> number_cells(std::vector<double> const& values) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  bool whole = true;
  for (double const v : values) {
    if (!std::isfinite(v)) continue;
    whole = whole && std::trunc(v) == v;
    most = std::max(most, std::abs(v));
    if (v != 0) least = std::min(least, std::abs(v));
  }
  bool const powers =
      most >= (whole ? 1e15 : 1e9) || (!whole && most / least >= 1e6) || (most > 0 && most < 1e-6);
  int decimals = whole || powers ? 0 : std::clamp(3 - int(std::floor(std::log10(least))), 0, 12);
  auto const text = [&](double v) {
    return std::isnan(v) ? "-" : powers ? fmt::format("{:.3e}", v) : fmt::format("{:.{}f}", v, decimals);
  };
  auto const ends_in_zero = [&](double v) { return !std::isfinite(v) || text(v).ends_with('0'); };
  while (decimals > 0 && std::ranges::all_of(values, ends_in_zero)) --decimals;
  std::vector<std::string> cells;
  for (double const v : values) cells.push_back(text(v));
  return cells;
}

inline std::string heading(std::string const& column) {
  if (column == "time") return "TIME (UTC)";
  std::string text = column.starts_with(of_metrics) ? column.substr(of_metrics.size()) : column;
  std::ranges::transform(text, text.begin(), [](char c) { return char(std::toupper((unsigned char)(c))); });
  // Of two columns with one name the second belongs to the validation data.
  return column == "metrics.loss" ? "VALIDATION " + text : text;
}

inline std::string table_of(history const& h) {
  std::vector<std::vector<std::string>> rows{{"STEP"}};
  for (history::row const& r : h.rows) rows.emplace_back(1, std::to_string(r.step));
  for (std::size_t c = 0; c < h.columns.size(); ++c) {
    if (says_nothing(h, c)) continue;
    std::vector<double> values;
    for (history::row const& r : h.rows) values.push_back(value(r, c));
    std::vector<std::string> cells;
    if (h.columns[c] == "time")
      for (double const v : values) cells.push_back(std::isnan(v) ? "-" : time_cell(v));
    else
      cells = number_cells(values);
    rows[0].push_back(heading(h.columns[c]));
    for (std::size_t i = 0; i < cells.size(); ++i) rows[i + 1].push_back(std::move(cells[i]));
  }
  std::vector<std::size_t> widths(rows[0].size());
  for (auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = printable(row[i]);
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string out;
  for (auto const& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      out += fmt::format("{}{:>{}}", i ? "  " : "", row[i], widths[i]);
    out += '\n';
  }
  return out;
}

inline std::string csv_cell(std::string const& text) {
  if (text.find_first_of(",\"\n\r") == text.npos) return text;
  std::string out = "\"";
  for (char const c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

inline std::string csv_of(history const& h) {
  std::string out = "step";
  for (std::string const& c : h.columns) out += "," + csv_cell(printable(c));
  for (history::row const& r : h.rows) {
    out += fmt::format("\n{}", r.step);
    for (std::size_t c = 0; c < h.columns.size(); ++c) {
      double const v = value(r, c);
      out += std::isnan(v) ? "," : fmt::format(",{}", v);
    }
  }
  return out + "\n";
}

inline chart::line line_of(history const& h, std::size_t column, std::string name, double smooth = 0) {
  chart::line l{.name = std::move(name), .points = {}};
  double sum = 0, weight = 0;
  for (history::row const& r : h.rows) {
    double const v = value(r, column);
    if (std::isnan(v)) continue;
    sum = smooth * sum + (1 - smooth) * v, weight = smooth * weight + (1 - smooth);
    l.points.emplace_back(double(r.step), smooth > 0 ? sum / weight : v);
  }
  return l;
}

}  // namespace detail

EDL_INLINE history history_from(std::string_view text, std::string const& job) {
  history h{.job = job, .columns = {}, .rows = {}, .lines = {}, .notes = {}};
  std::map<std::uint64_t, history::row> rows;
  std::size_t number = 0, none = 0, first_none = 0, values = 0, no_room = 0;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // an editor's byte order mark
  for (std::size_t at = 0; at < text.size();) {
    std::size_t const end = std::min(text.find('\n', at), text.size());
    std::string_view const line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    auto const o = nested_too_deeply(line)
                       ? nlohmann::ordered_json(nlohmann::ordered_json::value_t::discarded)
                       : nlohmann::ordered_json::parse(line, nullptr, false);
    if (!o.is_object() || !o.contains("step") || !o["step"].is_number_unsigned()) {
      if (none++ == 0) first_none = number;
      continue;
    }
    auto const step = o["step"].get<std::uint64_t>();
    history::row& into = rows[step];
    into.step = step;
    values -= into.values.size();
    for (auto const& [name, value] : o.items())
      if (name == "metrics" && value.is_object())
        for (auto const& [metric, v] : value.items())
          no_room += !detail::put(h, into, std::string(detail::of_metrics) + metric, detail::number_of(v));
      else if (name != "step" && value.is_primitive())
        no_room += !detail::put(h, into, name, detail::number_of(value));
    // A row has room for all columns up to its last one.
    values += into.values.size();
    if (values > detail::most_values)
      throw error(fmt::format("a history has at most {} values", detail::most_values));
    h.lines.emplace_back(line);
  }
  for (auto& [step, row] : rows) h.rows.push_back(std::move(row));
  if (no_room > 0)
    h.notes.push_back(fmt::format("{} of further columns {} left out: at most {} fit",
                                  counted(no_room, "value"), no_room == 1 ? "is" : "are",
                                  detail::most_columns));
  if (none > 0)
    h.notes.push_back(fmt::format("{} of no history {} left out, the first is line {}", counted(none, "line"),
                                  none == 1 ? "is" : "are", first_none));
  return h;
}

EDL_INLINE history read_history(std::string const& path) {
  std::error_code unknown;
  bool const is_file = std::filesystem::is_regular_file(path, unknown) ||
                       (bucket::names_objects(path) && path.ends_with(".jsonl"));
  std::string const file = is_file ? path : train::history_path(path);
  auto const slash = file.rfind('/');
  bucket::place const directory(slash == file.npos ? "." : file.substr(0, slash));
  auto const found = directory.read(file.substr(slash + 1), detail::longest_history_text);
  if (!found && !is_file)
    throw error(
        fmt::format("{} has no history.jsonl: give the --checkpoint_dir of a job that has trained; a job "
                    "without --checkpoint_dir keeps no history",
                    path));
  if (!found) throw error(fmt::format("{}: no such file", file));
  history h = history_from(found->content, detail::job_of(directory));
  for (std::string& note : h.notes) note = file + ": " + note;
  if (h.rows.empty()) throw error(fmt::format("{} has no line of a history", file));
  return h;
}

EDL_INLINE std::string to_text(history const& h, std::string const& format) {
  if (format == "csv") return detail::csv_of(h);
  if (format != "json") return detail::table_of(h);
  std::string out;
  for (std::string const& line : h.lines) out += (out.empty() ? "[" : ",\n ") + line;
  return out.empty() ? "[]\n" : out + "]\n";
}

EDL_INLINE std::string to_picture(std::span<history const> all, double smooth) {
  bool const one = all.size() == 1;
  chart c{.title = one ? all[0].job + ": training" : "Trainings", .x_name = "step", .panels = {}};
  // One line for each history that has the column.
  auto const lines = [&](std::string const& column, std::string const& what, bool smoothed) {
    std::vector<chart::line> made;
    for (history const& h : all)
      if (auto const at = detail::column_of(h, column); at && !detail::says_nothing(h, *at))
        made.push_back(detail::line_of(h, *at,
                                       one            ? what
                                       : what.empty() ? h.job
                                                      : h.job + ", " + what,
                                       smoothed ? smooth : 0));
    return made;
  };
  auto const add = [&](std::string const& column, std::string const& name, bool smoothed = false) {
    if (auto made = lines(column, one ? name : "", smoothed); !made.empty())
      c.panels.push_back({.name = name, .lines = std::move(made)});
  };
  if (auto made = lines("loss", "training, mean", true); !made.empty()) {
    auto validation = lines("metrics.loss", "validation", true);
    if (validation.empty())
      add("loss", "training loss, mean", true);
    else
      c.panels.push_back({.name = "loss", .lines = std::move(made)});
    std::ranges::move(validation, std::back_inserter(c.panels.back().lines));
  }
  std::vector<std::string> metrics;
  for (history const& h : all)
    for (std::string const& column : h.columns)
      if (column.starts_with(detail::of_metrics) && (column != "metrics.loss" || c.panels.empty()) &&
          std::ranges::find(metrics, column) == metrics.end())
        metrics.push_back(column);
  for (std::string const& column : metrics)
    add(column, column.substr(detail::of_metrics.size()) + ", validation", true);
  add("learning_rate", "learning rate");
  add("records_per_s", "records per second");
  if (!c.panels.empty() && c.panels.back().name == "records per second") c.panels.back().least = 0;
  chart::panel members{.name = "members, number", .lines = {}, .least = 0};
  for (char const* const column : {"workers", "servers"})
    std::ranges::move(lines(column, column, false), std::back_inserter(members.lines));
  for (chart::line& l : members.lines) l.steps = true;
  if (one && members.lines.size() == 1) members.name = members.lines[0].name + ", number";
  // A constant single worker is not worth a panel.
  if (std::ranges::any_of(members.lines,
                          [](chart::line const& l) {
                            return std::ranges::any_of(l.points, [](auto const& p) { return p.second != 1; });
                          }) ||
      members.lines.size() > all.size())
    c.panels.push_back(std::move(members));
  if (c.panels.empty())
    throw error(fmt::format("{} nothing to draw: no loss, no metric, no speed",
                            one ? "the history of " + all[0].job + " has" : "these histories have"));
  return to_svg(c);
}

EDL_INLINE void show(std::span<history const> all, std::string const& format, std::string const& picture,
                     double smooth) {
  for (history const& h : all)
    for (std::string const& note : h.notes) fmt::print(stderr, "{}\n", printable(note));
  if (picture.empty() && all.size() > 1)
    throw usage_error("several histories are drawn into one picture: add --plot=FILE.svg, or name one");
  if (picture.empty()) return fmt::print("{}", to_text(all[0], format));
  if (format != "table")
    throw usage_error(fmt::format("--plot={} draws instead of printing {}: run the command once for each",
                                  printable(picture), format));
  if (std::string const end = std::filesystem::path(picture).extension(); !end.empty() && end != ".svg")
    throw usage_error(
        fmt::format("--plot={}: the picture is SVG: give a name that ends in .svg", printable(picture)));
  std::error_code unknown;
  if (std::filesystem::is_directory(picture, unknown))
    throw usage_error(
        fmt::format("--plot={}: that is a directory; name a file in it, as history.svg", printable(picture)));
  if (std::filesystem::is_symlink(picture, unknown))
    throw usage_error(fmt::format(
        "--plot={}: that is a link, which the picture would replace; name its target", printable(picture)));
  replace_file(picture, to_picture(all, smooth), forced::nothing);
  std::uint64_t last = 0;
  for (history const& h : all) last = std::max(last, h.rows.back().step);
  if (all.size() > 1)
    return fmt::print("{}: {}, up to step {}\n", printable(picture),
                      counted(all.size(), "training", "trainings"), last);
  fmt::print("{}: {}, up to step {}\n", printable(picture), counted(all[0].rows.size(), "step"), last);
}

EDL_INLINE void show(history_request const& what) {
  std::vector<history> all;
  for (std::string const& path : what.paths) {
    all.push_back(read_history(path));
    if (what.paths.size() > 1) all.back().job = path;  // jobs may share a name
  }
  show(all, what.format, what.picture, what.smooth);
}

EDL_INLINE double smoothing_of(cli::command_line const& l) {
  if (l.given("smooth") && l.text("plot").empty())
    throw usage_error("--smooth applies to a picture: add --plot=FILE.svg");
  return cli::parse_number<double>(l.text("smooth"));
}

EDL_INLINE std::vector<cli::flag> history_flags(std::string const& format_flag) {
  return {
      {.name = format_flag,
       .fallback = "table",
       .help = "how to print it",
       .aliases = {"o"},
       .choices = {"table", "json", "csv"}},
      {.name = "plot", .help = "draw it instead, or several in one picture: the picture's file (SVG)"},
      {.name = "smooth",
       .fallback = "0",
       .help = "with --plot: draw losses and metrics as means over the values before, as TensorBoard does; "
               "0: as they are, 0.9: rather smooth",
       .type = cli::flag::value_type::number,
       .lowest = 0,
       .highest = 0.999}};
}

}  // namespace edl::app
