// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>

/// A strict reader of OpenMetrics 1.0, as far as edl writes it: https://prometheus.io/docs/specs/om/
namespace openmetrics {

struct family {
  std::string type, unit, help;
};

struct page {
  std::map<std::string, family> families;
  std::map<std::string, double> samples;  ///< by name and labels, as they stand in the text
};

/// Throws std::runtime_error with the line that breaks a rule.
inline page parse(std::string const& text) {
  static std::regex const name("[a-zA-Z_:][a-zA-Z0-9_:]*"), meta("# (TYPE|UNIT|HELP) ([^ ]+) (.*)"),
      sample("([a-zA-Z_:][a-zA-Z0-9_:]*)(\\{(.*)\\})? (-?[0-9][-+.0-9e]*|NaN|[-+]Inf)"),
      labels(
          "([a-zA-Z_][a-zA-Z0-9_]*=\"([^\"\\\\\n]|\\\\[\\\\\"n])*\")(,[a-zA-Z_][a-zA-Z0-9_]*=\"([^\"\\\\\n]|"
          "\\\\[\\\\\"n])*\")*");
  page out;
  std::istringstream in(text);
  std::string line, current, last_bucket;
  bool ended = false, samples_began = false;
  double last_count = 0;
  auto const want = [&](bool holds, char const* rule) {
    if (!holds) throw std::runtime_error(std::string(rule) + ": " + line);
  };
  want(text.ends_with("# EOF\n"), "the text ends with '# EOF' and a line feed");
  while (std::getline(in, line)) {
    want(!ended, "nothing follows '# EOF'");
    std::smatch m;
    if (line == "# EOF") {
      ended = true;
    } else if (std::regex_match(line, m, meta)) {
      std::string const of = m[2];
      want(std::regex_match(of, name), "a family has a name");
      if (of != current) {
        want(!out.families.contains(of), "a family's lines stand together");
        current = of, samples_began = false, last_bucket.clear();
      }
      want(!samples_began, "metadata stands before samples");
      family& f = out.families[of];
      std::string& field = m[1] == "TYPE" ? f.type : m[1] == "UNIT" ? f.unit : f.help;
      want(field.empty(), "metadata is told once");
      field = m[3];
      want(!field.empty(), "metadata says something");
      if (m[1] == "UNIT") want(of.ends_with("_" + field), "a family's name ends with its unit");
      if (m[1] == "TYPE")
        want(std::set<std::string>{"counter", "gauge", "histogram", "info"}.contains(field),
             "a type is known");
    } else {
      want(std::regex_match(line, m, sample), "a line is metadata or a sample");
      want(!current.empty() && !out.families[current].type.empty(), "a sample has a family with a type");
      family const& f = out.families[current];
      std::string const of = m[1];
      want(of.starts_with(current), "a sample belongs to the family above it");
      std::string const suffix = of.substr(current.size());
      std::set<std::string> const may = f.type == "counter" ? std::set<std::string>{"_total"}
                                        : f.type == "info"  ? std::set<std::string>{"_info"}
                                        : f.type == "histogram"
                                            ? std::set<std::string>{"_bucket", "_sum", "_count"}
                                            : std::set<std::string>{""};
      want(may.contains(suffix), "a sample ends as its type wants");
      std::string const of_labels = m[3];
      want(!m[2].matched || std::regex_match(of_labels, labels), "labels are names and quoted values");
      std::string const text_of_value = m[4];
      double const value =
          text_of_value == "NaN" ? std::numeric_limits<double>::quiet_NaN() : std::stod(text_of_value);
      want(f.type != "counter" || value >= 0, "a counter is not negative");
      want(f.type != "info" || value == 1, "an info is 1");
      if (suffix == "_bucket") {
        auto const le = of_labels.rfind("le=\"");
        want(le != of_labels.npos, "a bucket has a bound");
        std::string const series = of_labels.substr(0, le), bound = of_labels.substr(le + 4);
        want(bound == "+Inf\"" || bound.find('.') != bound.npos || bound.find('e') != bound.npos,
             "a bound is written as a float");
        want(series != last_bucket || value >= last_count, "buckets are cumulative");
        last_bucket = series, last_count = value;
      }
      want(out.samples.emplace(of + (m[2].matched ? m[2].str() : ""), value).second, "a sample is told once");
      samples_began = true;
    }
  }
  line.clear();
  want(ended, "the text ends");
  return out;
}

}  // namespace openmetrics
