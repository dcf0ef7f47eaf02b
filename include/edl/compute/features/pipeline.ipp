// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "edl/cli/nearest.hpp"
#include "edl/compute/features/pipeline.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/input_file.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"

namespace edl::features {
namespace detail {

inline constexpr std::uint64_t longest_pipeline = 1u << 20;  // bytes
inline constexpr std::int64_t most_ids = 1ll << 31;          // of a pipeline
inline constexpr std::int64_t exact_ids = 1ll << 24;         // float32 holds every whole number up to here
inline constexpr char columns_variable[] = "EDL_COLUMNS";

/// The parts of a text between separators that stand in no quotes, with blanks around them and empty ones.
inline std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> all;
  bool quoted = false;
  std::size_t first = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '"') quoted = !quoted;
    if (i < text.size() && (quoted || text[i] != separator)) continue;
    all.push_back(text.substr(first, i - first));
    first = i + 1;
  }
  return all;
}

inline std::string unquoted(std::string_view text) {
  std::string plain(text);
  std::erase(plain, '"');
  return plain;
}

}  // namespace detail

/// Reads one line after the other. What it throws names line and column.
struct pipeline::reader {
  pipeline& into;
  statistics::environment const& from;
  std::string directory;  // of the file; empty: none
  line now{};
  std::string step{};                          // that is read
  std::map<std::string, std::string> given{};  // its options
  std::map<std::string, std::size_t> seen{};   // lines, by columns and step

  [[noreturn]] void refuse(std::string const& why) const {
    std::string const column = fmt::format("{}", fmt::join(now.columns, ", "));
    throw usage_error(fmt::format("{}:{}: {}{}", into.where_, now.number,
                                  column.empty() ? "" : fmt::format("column '{}': ", printable(column, 128)),
                                  why));
  }

  void read(std::string_view text, std::size_t number) {
    text = trimmed(text);
    if (text.empty() || text.starts_with('#')) return;
    now = {.number = number};
    auto const parts = detail::parts_of(text, '|');
    for (std::string_view const name : detail::parts_of(parts[0], ',')) {
      std::string const plain = detail::unquoted(trimmed(name));
      if (plain.empty()) refuse("a column has no name; expected COLUMN | STEP option=value …");
      now.columns.push_back(plain);
    }
    if (std::ranges::count(text, '"') % 2 != 0)
      refuse("a quote is opened and not closed; expected option=\"…\"");
    if (parts.size() < 2) refuse("the column has no step; expected COLUMN | STEP option=value …");
    for (std::size_t i = 1; i < parts.size(); ++i) take(parts[i], i + 1 == parts.size());
    finish();
  }

  void take(std::string_view text, bool last) {
    words_of(text);
    static std::vector<std::string> const known{"to_number",      "pieces",         "normalization",
                                                "discretization", "log_round",      "hashing",
                                                "crossing",       "round_identity", "string_lookup"};
    if (std::ranges::find(known, step) == known.end()) {
      std::string const near = cli::nearest(step, known);
      refuse(fmt::format("'{}' is not a step: {}", printable(step, 64),
                         near.empty() ? fmt::format("expected one of {}", fmt::join(known, ", "))
                                      : "did you mean " + near + "?"));
    }
    if (now.columns.size() > 1 && step != "crossing")
      refuse(fmt::format("{} takes one column; a crossing takes several", step));
    if (step == "to_number")
      to_number_step(last);
    else if (step == "pieces")
      pieces_step(last);
    else if (!last)
      refuse(
          fmt::format("{} is the last step of a line; only to_number and pieces stand before another", step));
    else
      last_step();
    if (!given.empty())
      refuse(fmt::format("{} has no option '{}'", step, printable(given.begin()->first, 64)));
  }

  /// The step and its options.
  void words_of(std::string_view text) {
    given.clear();
    step.clear();
    for (std::string_view const part : detail::parts_of(trimmed(text), ' ')) {
      std::string_view const word = trimmed(part);
      if (word.empty()) continue;
      if (step.empty()) {
        step = word;
        continue;
      }
      auto const at = word.find('=');
      if (at == std::string_view::npos || at == 0)
        refuse(fmt::format("{}: '{}' is not an option; expected option=value", printable(step, 64),
                           printable(word, 64)));
      if (!given.emplace(word.substr(0, at), detail::unquoted(word.substr(at + 1))).second)
        refuse(fmt::format("{}: {} is given twice", printable(step, 64), printable(word.substr(0, at), 64)));
    }
    if (step.empty()) refuse("a step has no name");
  }

  std::optional<std::string> option(std::string const& name) {
    auto const it = given.find(name);
    if (it == given.end()) return std::nullopt;
    std::string const value = std::move(it->second);
    given.erase(it);
    return value;
  }

  template <class T>
  T number(std::string const& name, std::string const& text) const {
    auto const n = number_from<T>(text);
    if (!n || !std::isfinite(double(*n)))
      refuse(fmt::format("{}: {}={} is no {}", step, name, printable(text, 64),
                         std::floating_point<T> ? "number" : "whole number"));
    return *n;
  }

  template <class T>
  std::optional<T> number(std::string const& name) {
    auto const text = option(name);
    return text ? std::optional<T>(number<T>(name, *text)) : std::nullopt;
  }

  template <class T>
  T needed(std::string const& name, T least) {
    auto const n = number<T>(name);
    if (!n) refuse(fmt::format("{} needs {}=…", step, name));
    if (*n < least) refuse(fmt::format("{}: {}={} is below {}", step, name, *n, least));
    return *n;
  }

  void to_number_step(bool last) {
    if (now.otherwise || now.makes == output::list) refuse("to_number is the first step of a line");
    now.otherwise = number<float>("otherwise");
    if (last) now.makes = output::number;
    if (!last && !now.otherwise) refuse("to_number before another step needs otherwise=…");
  }

  void pieces_step(bool last) {
    if (now.otherwise || now.makes == output::list) refuse("pieces is the first step of a line");
    if (last) refuse("the pieces of a string are not ids yet: append a step such as | hashing buckets=…");
    now.makes = output::list;
    std::string const separator = option("separator").value_or(",");
    if (separator.size() != 1)
      refuse(fmt::format("pieces: separator={} is not a single character", printable(separator, 64)));
    now.separator = separator[0];
    now.ignored = option("ignored").value_or("");
  }

  void last_step() {
    bool const reads_text = step == "hashing" || step == "crossing" || step == "string_lookup";
    if (now.otherwise && reads_text)
      refuse(fmt::format("to_number makes a number, and {} reads a text", step));
    if (step == "normalization")
      normalize();
    else if (step == "discretization")
      discretize();
    else if (step == "log_round")
      now.step = log_round{.buckets = needed<int>("buckets", 1),
                           .base = base(),
                           .otherwise = number<std::int64_t>("otherwise").value_or(0)};
    else if (step == "round_identity")
      now.step = round_identity{.most = most(), .otherwise = number<std::int64_t>("otherwise").value_or(0)};
    else if (step == "hashing")
      now.step = hashing{.buckets = needed<std::int64_t>("buckets", 1)};
    else if (step == "crossing")
      now.step = crossing{.buckets = needed<std::int64_t>("buckets", 1)};
    else
      look_up();
  }

  double base() {
    double const given = number<double>("base").value_or(features::log_round().base);
    if (given <= 1) refuse(fmt::format("{}: base={} is not above 1", step, given));
    return given;
  }

  std::int64_t most() {
    auto const given = needed<std::int64_t>("most", 0);
    if (given >= detail::exact_ids)  // it reads floats
      refuse(fmt::format("{}: most={} is above {}; take hashing for larger numbers", step, given,
                         detail::exact_ids - 1));
    return given;
  }

  void normalize() {
    if (now.makes == output::list) refuse("pieces become ids, and a normalization makes a number");
    now.makes = output::number;
    auto const subtract = number<float>("subtract"), divide = number<float>("divide");
    if (subtract || divide) {
      now.step = normalization{.subtract = subtract.value_or(0), .divide = divide.value_or(1)};
      return;
    }
    constexpr float none = std::numeric_limits<float>::quiet_NaN();
    statistics const known(now.columns[0], from);
    normalization const of{.subtract = known.mean(none), .divide = known.deviation(none)};
    if (std::isnan(of.subtract) || std::isnan(of.divide))
      refuse(missing("subtract and divide", "avg", "stddev"));
    now.step = of;
  }

  void discretize() {
    std::vector<float> boundaries;
    if (auto const text = option("boundaries"))
      for (std::string_view const one : detail::parts_of(*text, ','))
        boundaries.push_back(number<float>("boundaries", std::string(trimmed(one))));
    else
      boundaries = statistics(now.columns[0], from).boundaries({});
    if (boundaries.empty()) refuse(missing("boundaries", "boundaries"));
    if (!std::ranges::is_sorted(boundaries)) refuse("the boundaries are not sorted");
    now.step = loaded_discretization(std::move(boundaries));
  }

  void look_up() {
    int const unknown = number<int>("unknown").value_or(1);
    if (unknown < 0) refuse(fmt::format("string_lookup: unknown={} is below 0", unknown));
    auto const words = option("words");
    std::string file = option("file").value_or("");
    if (words && !file.empty()) refuse("string_lookup: give either words or file, not both");
    try {
      if (words) {
        std::vector<std::string> all;
        for (std::string_view const one : detail::parts_of(*words, ',')) all.emplace_back(trimmed(one));
        now.step = loaded_lookup(all, unknown);
        return;
      }
      if (!file.empty() && !directory.empty()) file = (std::filesystem::path(directory) / file).string();
      if (file.empty()) file = statistics(now.columns[0], from).vocabulary("");
      if (file.empty()) refuse(missing("words or file", "vocab"));
      now.step = loaded_lookup::from_file(file, unknown);
    } catch (storage_error const& bad) {
      refuse(bad.what());
    } catch (usage_error const& bad) {
      if (std::string_view(bad.what()).starts_with(into.where_)) throw;
      refuse(bad.what());
    }
  }

  std::string missing(char const* options, char const* first, char const* second = nullptr) const {
    std::string const column = variable_name(now.columns[0]);
    return fmt::format("{} needs {}, or _{}_{}{} in the environment, which `edl data analyze` writes", step,
                       options, column, first, second ? fmt::format(" and _{}_{}", column, second) : "");
  }

  void finish() {
    std::string const key = fmt::format("{} {}", fmt::join(now.columns, ","), step);
    if (auto const [before, is_new] = seen.emplace(key, now.number); !is_new)
      refuse(fmt::format("line {} has a {} of it already", before->second, step));
    into.numbers_ += now.makes == output::number;
    into.ids_ += now.makes == output::id;
    if (now.makes != output::number) place_ids();
    into.lines_.push_back(std::move(now));
  }

  /// The ids of the line lie behind those of the lines before it.
  void place_ids() {
    std::int64_t const size = std::visit(
        []<class S>(S const& s) -> std::int64_t {
          if constexpr (requires { s.size(); }) return s.size();
          return 0;
        },
        now.step);
    if (size > detail::most_ids - into.size_)
      refuse(fmt::format("more than {} ids in all: fewer buckets or words", detail::most_ids));
    if (now.makes == output::id && into.size_ + size > detail::exact_ids)
      refuse(fmt::format(
          "its ids are up to {}, and a network's input is exact below {}: fewer buckets or words, "
          "here or in the lines before",
          into.size_ + size - 1, detail::exact_ids));
    std::visit(
        [&]<class S>(S const& s) {
          if constexpr (requires { s.otherwise; })
            if (s.otherwise < -1 || s.otherwise >= size)
              refuse(
                  fmt::format("{}: otherwise={} is not an id of the line; expected 0 to {}, or -1 for none",
                              step, s.otherwise, size - 1));
        },
        now.step);
    now.first = into.size_;
    into.size_ += size;
  }
};

EDL_INLINE pipeline::pipeline(std::string_view text, std::string const& where)
    : pipeline(text, where, [](char const* name) -> char const* { return std::getenv(name); }) {}

EDL_INLINE pipeline::pipeline(std::string_view text, std::string const& where,
                              statistics::environment const& from)
    : where_(where) {
  reader one{.into = *this, .from = from, .directory = std::filesystem::path(where).parent_path().string()};
  std::size_t number = 0;
  for (std::string_view const l : features::pieces(text, '\n', "\n")) one.read(l, ++number);
  if (lines_.empty()) throw usage_error(fmt::format("{}: no line gives the steps of a column", where));
}

EDL_INLINE pipeline pipeline::from_file(std::string const& path) {
  input_file const file(path);
  if (file.size() > detail::longest_pipeline)
    throw usage_error(fmt::format("{}: a pipeline of {} bytes; at most {} are read", path, file.size(),
                                  detail::longest_pipeline));
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return pipeline(text, path);
}

EDL_INLINE pipeline pipeline::chosen(std::string_view text, pipeline_room const& room) {
  char const* const path = std::getenv(detail::columns_variable);
  pipeline all = path && *path ? from_file(path) : pipeline(text, "the model's columns");
  all.check(room);
  return all;
}

EDL_INLINE void pipeline::check(pipeline_room const& room) const {
  if (numbers_ != room.numbers || ids_ != room.ids)
    throw usage_error(fmt::format("{} makes {} numbers and {} ids, and the model takes {} and {}", where_,
                                  numbers_, ids_, room.numbers, room.ids));
  if (size_ > room.vocabulary)
    throw usage_error(
        fmt::format("{} makes ids below {}, and the model's vocabulary is {}: fewer buckets or words, or a "
                    "model with a larger one",
                    where_, size_, room.vocabulary));
}

EDL_INLINE float pipeline::to_float(line const& l, cell const& of) const {
  if (auto const* const number = std::get_if<float>(&of)) return *number;
  if (auto const* const whole = std::get_if<std::int64_t>(&of)) return float(*whole);
  std::string_view const text = std::get<std::string_view>(of);
  try {
    if (!trimmed(text).empty()) return to_number<float>(text, 0);
    if (l.otherwise) return *l.otherwise;
  } catch (data_error const& bad) {
    throw data_error(
        fmt::format("{}:{}: column '{}': {}", where_, l.number, printable(l.columns[0], 128), bad.what()));
  }
  throw data_error(
      fmt::format("{}:{}: column '{}': an empty value; give the number for it with `to_number otherwise=…`",
                  where_, l.number, printable(l.columns[0], 128)));
}

EDL_INLINE float pipeline::number_of(line const& l, cell const& of) const {
  float const x = to_float(l, of);
  auto const* const normal = std::get_if<normalization>(&l.step);
  return normal ? (*normal)(x) : x;
}

EDL_INLINE std::int64_t pipeline::id_of(line const& l, std::vector<cell> const& of) const {
  std::vector<std::string> texts;
  auto const text_of = [&](cell const& c) -> std::string_view {
    if (auto const* const text = std::get_if<std::string_view>(&c)) return *text;
    texts.push_back(std::holds_alternative<std::int64_t>(c) ? fmt::format("{}", std::get<std::int64_t>(c))
                                                            : fmt::format("{}", std::get<float>(c)));
    return texts.back();
  };
  std::int64_t const id = std::visit(
      [&]<class S>(S const& step) -> std::int64_t {
        if constexpr (std::same_as<S, crossing>) {
          texts.reserve(of.size());  // views of them stay
          std::vector<std::string_view> all;
          for (cell const& c : of) all.push_back(text_of(c));
          return step(all);
        } else if constexpr (std::same_as<S, hashing> || std::same_as<S, loaded_lookup>) {
          return step(text_of(of[0]));
        } else if constexpr (requires { step.size(); }) {
          return step(to_float(l, of[0]));
        } else {
          return -1;
        }
      },
      l.step);
  return id < 0 ? -1 : l.first + id;
}

}  // namespace edl::features
