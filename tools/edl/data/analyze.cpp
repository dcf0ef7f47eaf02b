// SPDX-License-Identifier: Apache-2.0
#include "data/analyze.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>

#include "common/fields.hpp"
#include "common/table.hpp"
#include "data/data.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/compute/features/statistics.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/random.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// Values of a feature that are kept, of many, each with the same chance, to cut them into buckets.
constexpr std::size_t most_sampled = 65'536;

/// A text that is longer is no word of a vocabulary.
constexpr std::size_t longest_word = 256;

/// What has been seen of one feature.
struct column {
  example::kind kind = example::kind::none;
  std::uint64_t records = 0, values = 0, not_finite = 0;
  double min = std::numeric_limits<double>::infinity(), max = -min;
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = -least - 1;  // of integers
  double mean = 0, squares = 0;  // of the values, and of what they differ from it
  std::vector<double> sampled;
  std::unordered_map<std::string, std::uint64_t> words;  // texts and whole numbers, and how often they stand
  bool countable = true;                                 // all of its values are among the words

  void take(double x, random_stream const& random) {
    if (!std::isfinite(x)) {
      ++not_finite;
      return;
    }
    ++values;
    min = std::min(min, x);
    max = std::max(max, x);
    double const before = x - mean;  // Welford, 1962
    mean += before / double(values);
    squares += before * (x - mean);
    if (sampled.size() < most_sampled)
      sampled.push_back(x);
    else if (std::uint64_t const at = random.below(values, values); at < most_sampled)
      sampled[at] = x;  // Vitter's algorithm R, 1985
  }

  void count(std::string_view word, std::size_t most) {
    if (!countable) return;
    // A file of words has one a line, without blanks at its ends.
    bool const is_word = word.size() <= longest_word && printable(word, longest_word) == word &&
                         !word.starts_with(' ') && !word.ends_with(' ');
    if (auto const it = words.find(std::string(word)); it != words.end())
      ++it->second;
    else if (is_word && words.size() < most)
      words.emplace(word, 1);
    else
      countable = false;
    if (!countable) words = {};
  }

  bool is_number() const { return kind != example::kind::strings && values > 0; }
  double deviation() const { return std::sqrt(squares / double(std::max<std::uint64_t>(values, 1))); }
};

using columns = std::map<std::string, column, std::less<>>;

columns read_columns(data::source const& from, std::size_t most_words) {
  columns all;
  auto const in = from.open();
  example record;
  random_stream const random(1);
  std::uint64_t done = 0;
  std::uint64_t const records = data::records(from);
  for (std::size_t s = 0; s < from.shards().size(); ++s)
    for (std::uint64_t i = 0; i < from.shards()[s].records; ++i) {
      in->read(s, i, record);
      for (std::size_t f = 0; f < record.size(); ++f) {
        std::string_view const name = record.name(f);
        auto it = all.find(name);
        if (it == all.end()) it = all.emplace(name, column{.kind = record.kind_of(f)}).first;
        column& c = it->second;
        if (record.kind_of(f) != c.kind && record.kind_of(f) != example::kind::none)
          throw data_error(fmt::format("{}: record {}: feature '{}' is of another kind than before",
                                       from.shards()[s].name, i, printable(name, 64)));
        ++c.records;
        if (c.kind == example::kind::floats) {
          for (float const x : record.float_values(name)) c.take(x, random);
        } else if (c.kind == example::kind::integers) {
          for (std::int64_t const x : record.integer_values(name)) {
            c.take(double(x), random);
            c.least = std::min(c.least, x), c.most = std::max(c.most, x);
            c.count(fmt::format_int(x).str(), most_words);
          }
        } else if (c.kind == example::kind::strings) {
          c.values += record.count(name);
          for (std::size_t k = 0; k < record.count(name); ++k) c.count(record.bytes(name, k), most_words);
        }
      }
      if (++done % 100'000 == 0 && ::isatty(2) == 1) fmt::print(stderr, "\r{}/{} records", done, records);
    }
  if (done >= 100'000 && ::isatty(2) == 1) fmt::print(stderr, "\r{}/{} records\n", done, records);
  return all;
}

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

/// The words, the most frequent first.
std::vector<std::string> vocabulary_of(column const& c) {
  std::vector<std::pair<std::string, std::uint64_t>> sorted(c.words.begin(), c.words.end());
  std::ranges::sort(sorted, [](auto const& a, auto const& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<std::string> words;
  for (auto& [word, times] : sorted) words.push_back(std::move(word));
  return words;
}

json statistics_of(column const& c, std::size_t buckets) {
  json j{{"records", c.records}, {"values", c.values}};
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
  if (c.countable && !c.words.empty()) j["distinct"] = c.words.size();
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
    throw error(fmt::format("{}: is there already; remove it, or write elsewhere", directory));
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
  return {{.name = "to", .help = "directory to write statistics.env and the vocabularies into"},
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
          output_flag(),
          format_flag()};
}

int analyze(words const& line) {
  command_line const l("data analyze", analyze_flags(), line, 1, 1, "the path of the records");
  std::string const& path = l.arguments()[0];
  auto const buckets = std::size_t(l.number("buckets"));
  columns const all =
      read_columns(*data::open_source(path, {.as = format_of(l)}), std::size_t(l.number("most_words")));
  if (all.empty()) throw data_error(fmt::format("{}: there are no records to analyze", path));
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
      fmt::print(stderr,
                 "edl: feature '{}' has no vocabulary: its values are no words, or more than --most_words\n",
                 printable(name, 64));
  if (!l.text("to").empty()) write(all, buckets, l.text("to"));
  return done;
}

}  // namespace edl::tool
