// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/cli/flag.hpp"
#include "edl/core/hyperparameter.hpp"

namespace edl::train {

/// What a user may set of a model without a new build: name, type, bounds, description, and in `fallback` the
/// value that holds.
using hyperparameters = std::vector<cli::flag>;

/// Names and values, in the order in which a user gives them.
using settings = std::vector<std::pair<std::string, std::string>>;

/// The settings in a text such as `rate=0.05;patience=3`; commas separate as well. Throws usage_error where a
/// part of it is no `name=value`, or a name comes twice.
settings read_settings(std::string_view text);

/// Such a text.
std::string write_settings(settings const& of);

/// The values that hold.
settings values_of(hyperparameters const& all);

/// Sets values. Throws usage_error where there is no such hyperparameter, with the nearest name, and where a
/// value is of another type or out of bounds.
void set(hyperparameters& all, settings const& values);

/// A line for a log about a value that a model was trained with.
struct trained_note {
  bool taken;  ///< false: another value holds, or none
  std::string text;
};

/// Sets what a model was trained with, except for names that a user has set. Returns a note for each value
/// that is not the one before, that the user overrides, or whose name `all` lacks. Throws error where a value
/// is refused. `model` names the model in these lines.
std::vector<trained_note> set_trained(hyperparameters& all, settings const& trained, settings const& given,
                                      std::string const& model);

/// Lines for `--help`; empty where there are none.
std::string help_text(hyperparameters const& all);

/// A hyperparameter as the struct of a model has it.
template <settable T>
cli::flag describe(std::string_view name, hyperparameter<T> const& of) {
  cli::flag f{
      .name = std::string(name), .fallback = fmt::format("{}", of.value), .help = std::string(of.about)};
  if constexpr (std::same_as<T, bool>) {
    f.type = cli::flag::value_type::truth;
  } else if constexpr (std::integral<T>) {
    f.type = cli::flag::value_type::whole;
    f.least = std::int64_t(of.least);
    f.most = std::uint64_t(std::max<T>(of.most, 0));
  } else {
    f.type = cli::flag::value_type::number;
    // As a user writes them: 0.9 of a float is not the double 0.9.
    f.lowest = cli::parse_number<double>(fmt::format("{}", of.least));
    f.highest = cli::parse_number<double>(fmt::format("{}", of.most));
  }
  return f;
}

/// The value that holds, which `set` or `describe` wrote.
template <settable T>
T value_of(cli::flag const& f) {
  if constexpr (std::same_as<T, bool>)
    return cli::parse_truth(f.name, f.fallback);
  else
    return cli::parse_number<T>(f.fallback);
}

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/setup/hyperparameters.ipp"
#endif
