// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "edl/base/checkpoint/model_file.hpp"
#include "edl/core/partition.hpp"
#include "edl/job/master/coordinator.hpp"
#include "edl/job/master/server/model_keepers.hpp"
#include "edl/job/master/server/orders.hpp"
#include "edl/job/master/server/server_options.hpp"

namespace edl::master {

/// Reads the model from its keepers. Its arguments must outlive it. Thread safety: only on the node's thread.
class model_source {
 public:
  model_source(server_options const& options, coordinator const& decisions, model_keepers const& keepers,
               orders& orders)
      : options_(options), coordinator_(decisions), keepers_(keepers), orders_(orders) {}

  /// A version of the model: all its variables, and the sources of its tables' rows.
  struct model {
    std::vector<float> variables;
    std::vector<checkpoint::row_source> tables;
    std::uint64_t version = 0;
  };

  /// The trained model, after the training. Throws error.
  asio::awaitable<model> last();

  /// A version that is being evaluated. Throws error.
  asio::awaitable<model> evaluated(evaluated_version of);

  /// A keeper's rows of the tables: those of these hash slots, and how many of each table.
  struct row_part {
    keeper target;
    element_range slots;
    std::vector<std::uint64_t> rows;
  };
  asio::awaitable<std::vector<row_part>> row_parts(std::uint64_t version);

  /// Whether workers may have different rows.
  bool shares_rows() const { return options_.job.replicas && !options_.files.layout.tables.empty(); }

 private:
  order_terms current(char const* name) const;
  asio::awaitable<std::uint64_t> version_of(keeper const& k);
  asio::awaitable<std::uint64_t> pull_ranges(std::vector<keeper> const& from,
                                             std::optional<std::uint64_t> frozen, std::span<float> variables);
  asio::awaitable<model> newest_copy();
  asio::awaitable<std::vector<checkpoint::row_source>> row_sources(std::uint64_t version);

  server_options const& options_;
  coordinator const& coordinator_;
  model_keepers const& keepers_;
  orders& orders_;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/server/model_source.ipp"
#endif
