// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "edl/cli/nearest.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/text.hpp"
#include "edl/job/train/setup/hyperparameters.hpp"

namespace edl::train {
namespace detail {

/// The flag as a user types it: `--set rate=0.1`.
inline cli::flag as_typed(cli::flag f) {
  f.name = "set " + f.name;
  if (f.help.empty()) f.help = "a hyperparameter of the model";
  return f;
}

/// The same text for equal values.
inline std::string canonical(cli::flag::value_type what, std::string const& value) {
  using enum cli::flag::value_type;
  if (what == truth) return cli::parse_truth("set", value) ? "true" : "false";
  return what == number ? fmt::format("{}", cli::parse_number<double>(value)) : value;
}

}  // namespace detail

EDL_INLINE settings read_settings(std::string_view text) {
  settings all;
  std::string plain(text);
  std::ranges::replace(plain, ',', ';');
  for (std::string const& part : cli::split(plain, ';')) {
    auto const at = part.find('=');
    std::string const name(trimmed(std::string_view(part).substr(0, at)));
    if (at == std::string::npos || name.empty())
      throw usage_error(fmt::format("--set={}: expected name=value", part));
    if (std::ranges::find(all, name, &settings::value_type::first) != all.end())
      throw usage_error(fmt::format("--set: {} is set twice", name));
    all.emplace_back(name, trimmed(std::string_view(part).substr(at + 1)));
  }
  return all;
}

EDL_INLINE std::string write_settings(settings const& of) {
  std::string all;
  for (auto const& [name, value] : of) all += fmt::format("{}{}={}", all.empty() ? "" : ";", name, value);
  return all;
}

EDL_INLINE settings values_of(hyperparameters const& all) {
  settings values;
  for (cli::flag const& f : all) values.emplace_back(f.name, f.fallback);
  return values;
}

EDL_INLINE void set(hyperparameters& all, settings const& values) {
  for (auto const& [name, value] : values) {
    auto const found = std::ranges::find(all, name, &cli::flag::name);
    if (found == all.end()) {
      std::vector<std::string> known;
      for (cli::flag const& f : all) known.push_back(f.name);
      if (known.empty())
        throw usage_error(fmt::format("--set {}={}: this model has no hyperparameters", name, value));
      std::string const near = cli::nearest(name, known);
      throw usage_error(fmt::format("--set {}={}: this model has no such hyperparameter; {}", name, value,
                                    near.empty() ? fmt::format("it has {}", fmt::join(known, ", "))
                                                 : fmt::format("did you mean {}?", near)));
    }
    found->fallback = detail::canonical(found->type, cli::accept(detail::as_typed(*found), value));
  }
}

EDL_INLINE std::vector<trained_note> set_trained(hyperparameters& all, settings const& trained,
                                                 settings const& given, std::string const& model) {
  std::vector<trained_note> notes;
  for (auto const& [name, value] : trained) {
    auto const found = std::ranges::find(all, name, &cli::flag::name);
    if (found == all.end()) {
      notes.push_back({false, fmt::format("{} was trained with {}={}, and this program has no such "
                                          "hyperparameter",
                                          model, name, value)});
      continue;
    }
    std::string const now = found->fallback;
    if (now == value) continue;
    if (std::ranges::find(given, name, &settings::value_type::first) != given.end()) {
      notes.push_back({false, fmt::format("hyperparameter {} is {} here, and was {} in the training of {}: "
                                          "--set {}={} takes that",
                                          name, now, value, model, name, value)});
      continue;
    }
    try {
      set(all, {{name, value}});
    } catch (usage_error const& e) {
      throw error(
          fmt::format("{} was trained with a value that this program does not take: {}; --set "
                      "{}=VALUE gives another",
                      model, e.what(), name));
    }
    notes.push_back({true, fmt::format("hyperparameter {} is {}, as in the training of {}: --set {}=VALUE "
                                       "changes it",
                                       name, value, model, name)});
  }
  return notes;
}

EDL_INLINE std::string help_text(hyperparameters const& all) {
  std::vector<cli::flag> lines;
  for (cli::flag const& f : all) {
    lines.push_back(detail::as_typed(f));
    lines.back().group = "Hyperparameters of the model";
  }
  return lines.empty() ? std::string() : cli::describe(lines);
}

}  // namespace edl::train
