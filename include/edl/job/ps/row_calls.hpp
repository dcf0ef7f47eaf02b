// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <vector>

#include "edl/base/net/request.hpp"
#include "edl/job/ps/row_update.hpp"
#include "edl/job/ps/shards.hpp"

namespace edl::ps {

/// A server's calls for rows of tables. Thread safety: only on the node's thread.
class row_calls {
 public:
  /// `of` must outlive this.
  explicit row_calls(shards& of) : shards_(of) {}

  /// The weights of rows, now or at a future version.
  asio::awaitable<void> pull(net::request& r);

  /// Some rows of a table in storage order, while the table does not change: between generations, or after
  /// the training.
  asio::awaitable<void> copy(net::request& r);

  /// How many rows the tables have at a version.
  asio::awaitable<void> count(net::request& r);

 private:
  class memory;

  shards& shards_;
  std::vector<std::vector<row_update>> buffers_;  // reply buffers for pulls, reused
};

}  // namespace edl::ps

#ifdef EDL_HEADER_ONLY
#include "edl/job/ps/row_calls.ipp"
#endif
