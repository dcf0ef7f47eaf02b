// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "edl/base/net/blocking.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/base/wire/row_copy.hpp"
#include "edl/compute/sparse/hash.hpp"
#include "edl/compute/sparse/row_bytes.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/partition.hpp"
#include "edl/job/master/server/model_source.hpp"

namespace edl::master {

// Calls are void once their generation is over.
EDL_INLINE order_terms model_source::current(char const* name) const {
  return {.name = name, .generation = coordinator_.generation(), .timeout = options_.order_timeout};
}

// Which keepers have which rows of the tables: each row once, in the order of hash slots. Workers that share
// the rows may be asked before all of them are at the version.
EDL_INLINE asio::awaitable<std::vector<model_source::row_part>> model_source::row_parts(
    std::uint64_t version) {
  wire::CountRowsRequest request;
  request.set_generation(coordinator_.generation());
  if (options_.job.replicas) request.set_version(version);
  std::vector<keeper> const keepers = keepers_.all();
  order_terms const terms = current("count_rows");
  auto const replies =
      co_await orders_.ask_all(keepers, wire::method::count_rows, request, control_timeout, terms);
  std::vector<row_part> all, chosen;
  for (std::size_t i = 0; i < keepers.size(); ++i) {
    auto const reply = wire::unpack<wire::CountRowsReply>(replies[i], keepers[i].to->name());
    if (std::size_t(reply.rows_size()) != options_.files.layout.tables.size())
      throw error(fmt::format("{} has {} tables, the model has {}", keepers[i].to->name(), reply.rows_size(),
                              options_.files.layout.tables.size()));
    all.push_back({keepers[i], {reply.first(), reply.last()}, {reply.rows().begin(), reply.rows().end()}});
  }
  // Members whose copies continued have frozen variables that others may lack.
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
      throw error(fmt::format("no worker has the rows from hash slot {} on", at));
    chosen.push_back(*best);
  }
  co_return chosen;
}

// The rows of the tables, after training has ended. They are requested on a different thread from this one.
EDL_INLINE asio::awaitable<std::vector<checkpoint::row_source>> model_source::row_sources(
    std::uint64_t version) {
  std::vector<checkpoint::row_source> all;
  if (options_.files.layout.tables.empty()) co_return all;
  std::uint64_t const generation = coordinator_.generation();
  std::vector<row_part> const from = co_await row_parts(version);
  for (std::uint32_t t = 0; t < options_.files.layout.tables.size(); ++t) {
    all.push_back({0, [from, generation, t, width = std::size_t(options_.files.layout.tables[t].width)](
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

// The version of a keeper's range, after training has ended.
EDL_INLINE asio::awaitable<std::uint64_t> model_source::version_of(keeper const& k) {
  wire::CommitRequest request;
  request.set_generation(coordinator_.generation());
  request.set_range(k.range);
  net::outgoing const ask{
      .method = wire::method::commit, .message = wire::pack(request), .timeout = control_timeout};
  std::string const reply = co_await orders_.order(k, ask, current("commit"));
  co_return wire::unpack<wire::CommitReply>(reply, k.to->name()).version();
}

// The variables as evaluated, of the current or of a frozen version; each keeper has one range.
EDL_INLINE asio::awaitable<std::uint64_t> model_source::pull_ranges(std::vector<keeper> const& from,
                                                                    std::optional<std::uint64_t> frozen,
                                                                    std::span<float> variables) {
  std::size_t const ranges = options_.job.replicas ? 1 : coordinator_.generations().places().size();
  if (from.size() != ranges)
    throw error(fmt::format("only {} of {} ranges of the model have a server that can be reached",
                            from.size(), ranges));
  std::uint64_t version = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    element_range const range = partition(variables.size(), std::uint32_t(from.size()), std::uint32_t(i),
                                          options_.files.layout.borders);
    wire::PullRequest request;
    request.set_range(from[i].range);
    request.set_generation(coordinator_.generation());
    request.set_frozen(true);
    if (frozen)
      request.set_version(*frozen);
    else
      request.set_version(co_await version_of(from[i]));
    net::outgoing what{.method = wire::method::pull, .message = wire::pack(request), .timeout = disk_timeout};
    what.into.push_back(std::as_writable_bytes(variables.subspan(range.first, range.size())));
    std::string const reply = co_await orders_.order(from[i], what, current("pull"));
    version = wire::unpack<wire::PullReply>(reply, from[i].to->name()).version();
  }
  co_return version;
}

// One member may have made the last step before the others. The rows must come from the same member as the
// variables.
EDL_INLINE asio::awaitable<model_source::model> model_source::newest_copy() {
  wire::CommitRequest commit;
  commit.set_generation(coordinator_.generation());
  wire::PullRequest request;
  request.set_generation(coordinator_.generation());
  request.set_frozen(true);  // in the form that evaluation uses
  net::outgoing const ask{.method = wire::method::commit,
                          .message = wire::pack(commit),
                          .timeout = control_timeout,
                          .idempotent = true,
                          .patience = net::some_patience};
  std::multimap<std::uint64_t, keeper, std::greater<>> newest;
  std::string why = "no worker has it";
  for (auto const& k : keepers_.all()) try {
      net::reply const reply = co_await k.to->call(ask);
      newest.emplace(wire::unpack<wire::CommitReply>(reply.message, k.to->name()).version(), k);
    } catch (net::call_error const& e) {
      why = e.what();
    }
  model m;
  m.variables.resize(options_.files.layout.size());
  for (auto const& [version, k] : newest) try {
      request.set_version(version);
      net::outgoing what{.method = wire::method::pull,
                         .message = wire::pack(request),
                         .timeout = disk_timeout,
                         .idempotent = true,
                         .patience = net::some_patience};
      what.into.push_back(std::as_writable_bytes(std::span(m.variables)));
      co_await k.to->call(what);
      m.tables = co_await row_sources(version);
      m.version = version;
      co_return m;
    } catch (net::call_error const& e) {
      why = e.what();
    }
  throw error(fmt::format("the model is not available: {}", why));
}

EDL_INLINE asio::awaitable<model_source::model> model_source::last() {
  if (options_.job.replicas) co_return co_await newest_copy();
  model m;
  m.variables.resize(options_.files.layout.size());
  auto const from = keepers_.all();
  m.tables = co_await row_sources(0);
  m.version = co_await pull_ranges(from, {}, m.variables);
  co_return m;
}

EDL_INLINE asio::awaitable<model_source::model> model_source::evaluated(evaluated_version of) {
  model m;
  m.version = of.version;
  m.variables.resize(options_.files.layout.size());
  if (!options_.job.replicas) {
    auto const from = keepers_.all();
    co_await pull_ranges(from, of.version, m.variables);
    m.tables = co_await row_sources(of.version);
    co_return m;
  }
  // Each of them has every range.
  auto const from = of.frozen ? keepers_.holders(of.version) : keepers_.all(true);
  std::string why = "no worker has it";
  for (keeper const& k : from) try {
      std::vector<keeper> const one(1, k);
      co_await pull_ranges(one, of.version, m.variables);
      m.tables = co_await row_sources(of.version);
      co_return m;
    } catch (net::call_error const& e) {
      why = e.what();
    }
  throw error(fmt::format("the model is not available: {}", why));
}

}  // namespace edl::master
