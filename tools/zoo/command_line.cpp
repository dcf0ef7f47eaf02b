// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "edl/app/flags.hpp"
#include "edl/core/error.hpp"

namespace edl::tool {
namespace {

std::string underscored(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  return text;
}

std::string trimmed(std::string const& t) {
  auto const first = t.find_first_not_of(" \t"), last = t.find_last_not_of(" \t");
  return first == std::string::npos ? "" : t.substr(first, last - first + 1);
}

}  // namespace

words split(std::string const& text, char at) {
  words all;
  for (std::size_t i = 0; i <= text.size();) {
    auto const end = std::min(text.find(at, i), text.size());
    if (std::string part = trimmed(text.substr(i, end - i)); !part.empty()) all.push_back(std::move(part));
    i = end + 1;
  }
  return all;
}

bool parse_truth(std::string const& name, std::string const& text) {
  static words const yes{"true", "yes", "t", "y", "1", "on"}, no{"false", "no", "f", "n", "0", "off"};
  std::string const t = lower(text);
  if (std::ranges::find(yes, t) != yes.end()) return true;
  if (std::ranges::find(no, t) != no.end()) return false;
  throw usage_error(fmt::format("--{}={}: expected true or false", name, text));
}

command_line::command_line(std::string command, std::vector<flag> known, words const& line, std::size_t least,
                           std::size_t most, std::string const& what)
    : command_(std::move(command)) {
  std::map<std::string, std::string> names;  // as they are written, to the flag's own
  words all;
  for (flag& f : known) {
    all.push_back(f.name);
    names[f.name] = f.name;
    for (std::string const& a : f.aliases) {
      names[a] = f.name;
      if (a.size() > 1) all.push_back(a);
    }
    known_.emplace(f.name, std::move(f));
  }
  for (std::size_t i = 0; i < line.size(); ++i) {
    std::string const& word = line[i];
    if (word == "--") {
      arguments_.insert(arguments_.end(), line.begin() + std::ptrdiff_t(i) + 1, line.end());
      break;
    }
    if (word.size() < 2 || word[0] != '-') {
      arguments_.push_back(word);
      continue;
    }
    bool const is_long = word.rfind("--", 0) == 0;
    auto const equals = word.find('=');
    std::string const spelt = word.substr(0, equals);
    auto it = names.find(is_long ? underscored(spelt.substr(2)) : spelt.substr(1));
    std::string value;
    bool has_value = equals != std::string::npos;
    if (has_value) value = word.substr(equals + 1);
    if (!is_long && it == names.end() && equals == std::string::npos && word.size() > 2) {  // -nrec
      it = names.find(word.substr(1, 1));
      if (it != names.end()) value = word.substr(2), has_value = true;
    }
    if (it == names.end() || (!is_long && it->first.size() > 1)) {
      std::string const near = is_long ? app::nearest(underscored(spelt.substr(2)), all) : "";
      throw usage_error(fmt::format("unknown flag {}{}; `edl {} --help` lists all", spelt,
                                    near.empty() ? "" : ": did you mean --" + near + "?", command_));
    }
    flag const& f = known_.at(it->second);
    if (!has_value && f.what == flag::kind::truth) {
      value = f.fallback == "true" ? "false" : "true";
    } else if (!has_value) {
      if (i + 1 == line.size() || line[i + 1].rfind("--", 0) == 0)
        throw usage_error(fmt::format("{} needs a value: {}=…", spelt, spelt));
      value = line[++i];
    }
    take(f, value);
  }
  if (arguments_.size() < least)
    throw usage_error(fmt::format("edl {}: {} is missing; `edl {} --help` tells more", command_,
                                  what.empty() ? "an argument" : what, command_));
  if (arguments_.size() > most)
    throw usage_error(
        fmt::format("unexpected argument '{}': flags are --name=value; `edl {} --help` tells more",
                    arguments_[most], command_));
}

void command_line::take(flag const& f, std::string const& value) {
  if (given(f.name))
    throw usage_error(
        fmt::format("--{} is given twice ({} and {}): leave one out", f.name, values_[f.name], value));
  if (f.what == flag::kind::truth) parse_truth(f.name, value);
  if (!f.choices.empty() && std::ranges::find(f.choices, value) == f.choices.end())
    throw usage_error(fmt::format("--{}={}: expected {}", f.name, value, fmt::join(f.choices, ", ")));
  values_[f.name] = value;
  in_order_.emplace_back(f.name, value);
}

std::string const& command_line::text(std::string const& name) const {
  auto const it = values_.find(name);
  return it != values_.end() ? it->second : known_.at(name).fallback;
}

bool command_line::truth(std::string const& name) const {
  std::string const& t = text(name);
  return !t.empty() && parse_truth(name, t);
}

std::int64_t command_line::number(std::string const& name, std::int64_t least, std::int64_t most) const {
  std::string const& t = text(name);
  std::int64_t n = 0;
  auto const [end, failure] = std::from_chars(t.data(), t.data() + t.size(), n);
  if (failure != std::errc{} || end != t.data() + t.size() || n < least || n > most)
    throw usage_error(fmt::format("--{}={}: expected a whole number {}", name, t,
                                  most == std::numeric_limits<std::int64_t>::max()
                                      ? fmt::format("of at least {}", least)
                                      : fmt::format("from {} to {}", least, most)));
  return n;
}

std::string describe(std::vector<flag> const& flags) {
  constexpr std::size_t column = 34, width = 110;
  std::string out;
  for (flag const& f : flags) {
    if (f.help.empty()) continue;
    std::string spelt = "  ";
    for (std::string const& a : f.aliases) spelt += a.size() == 1 ? "-" + a + ", " : "";
    spelt += "--" + f.name;
    for (std::string const& a : f.aliases) spelt += a.size() > 1 ? ", --" + a : "";
    std::string help = f.help;
    if (!f.choices.empty()) help += fmt::format(": {}", fmt::join(f.choices, ", "));
    if (!f.fallback.empty()) help += fmt::format(" [{}]", f.fallback);
    if (spelt.size() + 1 >= column) {
      out += spelt + "\n";
      spelt.clear();
    }
    std::string line = fmt::format("{:<{}}", spelt, column);
    for (std::size_t at = 0; at < help.size();) {
      auto const end = std::min(help.find(' ', at), help.size());
      if (line.size() + end - at > width && line.size() > column) {
        out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
        line = std::string(column, ' ');
      }
      line += help.substr(at, end - at) + " ";
      at = end + 1;
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

}  // namespace edl::tool
