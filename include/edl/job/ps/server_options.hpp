// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "edl/base/net/call.hpp"
#include "edl/core/layout.hpp"
#include "edl/job/ps/store.hpp"

namespace edl::ps {

struct server_options {
  std::string name = "ps-0";          ///< in logs and errors
  std::uint32_t ranges = 1;           ///< that the variables are cut into
  parameter_layout const& layout;     ///< outlives the server
  std::size_t delta_checkpoints = 0;  ///< in a row, of tables (`write_snapshot`)

  /// A store for a range, in any state.
  std::function<std::shared_ptr<store>(std::uint32_t range)> make;

  /// Puts the store into a checkpoint's state, or into its initial one for an empty path. Called on a thread
  /// that may wait for a disk.
  std::function<void(store&, std::string const& path)> configure;

  /// Told of how many steps the training takes, before a generation is served.
  std::function<void(std::uint64_t steps)> plan = [](std::uint64_t) {};

  /// Told of every version that the first range's store has frozen by itself.
  std::function<void(std::uint64_t generation, push_result const&)> frozen;

  /// Told when the backup of a range cannot be reached.
  std::function<void(std::uint64_t generation, std::uint32_t range)> cut_off;

  /// Told when a store has failed (`store_failure`): it is of no use any more, and the process had better
  /// end.
  std::function<void(std::string const& why)> failed = {};

  /// A backup that is lost is called for so long before that is told.
  std::chrono::milliseconds patience = net::some_patience;
};

/// What this work with a store returns; where the store has failed that is told, and thrown.
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
