// SPDX-License-Identifier: Apache-2.0
#include "zoo/table_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <set>

#include "common/columns.hpp"
#include "common/paths.hpp"
#include "edl/cli/nearest.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/compute/features/date.hpp"
#include "edl/compute/features/statistics.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/printable.hpp"

namespace edl::tool {
namespace {

constexpr std::size_t most_counted = 20'000;  // distinct values of a column
constexpr std::size_t most_words = 100;       // of a vocabulary that stands in the source
constexpr std::size_t most_classes = 100;
constexpr std::size_t minibatch = 32, steps = 3'000;

/// A text as a literal of C++.
std::string literal(std::string_view text) {
  std::string all = "\"";
  for (char const c : text) {
    if (c == '"' || c == '\\')
      all += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      all += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    else
      all += c;
  }
  return all + "\"";
}

/// A column's name as a name of C++, which no other column has.
class names {
 public:
  std::string of(std::string_view column) {
    std::string name = features::variable_name(column);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return char(std::tolower(c)); });
    // Words of the language and of the source around it end in an underscore, as do names that begin with a
    // digit.
    static std::set<std::string> const taken{
        "in",      "ids",         "numbers", "network",   "loss",     "optimizer", "metrics",  "feed",
        "record",  "into",        "m",       "nn",        "features", "edl",       "label",    "classes",
        "row",     "id",          "number",  "date",      "alignas",  "and",       "asm",      "auto",
        "bool",    "break",       "case",    "catch",     "char",     "class",     "const",    "continue",
        "default", "delete",      "do",      "double",    "else",     "enum",      "explicit", "export",
        "extern",  "false",       "float",   "for",       "friend",   "goto",      "if",       "inline",
        "int",     "long",        "mutable", "namespace", "new",      "not",       "operator", "or",
        "private", "protected",   "public",  "register",  "requires", "return",    "short",    "signed",
        "sizeof",  "static",      "struct",  "switch",    "template", "this",      "throw",    "true",
        "try",     "class_names", "typedef", "typename",  "union",    "unsigned",  "using",    "virtual",
        "void",    "volatile",    "while",   "xor",       "main",     "concept",   "std"};
    std::string const plain = name;
    name = "column_" + plain;
    if (!plain.empty() && std::isalpha(static_cast<unsigned char>(plain[0])) &&
        plain.find("__") == plain.npos && !taken.contains(plain))
      name = plain;
    for (std::size_t i = 2; !used_.insert(name).second; ++i) name = fmt::format("{}_{}", plain, i);
    return name;
  }

 private:
  std::set<std::string> used_;
};

/// `words`: the usual ones say, too, that a date is missing.
bool no_date(std::string_view text, bool words) {
  return words ? features::date::missing(text) : text.empty();
}

bool all_dates(column const& c, bool words) {
  bool any = false;
  if (c.kind != example::kind::strings || !c.countable) return false;
  for (auto const& [text, times] : c.words) {
    if (no_date(text, words)) continue;
    if (!features::date::from(text)) return false;
    any = true;
  }
  return any;
}

/// A text that is no date in a column where nine of ten texts are some; null: there is none.
std::string const* stray_among_dates(column const& c, bool words) {
  if (c.kind != example::kind::strings || c.many) return nullptr;
  std::string const* stray = nullptr;
  std::uint64_t dates = 0, others = 0;
  for (auto const& [text, times] : c.words) {
    if (no_date(text, words)) continue;
    bool const date = features::date::from(text).has_value();
    (date ? dates : others) += times;
    if (!date) stray = &text;
  }
  if (c.odd > 0) others += c.odd, stray = &c.odd_one;
  return dates > 9 * others ? stray : nullptr;
}

/// Where nearly each record has a value of its own it names the record.
bool names_records(column const& c) {
  if (c.kind == example::kind::floats || c.records < 20) return false;
  if (c.many) return c.kind == example::kind::strings;
  bool const each_its_own = (c.words.size() + c.odd) * 10 > c.records * 9;
  if (c.kind == example::kind::strings) return each_its_own;
  return each_its_own && double(c.most) - double(c.least) < 1.2 * double(c.records);
}

class writer {
 public:
  writer(std::string const& path, std::string const& label, std::string const& missing, columns const& all,
         std::uint64_t records)
      : path_(path),
        label_(label),
        all_(all),
        of_(all.at(label)),
        words_(missing == "auto"),
        records_(records) {
    if (!words_) made_.missing = " " + shell_line({"--missing=" + missing});
  }

  table_model make() {
    made_.name = "table_" + features::variable_name(label_);
    std::ranges::transform(made_.name, made_.name.begin(),
                           [](unsigned char c) { return char(std::tolower(c)); });
    made_.epochs =
        std::clamp<std::size_t>(steps * minibatch / std::max<std::uint64_t>(of_.records, 1), 1, 100);
    for (auto const& [name, c] : all_)
      if (name != label_) take(name, c);
    if (numbers_ + id_columns_.size() == 0)
      throw usage_error(fmt::format("{}: no column to learn '{}' from", path_, printable(label_, 64)));
    set_label();
    write_source();
    write_test();
    return std::move(made_);
  }

 private:
  void note(std::string text) { made_.notes.push_back(std::move(text)); }

  void leave_out(std::string const& name, char const* why) {
    note(fmt::format("left out: column '{}': {}", printable(name, 64), why));
    left_out_ += fmt::format("// Left out: {}: {}.\n", printable(name, 64), why);
  }

  /// A value of one column that becomes a number, normalised; a record without it counts as the mean.
  void add_number(std::string const& column, std::string const& member, std::string const& value, double mean,
                  double deviation) {
    members_ +=
        fmt::format("  static constexpr features::normalization {}{{.subtract = {}f, .divide = {}f}};\n",
                    member, real(mean), real(deviation > 0 ? deviation : 1));
    feed_ += fmt::format("    numbers({}) = {} ? {}({}) : 0;\n", numbers_++, present(column), member, value);
  }

  /// A value that becomes an id; `missing` is that of a record without it.
  void add_id(std::string const& column, std::string const& member, std::string const& made_by,
              std::string const& value, std::string const& missing) {
    if (!made_by.empty()) members_ += fmt::format("  static constexpr features::{};\n", made_by);
    feed_ += fmt::format("    row({0}) = float(ids({0}, {1} ? {2}({3}) : {4}));\n", id_columns_.size(),
                         present(column), member, value, missing);
    id_columns_.push_back(member);
  }

  /// Whether a record has a value of the column, as C++: an empty text is none.
  std::string present(std::string const& column) const {
    std::string const name = literal(column), there = fmt::format("record.contains({})", name);
    if (all_.at(column).kind != example::kind::strings) return there;
    if (words_ && all_dates(all_.at(column), words_))
      return fmt::format("({} && !features::date::missing(record.bytes({})))", there, name);
    return fmt::format("({} && !record.bytes({}).empty())", there, name);
  }

  static std::string real(double x) {
    std::string text = fmt::format("{:.6g}", x);
    return text.find_first_of(".e") == text.npos ? text + ".0" : text;
  }

  void take(std::string const& name, column const& c) {
    if (c.records == 0 || (c.values == 0 && c.words.empty())) return leave_out(name, "it has no value");
    bool const blank = c.words.size() == 1 && c.words.contains("");
    if (blank) return leave_out(name, "it has no value");
    if (c.kind != example::kind::floats && c.countable && c.words.size() < 2 && c.records == of_.records)
      return leave_out(name, "each record has the same value");
    if (all_dates(c, words_)) return take_date(name, c);  // also where each record has another
    if (std::string const* const stray = stray_among_dates(c, words_))
      note(
          fmt::format("column '{}' is taken for words, because '{}' is not a date: correct such cells, or "
                      "name them with --missing",
                      printable(name, 64), printable(*stray, 64)));
    if (names_records(c)) return leave_out(name, "nearly each record has a value of its own");
    if (c.values > c.records) return leave_out(name, "it has several values a record");
    if (c.odd > 0)
      note(fmt::format("column '{}': {}: {} no word of the model, and {} its id of unknown words",
                       printable(name, 64), c.odd_one,
                       c.odd == 1 ? "it is" : fmt::format("it and {} more are", c.odd - 1),
                       c.odd == 1 ? "has" : "have"));
    std::string const member = names_.of(name);
    if (c.kind != example::kind::strings)
      return add_number(name, member, fmt::format("record.floating({})", literal(name)), c.mean,
                        c.deviation());
    std::string const bytes = fmt::format("record.bytes({})", literal(name));
    if (!c.many && c.words.size() <= most_words) {
      std::vector<std::string> words;
      for (std::string const& w : vocabulary_of(c))
        if (!w.empty()) words.push_back(literal(w));  // an empty text is as good as none
      std::ranges::sort(words);
      add_id(name, member, fmt::format("string_lookup {}{{{{{}}}}}", member, fmt::join(words, ", ")), bytes,
             fmt::format("{}.size() - 1", member));
    } else {
      std::size_t const buckets = c.many ? 2 * most_counted : 2 * c.words.size();
      add_id(name, member, fmt::format("hashing {}{{.buckets = {}}}", member, buckets), bytes,
             fmt::format("{}(\"\")", member));
    }
  }

  void take_date(std::string const& name, column const& c) {
    double mean = 0, squares = 0, n = 0;
    for (auto const& [text, times] : c.words)
      if (!no_date(text, words_)) n += double(times), mean += double(times) * features::date(text).days();
    mean /= n;
    for (auto const& [text, times] : c.words) {
      if (no_date(text, words_)) continue;
      double const d = features::date(text).days() - mean;
      squares += double(times) * d * d;
    }
    std::string const date = fmt::format("features::date(record.bytes({}))", literal(name));
    add_number(name, names_.of(name + "_days"), fmt::format("float({}.days())", date), mean,
               std::sqrt(squares / n));
    std::string const weekday = names_.of(name + "_weekday"), month = names_.of(name + "_month");
    add_id(name, weekday, fmt::format("round_identity {}{{.most = 7}}", weekday),
           fmt::format("{}.weekday()", date), "7");
    add_id(name, month, fmt::format("round_identity {}{{.most = 12}}", month),
           fmt::format("{}.month()", date), "0");
  }

  void set_label() {
    std::string const bytes = fmt::format("record.bytes({})", literal(label_)), shown = printable(label_, 64);
    if (of_.records == 0) throw usage_error(fmt::format("{}: column '{}' has no value", path_, shown));
    bool const words = of_.kind == example::kind::strings;
    if (words && of_.odd > 0)
      throw usage_error(fmt::format("--label={}: {}: correct such cells", shown, of_.odd_one));
    if (words && (!of_.countable || of_.words.size() > most_classes))
      throw usage_error(fmt::format(
          "--label={}: the column has more than {} different strings, too many classes for a first model",
          shown, most_classes));
    std::vector<std::string> classes;
    for (auto const& [w, times] : of_.words)
      if (!w.empty()) classes.push_back(w);
    std::uint64_t without = records_ - of_.records;
    if (auto const blank = of_.words.find(""); words && blank != of_.words.end()) without += blank->second;
    if (without > 0) {
      // Training and evaluation see different shares of them.
      double const share = std::ceil(200 * double(without) / double(records_) + 1) / 100;
      made_.leaving_out = fmt::format(" --skip_damaged --max_damaged={}", std::min(share, 1.0));
      note(
          fmt::format("{} no '{}', which is an error in training and evaluation: the commands leave such "
                      "records out by{}; or take them out before",
                      counted(without, "record has", "records have"), shown, made_.leaving_out));
    }
    std::ranges::sort(classes);
    if (of_.countable && classes.size() == 1)
      throw usage_error(fmt::format("--label={}: each record has the same value", shown));
    if (words) {
      std::vector<std::string> quoted;
      for (std::string const& w : classes) quoted.push_back(literal(w));
      members_ +=
          fmt::format("  static constexpr features::string_lookup classes{{{{{}}}, 0}};  // of the label\n",
                      fmt::join(quoted, ", ")) +
          "  static constexpr auto class_names = classes.words();\n";
    }
    bool const whole = of_.kind == example::kind::integers && of_.countable;
    if ((words || whole) && classes.size() == 2 && (words || (of_.least == 0 && of_.most == 1))) {
      loss_ = "nn::sigmoid_cross_entropy loss{}";
      metrics_ = "edl::accuracy, edl::auc";
      label_is_ =
          words ? fmt::format("classes({})", bytes) : fmt::format("record.floating({})", literal(label_));
      return note(fmt::format("'{}' is a yes or no: the output is above 0 for '{}'", shown,
                              printable(classes[1], 64)));
    }
    if (words) {
      label_is_ = fmt::format("classes({})", bytes);
      loss_ = "nn::softmax_cross_entropy loss{}", metrics_ = "edl::accuracy", units_ = classes.size();
      return note(fmt::format("'{}' has {} classes, in the order of the alphabet: {}", shown, units_,
                              printable(fmt::format("{}", fmt::join(classes, ", ")), 200)));
    }
    if (whole && of_.least == 0 && std::size_t(of_.most) + 1 == classes.size() &&
        classes.size() <= most_classes) {
      label_is_ = fmt::format("record.integer({})", literal(label_));
      loss_ = "nn::softmax_cross_entropy loss{}", metrics_ = "edl::accuracy", units_ = classes.size();
      return note(fmt::format("'{}' is a class from 0 to {}", shown, of_.most));
    }
    double const deviation = of_.deviation() > 0 ? of_.deviation() : 1;
    label_is_ = fmt::format("record.floating({})", literal(label_));
    loss_ = "nn::mean_squared_error loss{}", metrics_ = "edl::mae, edl::r2";
    last_ = fmt::format(
        "nn::dense{{.units = 1, .bias_initializer = nn::constant{{{}}}}},\n      nn::scale{{.factor = "
        "{}f}}",  // so it begins with the mean, and all else is of the size of 1
        real(of_.mean / deviation), real(deviation));
    note(fmt::format("'{}' is a number: the output is one of its size", shown));
  }

  void write_source() {
    std::string const input_numbers =
                          fmt::format("nn::input<\"numbers\">(nn::features{{.count = {}}})", numbers_),
                      input_ids =
                          fmt::format("nn::input<\"ids\">(nn::ids{{.count = {}}})", id_columns_.size());
    std::string const embedded =
        "in.from<\"ids\">(nn::embedding{.vocabulary = ids.size(), .width = 8}, nn::flatten{})";
    bool const both = numbers_ > 0 && !id_columns_.empty();
    std::string const in = both ? input_numbers + ",\n                                        " + input_ids
                           : numbers_ > 0 ? input_numbers
                                          : input_ids;
    std::string const begin = both           ? "nn::concat(in.from<\"numbers\">(), " + embedded + ")"
                              : numbers_ > 0 ? "in.from<\"numbers\">()"
                                             : embedded;
    if (!id_columns_.empty())
      members_ +=
          fmt::format("  static constexpr features::id_ranges ids{{{}}};\n", fmt::join(id_columns_, ", "));
    std::string const last = last_.empty() ? fmt::format("nn::dense{{.units = {}}}", units_) : last_;
    std::string const rows =
        fmt::format("{}{}", numbers_ > 0 ? "    auto numbers = into.input<\"numbers\">();\n" : "",
                    id_columns_.empty() ? "" : "    auto row = into.input<\"ids\">();\n");
    std::string const check =
        label_is_.starts_with("classes(")
            ? fmt::format(
                  "    if (m != edl::mode::prediction && {} < 0)\n"
                  "      throw edl::data_error(std::string({}) + \" is none of the classes\");\n",
                  label_is_, literal(label_))
            : "";
    made_.source = fmt::format(
        R"(// Learns the column {label} of {path}. `edl zoo init` made it of {records} records: change what you know better.
{left_out}#include <edl/edl.hpp>

namespace nn = edl::nn;
namespace features = edl::features;

struct {name} {{
  // Numbers: the mean and the deviation of the column. Words: an id of each, and the last one for all others.
{members}
  static constexpr auto in = nn::inputs({in});
  static constexpr auto network = nn::sequential(
      in, {begin},
      nn::dense{{.units = 64}}, nn::relu{{}}, nn::dense{{.units = 32}}, nn::relu{{}},
      {last});
  static constexpr {loss};
  static constexpr edl::adam optimizer{{.learning_rate = 2e-3f}};
  using metrics = edl::metrics<{metrics}>;

  // A missing cell counts as the mean, or as an id of its own.
  static void feed(edl::example const& record, edl::sample<{name}>& into, edl::mode m) {{
{rows}{feed}{check}    if (m != edl::mode::prediction) into.label = {label_is};
  }}
}};

int main(int argc, char** argv) {{ return edl::run<{name}>(argc, argv); }}
)",
        fmt::arg("label", printable(label_, 64)),
        fmt::arg("path", printable(std::filesystem::path(path_).filename().string(), 64)),
        fmt::arg("records", of_.records), fmt::arg("left_out", left_out_), fmt::arg("name", made_.name),
        fmt::arg("members", members_), fmt::arg("in", in), fmt::arg("begin", begin), fmt::arg("last", last),
        fmt::arg("loss", loss_), fmt::arg("metrics", metrics_), fmt::arg("rows", rows),
        fmt::arg("feed", feed_), fmt::arg("check", check), fmt::arg("label_is", label_is_));
  }

  void write_test() {
    std::string quoted = "'";
    for (char const c : std::filesystem::absolute(path_).string())
      quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    made_.test = fmt::format(R"(#!/bin/sh
# The program $1 learns something of its table: TABLE, or the one that it was made of.
set -eu
program=$1
table=${{TABLE-{0}'}}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {{ cat "$work/log" >&2; echo "$1" >&2; exit 1; }}

[ -e "$table" ] || {{ echo "$table is not there: say in TABLE where the table is" >&2; exit 1; }}
"$program" train --training_data="$table" --validation_split=0.2 --max_step=300 --minibatch_size={1} --shuffle{2}{3} \
  --output="$work/model" >"$work/log" 2>&1 || fail "training ended with code $?"
grep -q "Evaluation metrics" "$work/log" || fail "there was no evaluation"
"$program" predict --prediction_data="$table" --checkpoint_dir_for_init="$work/model"{2} \
  --prediction_outputs="$work/predictions" >"$work/log" 2>&1 || fail "predicting ended with code $?"
[ -s "$work/predictions/predictions.csv" ] || fail "there are no predictions"
)",
                             quoted, minibatch, made_.missing, made_.leaving_out);
  }

  std::string const &path_, &label_;
  columns const& all_;
  column const& of_;
  bool const words_;  // the usual ones say what is missing
  std::uint64_t const records_;
  table_model made_;
  names names_;
  std::string members_, feed_, left_out_, loss_, metrics_, label_is_, last_;
  std::size_t numbers_ = 0, units_ = 1;
  std::vector<std::string> id_columns_;
};

}  // namespace

table_model model_of_table(std::string const& path, std::string const& label, std::string const& missing) {
  auto const source = open_records(path, {.missing = data::read_missing_words(missing)});
  columns const all = read_columns(*source, most_counted);
  if (!all.contains(label)) {
    std::vector<std::string> known;
    for (auto const& [name, c] : all) known.push_back(name);
    std::string const near = cli::nearest(label, known);
    throw usage_error(fmt::format("--label={}: {} has no such column: {}", printable(label, 64), path,
                                  near.empty()
                                      ? printable(fmt::format("it has {}", fmt::join(known, ", ")), 400)
                                      : fmt::format("did you mean {}?", printable(near, 64))));
  }
  table_model made = writer(path, label, missing, all, data::records(*source)).make();
  auto const notes = data::all_notes(*source);
  made.notes.insert(made.notes.begin(), notes.begin(), notes.end());
  return made;
}

}  // namespace edl::tool
