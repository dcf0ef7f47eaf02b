// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "edl/core/inline.hpp"
#include "edl/master/server.hpp"
#include "edl/net/blocking.hpp"
#include "edl/sparse/hash.hpp"
#include "edl/sparse/row_bytes.hpp"
#include "edl/wire/edl.pb.h"
#include "edl/wire/message.hpp"
#include "edl/wire/method.hpp"
#include "edl/wire/row_copy.hpp"

// Who has the rows of tables, and what the master makes of them.
namespace edl::master {

/// Whether workers may have different rows.
EDL_INLINE bool server::shares_rows() const {
  return options_.job.replicas && !options_.layout.tables.empty();
}

// Who has which rows of the tables: each row once, in the order of the hash slots. Workers that share them
// may be asked before all are at the version.
EDL_INLINE asio::awaitable<std::vector<server::row_part>> server::row_parts(std::uint64_t version) {
  wire::CountRowsRequest request;
  request.set_generation(coordinator_.generation());
  if (options_.job.replicas) request.set_version(version);
  order_terms const terms{
      .name = "count_rows", .generation = coordinator_.generation(), .timeout = options_.order_timeout};
  std::vector<keeper> const asked = keepers();
  auto const replies = co_await ask_all(asked, wire::method::count_rows, request, control_timeout, terms);
  std::vector<row_part> all, chosen;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    auto const reply = wire::unpack<wire::CountRowsReply>(replies[i], asked[i].to->name());
    if (std::size_t(reply.rows_size()) != options_.layout.tables.size())
      throw error(fmt::format("{} has {} tables, the model has {}", asked[i].to->name(), reply.rows_size(),
                              options_.layout.tables.size()));
    all.push_back({asked[i], {reply.first(), reply.last()}, {reply.rows().begin(), reply.rows().end()}});
  }
  // Those whose copies went on have frozen variables that others may lack.
  if (options_.job.replicas)
    std::ranges::stable_partition(all, [&](row_part const& p) {
      auto const& members = coordinator_.current_world().members;
      auto const it = std::ranges::find(members, p.target.id, &world::member::id);
      return it != members.end() && it->current;
    });
  for (std::size_t at = 0; at < sparse::hash_slots; at = chosen.back().slots.last) {
    row_part const* best = nullptr;
    for (row_part const& p : all)
      if (p.slots.first == at && p.slots.last > (best ? best->slots.last : at)) best = &p;
    if (!best || best->slots.last > sparse::hash_slots)
      throw error(fmt::format("nobody has the rows from hash slot {} on", at));
    chosen.push_back(*best);
  }
  co_return chosen;
}

// The rows of tables, which nobody trains any more. They are asked for on another thread than this.
EDL_INLINE asio::awaitable<std::vector<checkpoint::row_source>> server::row_sources(std::uint64_t version) {
  std::vector<checkpoint::row_source> all;
  if (options_.layout.tables.empty()) co_return all;
  std::uint64_t const generation = coordinator_.generation();
  std::vector<row_part> const from = co_await row_parts(version);
  for (std::uint32_t t = 0; t < options_.layout.tables.size(); ++t) {
    all.push_back({0, [from, generation, t, width = std::size_t(options_.layout.tables[t].width)](
                          checkpoint::row_source::sink const& to) {
                     for (auto const& [k, slots, counts] : from) {
                       for (wire::row_copy copy(generation, k.range, t, slots); !copy.done();) {
                         net::reply const answer = net::wait(*k.to, {.method = wire::method::copy_rows,
                                                                     .message = copy.request(),
                                                                     .timeout = disk_timeout,
                                                                     .idempotent = true});
                         copy.take(answer.message, k.to->name(), [&](bytes rows, std::size_t values, bytes) {
                           std::vector<std::uint64_t> ids;
                           std::vector<float> weights;
                           sparse::for_each_row(rows, values, [&](auto const& header, view<float> row) {
                             if (row.size() < width)
                               throw error(fmt::format("{} has rows of {} values, the model's have {}",
                                                       k.to->name(), row.size(), width));
                             ids.push_back(header.id);
                             weights.insert(weights.end(), row.begin(), row.begin() + std::ptrdiff_t(width));
                           });
                           if (!ids.empty()) to(ids, weights);
                         });
                       }
                     }
                   }});
    for (row_part const& p : from) all[t].rows += p.rows[t];
  }
  co_return all;
}

}  // namespace edl::master
