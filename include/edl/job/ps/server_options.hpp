// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "edl/base/bucket/place.hpp"
#include "edl/base/net/call.hpp"
#include "edl/core/layout.hpp"
#include "edl/job/ps/store.hpp"

namespace edl::ps {

struct server_options {
  std::string name = "ps-0";          ///< in logs and errors
  std::uint32_t ranges = 1;           ///< of the variables
  parameter_layout const& layout;     ///< must outlive the server
  std::size_t delta_checkpoints = 0;  ///< in a row, of tables (`write_snapshot`)

  bucket::place checkpoints = {};  ///< the options of this place apply to all that are written

  /// A store for a range, in any state.
  std::function<std::shared_ptr<store>(std::uint32_t range)> make;

  /// Loads a checkpoint's state into the store, or its initial state for an empty path. Called on a thread
  /// that may block on a disk.
  std::function<void(store&, std::string const& path)> configure;

  /// Called with the number of steps of the training, before a generation is served.
  std::function<void(std::uint64_t steps)> plan = [](std::uint64_t) {};

  /// Called for every version that the first range's store has frozen by itself.
  std::function<void(std::uint64_t generation, push_result const&)> frozen;

  /// Called when the backup of a range cannot be reached.
  std::function<void(std::uint64_t generation, std::uint32_t range)> cut_off;

  /// Called when a store has failed (`store_failure`): it is unusable, and the process should exit.
  std::function<void(std::string const& why)> failed = {};

  /// How long a lost backup is retried before that is reported.
  std::chrono::milliseconds patience = net::some_patience;
};

/// Runs `work` with a store; if the store fails, reports that, and rethrows.
template <class Work>
auto use(server_options const& o, Work const& work) {
  try {
    return work();
  } catch (store_failure const& e) {
    if (o.failed) o.failed(e.what());
    throw;
  }
}

}  // namespace edl::ps
