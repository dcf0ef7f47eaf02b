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

/// A model's hyperparameters: name, type, bounds, description, and in `fallback` the current value.
using hyperparameters = std::vector<cli::flag>;

/// Names and values, in the order given by the user.
using settings = std::vector<std::pair<std::string, std::string>>;

/// The settings in a text such as `rate=0.05;patience=3`; commas also separate. Throws usage_error if a part
/// is not `name=value`, or a name is duplicated.
settings read_settings(std::string_view text);

/// Writes them in that form.
std::string write_settings(settings const& of);

/// The current values.
settings values_of(hyperparameters const& all);

/// Sets values. Throws usage_error for an unknown hyperparameter, with the most similar name, and for a value
/// of the wrong type or out of bounds.
void set(hyperparameters& all, settings const& values);

/// A line for a log about a value that a model was trained with.
struct trained_note {
  bool taken;  ///< false: another value is used, or none
  std::string text;
};

/// Sets the values of a model's training, except those that the user has set. Returns a note for each value
/// that changes, that the user overrides, or whose name is not in `all`. Throws error for an invalid value.
/// `model` is the model's name in the notes.
std::vector<trained_note> set_trained(hyperparameters& all, settings const& trained, settings const& given,
                                      std::string const& model);

/// Lines for `--help`; empty if there are none.
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
    // As a user writes them: the float 0.9 is not the double 0.9.
    f.lowest = cli::parse_number<double>(fmt::format("{}", of.least));
    f.highest = cli::parse_number<double>(fmt::format("{}", of.most));
  }
  return f;
}

/// The current value, as `set` or `describe` wrote it.
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
