// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "edl/cli/command_line.hpp"
#include "edl/cli/nearest.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"

namespace edl::cli {
namespace detail {

/// A word that begins like a flag, split into its parts.
struct spelt_flag {
  bool is_long = false;
  std::string spelling;  ///< with dashes, without a value
  std::string name;      ///< without dashes; '-' within it is '_'
  std::optional<std::string> value;
};

inline std::optional<spelt_flag> take_apart(std::string const& word) {
  if (word.size() < 2 || word[0] != '-') return std::nullopt;
  spelt_flag s{.is_long = word.starts_with("--")};
  auto const equals = word.find('=');
  s.spelling = word.substr(0, equals);
  if (equals != std::string::npos) s.value = word.substr(equals + 1);
  if (s.is_long) {
    s.name = s.spelling.substr(2);
    std::ranges::replace(s.name, '-', '_');
  } else {
    s.name = s.spelling.substr(1, 1);
    if (s.spelling.size() > 2) s.value = word.substr(2);  // -nvalue, and -n=value as it is
    s.spelling = s.spelling.substr(0, 2);
  }
  return s;
}

}  // namespace detail

EDL_INLINE command_line::command_line(grammar g, words const& line) {
  std::map<std::string, std::string> names;  // spelling → the flag's primary name
  words long_names;
  auto const know = [&](std::string const& spelt, std::string const& name) {
    names[spelt] = name;
    if (spelt.size() > 1) long_names.push_back(spelt);
  };
  for (flag& f : g.flags) {
    know(f.name, f.name);
    for (std::string const& a : f.aliases) know(a, f.name);
    known_.emplace(f.name, std::move(f));
  }
  auto const unknown = [&](detail::spelt_flag const& s) {
    if (std::string const why = g.why_unknown ? g.why_unknown(s.name) : ""; !why.empty())
      return usage_error(fmt::format("{} {}", s.spelling, why));
    std::string const near = s.is_long ? nearest(s.name, long_names) : "";
    return usage_error(fmt::format("unknown flag {}{}; `{} --help=all` lists all", s.spelling,
                                   near.empty() ? "" : ": did you mean --" + near + "?", g.command));
  };
  for (std::string const& word : line)
    if (!is_utf8(word))
      throw usage_error(fmt::format("'{}' is not UTF-8; rename the file, or name a link to it (ln -s)",
                                    printable(word, 256)));
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == "--") {
      arguments_.insert(arguments_.end(), line.begin() + std::ptrdiff_t(i) + 1, line.end());
      break;
    }
    auto s = detail::take_apart(line[i]);
    if (!s) {
      arguments_.push_back(line[i]);
      continue;
    }
    auto const it = names.find(s->name);
    if (it == names.end() || s->is_long != (it->first.size() > 1)) throw unknown(*s);
    flag const& f = known_.at(it->second);
    if (!s->value && f.type == flag::value_type::truth) s->value = "true";
    if (!s->value) {
      if (i + 1 == line.size() || line[i + 1].starts_with("--"))
        throw usage_error(fmt::format("{} needs a value: {}=…", s->spelling, s->spelling));
      s->value = line[++i];
    }
    if (given(f.name) && !f.repeats)
      throw usage_error(
          fmt::format("--{} is given twice ({} and {}): leave one out", f.name, values_[f.name], *s->value));
    values_[f.name] = accept(f, *s->value);
    in_order_.emplace_back(f.name, values_[f.name]);
  }
  if (arguments_.size() < g.least)
    throw usage_error(fmt::format("{} is missing; see `{} --help`",
                                  g.arguments.empty() ? "an argument" : g.arguments, g.command));
  if (arguments_.size() > g.most)
    throw usage_error(fmt::format("unexpected argument '{}': flags are --name=value; see `{} --help`",
                                  arguments_[g.most], g.command));
  for (auto const& [name, f] : known_)
    if (f.needed && !given(name))
      throw usage_error(fmt::format("--{} is missing; see `{} --help`", name, g.command));
}

EDL_INLINE bool command_line::changed(std::string const& name) const {
  auto const it = values_.find(name);
  if (it == values_.end()) return false;
  flag const& f = known_.at(name);
  return f.type == flag::value_type::truth ? truth(name) != (f.fallback == "true") : it->second != f.fallback;
}

EDL_INLINE std::string const& command_line::text(std::string const& name) const {
  auto const it = values_.find(name);
  return it != values_.end() ? it->second : known_.at(name).fallback;
}

EDL_INLINE bool command_line::truth(std::string const& name) const {
  std::string const& t = text(name);
  return !t.empty() && parse_truth(name, t);
}

EDL_INLINE words command_line::all(std::string const& name) const {
  if (!given(name)) return split(known_.at(name).fallback, ',');
  words all;
  for (auto const& [of, value] : in_order_)
    if (of == name) all.push_back(value);
  return all;
}

EDL_INLINE std::int64_t command_line::number(std::string const& name) const {
  return parse_number<std::int64_t>(text(name));
}

EDL_INLINE void refuse_empty(command_line const& given) {
  for (auto const& [flag, value] : given.in_order())
    if (value.empty())
      throw usage_error(fmt::format("--{}= has no value: give one, or leave the flag out", flag));
  if (std::ranges::find(given.arguments(), "") != given.arguments().end())
    throw usage_error("an argument is empty (''): give one that is not, or leave it out");
}

EDL_INLINE bool asks_for_help(words const& line) {
  auto const end = std::find(line.begin(), line.end(), "--");
  return std::any_of(line.begin(), end,
                     [](std::string const& w) { return w == "--help" || w == "-h" || w == "--help=all"; });
}

}  // namespace edl::cli
