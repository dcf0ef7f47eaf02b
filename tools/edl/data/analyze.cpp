// SPDX-License-Identifier: Apache-2.0
#include "data/analyze.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "common/columns.hpp"
#include "common/fields.hpp"
#include "common/paths.hpp"
#include "common/table.hpp"
#include "data/data.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/compute/features/statistics.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/printable.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// Boundaries of `buckets` buckets with about as many values each; fewer where values repeat.
std::vector<double> boundaries_of(column const& c, std::size_t buckets) {
  std::vector<double> sorted = c.sampled, found;
  std::ranges::sort(sorted);
  for (std::size_t b = 1; b < buckets && !sorted.empty(); ++b) {
    double const x = sorted[b * sorted.size() / buckets];
    if (x > c.min && (found.empty() || x > found.back())) found.push_back(x);
  }
  return found;
}

json statistics_of(column const& c, std::size_t buckets) {
  auto const blank = c.words.find("");  // an empty text says as much as none
  std::uint64_t const blanks = blank == c.words.end() ? 0 : blank->second;
  json j{{"records", c.records - blanks}, {"values", c.values - blanks}};
  j["kind"] = c.kind == example::kind::floats     ? "floats"
              : c.kind == example::kind::integers ? "integers"
              : c.kind == example::kind::strings  ? "bytes"
                                                  : "empty";
  if (c.kind == example::kind::floats) j["not_finite"] = c.not_finite;
  if (c.is_number()) {
    bool const whole = c.kind == example::kind::integers;
    j["min"] = whole ? json(c.least) : json(c.min);
    j["max"] = whole ? json(c.most) : json(c.max);
    j["mean"] = c.mean;
    j["stddev"] = c.deviation();
    j["boundaries"] = boundaries_of(c, buckets);
  }
  if (c.countable && !c.words.empty()) j["distinct"] = c.words.size() - (blanks > 0);
  return j;
}

/// Floats have 9 digits at most; whole numbers keep theirs.
std::string number(double x) {
  return x == std::trunc(x) && std::abs(x) < 1e15 ? fmt::format("{:.0f}", x) : fmt::format("{:.9g}", x);
}

/// Writes statistics.env and the vocabularies.
void write(columns const& all, std::size_t buckets, std::string const& directory) {
  std::error_code failure;
  if (fs::exists(directory, failure) && !fs::is_empty(directory, failure))
    throw error(fmt::format("{}: already exists; remove it, or write elsewhere", directory));
  fs::path const last = fs::absolute(directory).lexically_normal();
  std::string const path = (last.has_filename() ? last : last.parent_path()).string();
  if (path.find_first_of(" \t\n\"'$\\`;&|<>()*?#~") != path.npos)
    throw usage_error(
        fmt::format("--to={}: a shell reads the path in statistics.env: choose one without blanks "
                    "and signs of the shell's",
                    directory));
  durable_directory out(path);
  std::map<std::string, std::string> names;  // of variables, and the features that have them
  auto const put = [&](std::string const& name, std::string const& text) {
    replace_file(out.temporary() + "/" + name, text);
  };
  std::string lines;
  for (auto const& [name, c] : all) {
    std::string const plain = features::variable_name(name);
    if (auto const [other, is_new] = names.emplace(plain, name); !is_new)
      throw data_error(
          fmt::format("features '{}' and '{}' would have the same variables, '_{}_…': rename one",
                      other->second, name, plain));
    auto const line = [&](std::string_view what, std::string const& value) {
      lines += fmt::format("_{}_{}={}\n", plain, what, value);
    };
    if (c.is_number()) {
      bool const whole = c.kind == example::kind::integers;
      line("min", whole ? std::to_string(c.least) : number(c.min));
      line("max", whole ? std::to_string(c.most) : number(c.max));
      line("avg", number(c.mean));
      line("stddev", number(c.deviation()));
      std::vector<std::string> texts;
      for (double const b : boundaries_of(c, buckets)) texts.push_back(number(b));
      if (!texts.empty()) line("boundaries", fmt::format("{}", fmt::join(texts, ",")));
    }
    if (!c.countable || c.words.empty()) continue;
    line("distinct_count", fmt::format("{}", c.words.size()));
    if (c.kind != example::kind::strings) continue;
    put(plain + ".txt", fmt::format("{}\n", fmt::join(vocabulary_of(c), "\n")));
    line("vocab", fmt::format("{}/{}.txt", path, plain));
  }
  put("statistics.env", lines);
  out.commit();
}

}  // namespace

std::vector<flag> analyze_flags() {
  std::vector<flag> all{
      {.name = "to", .help = "directory to write statistics.env and the vocabularies into"},
      {.name = "buckets",
       .fallback = "10",
       .help = "buckets of about as many values each, for the boundaries",
       .type = flag::value_type::whole,
       .least = 2,
       .most = 1024},
      {.name = "most_words",
       .fallback = "1000000",
       .help = "distinct values of a feature that are counted; one with more has no vocabulary",
       .type = flag::value_type::whole,
       .least = 1,
       .most = 100'000'000},
      output_flag()};
  std::ranges::move(source_flags(), std::back_inserter(all));
  return all;
}

int analyze(words const& line) {
  command_line const l("data analyze", analyze_flags(), line, 1, 1, "the path of the records");
  std::string const& path = l.arguments()[0];
  if (bucket::names_objects(l.text("to")))
    throw usage_error(
        fmt::format("--to={}: models read the vocabularies as files: name a directory", l.text("to")));
  auto const buckets = std::size_t(l.number("buckets"));
  columns const all =
      read_columns(*open_records(path, source_options_of(l)), std::size_t(l.number("most_words")));
  if (all.empty()) throw data_error(fmt::format("{}: no records to analyze", path));
  json list = json::array();
  for (auto const& [name, c] : all) {
    list.push_back(statistics_of(c, buckets));
    list.back()["name"] = printable(name, 64);
  }
  if (l.text("output") != "table") {
    fmt::print("{}", to_text({{"path", path}, {"features", list}}, l.text("output")));
  } else {
    std::vector<words> rows{
        {"FEATURE", "KIND", "RECORDS", "MIN", "MAX", "NOT FINITE", "MEAN", "STDDEV", "DISTINCT"}};
    auto const of = [](json const& f, char const* key) {
      return !f.contains(key)             ? std::string("-")
             : f[key].is_number_integer() ? f[key].dump()
                                          : fmt::format("{:.9g}", f[key].get<double>());
    };
    for (json const& f : list)
      rows.push_back({text_at(f, "/name"), text_at(f, "/kind"), text_at(f, "/records"), of(f, "min"),
                      of(f, "max"), text_at(f, "/not_finite", "-"), of(f, "mean"), of(f, "stddev"),
                      text_at(f, "/distinct", "-")});
    fmt::print("{}", to_table(rows));
  }
  std::fflush(stdout);
  for (auto const& [name, c] : all)
    if (c.kind == example::kind::strings && !c.countable)
      fmt::print(stderr, "edl: feature '{}' has no vocabulary: {}\n", printable(name, 64),
                 c.odd > 0 ? c.odd_one : "it has more words than --most_words");
  if (!l.text("to").empty()) write(all, buckets, l.text("to"));
  return done;
}

}  // namespace edl::tool
