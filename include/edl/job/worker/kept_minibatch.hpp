// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "edl/base/net/node.hpp"
#include "edl/base/net/request.hpp"
#include "edl/core/task_kind.hpp"
#include "edl/job/worker/links.hpp"

namespace edl::worker {

/// The newest minibatches of a worker that others may recompute, with their inputs: variables, and the rows
/// of tables that their records need. Thread safety: safe; `handle` on the node's thread.
class kept_minibatch {
 public:
  struct inputs {
    task_key task;
    std::uint32_t index = 0;
    std::vector<float> variables, rows;  ///< rows: table by table, each in the order of its records
  };

  /// Keeps the last minibatch of each task, and at most `most` of the newest in all.
  void keep(std::shared_ptr<inputs const> what, std::size_t most);

  /// Serves `wire::method::kept`.
  asio::awaitable<void> handle(net::request& r) const;

  /// Copies the inputs that another worker, or this one (`self`), has kept of the minibatch of a check.
  /// False: its records need rows other than the requested ones. Throws net::call_error if it is no longer
  /// kept, and as channels do.
  bool fetch(net::node& on, std::uint32_t self, assignment const& check, std::span<float> variables,
             std::span<std::span<float> const> rows) const;

 private:
  std::shared_ptr<inputs const> find(task_key const& task, std::uint32_t index) const;

  mutable std::mutex lock_;
  std::deque<std::shared_ptr<inputs const>> kept_;
};

}  // namespace edl::worker

#ifdef EDL_HEADER_ONLY
#include "edl/job/worker/kept_minibatch.ipp"
#endif
