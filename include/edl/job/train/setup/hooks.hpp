// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace edl {

/// A minibatch that has become part of the model, for a model's `on_step`.
struct step_report {
  std::uint64_t version = 0;  ///< steps of the model, as far as this process knows
  double loss = 0;            ///< mean over the minibatch's records
  int records = 0;            ///< in the minibatch
  int worker = 0;             ///< this worker's number; 0 in a Local job
};

/// A complete evaluation, for a model's `on_evaluation`.
struct evaluation_report {
  std::uint64_t version = 0;                            ///< of the evaluated model
  std::uint64_t records = 0;                            ///< evaluated
  std::vector<std::pair<std::string, double>> metrics;  ///< those of the model, in its order

  /// The value of a metric; NaN if the model has no metric of this name.
  double metric(std::string_view name) const;
};

namespace train {

/// The line of the log for a hook that has thrown what is being handled.
std::string failed_hook(std::string_view name, std::uint64_t version);

/// Calls a hook, which cannot change the job. Returns the line of the log if it throws anything; otherwise
/// empty.
template <class Hook>
std::string call_hook(std::string_view name, std::uint64_t version, Hook&& hook) {
  try {
    hook();
    return {};
  } catch (...) {
    return failed_hook(name, version);
  }
}

}  // namespace train
}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/setup/hooks.ipp"
#endif
