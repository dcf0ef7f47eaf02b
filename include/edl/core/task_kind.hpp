// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/mode.hpp"

namespace edl {

/// The kinds of the master's replies to a worker that asks for work. The numbers are the protocol's
/// (`wire::Task::Kind`).
enum class task_kind {
  wait = 0,
  training = 1,
  evaluation = 2,
  prediction = 3,
  finished = 4,
  check = 5,  ///< recomputes a minibatch that another worker has trained, and applies nothing
};

/// Whether there are records to work on.
constexpr bool is_work(task_kind k) { return k != task_kind::wait && k != task_kind::finished; }

/// The mode in which the records of such a task pass through the network.
constexpr mode mode_of(task_kind k) {
  return k == task_kind::training || k == task_kind::check ? mode::training
         : k == task_kind::evaluation                      ? mode::evaluation
                                                           : mode::prediction;
}

}  // namespace edl
