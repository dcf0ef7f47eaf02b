// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "edl/core/inline.hpp"
#include "edl/net/status.hpp"
#include "edl/ps/server.hpp"
#include "edl/sparse/row_bytes.hpp"
#include "edl/wire/edl.pb.h"
#include "edl/wire/message.hpp"
#include "edl/wire/method.hpp"
#include "edl/wire/row_copy.hpp"

/// Calls of a server that concern rows of tables.
namespace edl::ps {
namespace detail {

inline constexpr std::size_t rows_per_reply = std::size_t{4} << 20;  // bytes, about

}  // namespace detail

/// Memory for one pull of rows, given back when it is answered: it is large, and fresh pages are slow.
class server::pull_memory {
 public:
  pull_memory(std::vector<std::vector<row_update>>& pool, store const& of, wire::PullRowsRequest const& p)
      : pool_(pool) {
    if (!pool_.empty()) {
      tables_ = std::move(pool_.back());
      pool_.pop_back();
    }
    tables_.resize(of.rows().tables());
    for (std::size_t t = 0; t < of.rows().tables(); ++t) {
      tables_[t].ids.resize(p.rows(int(t)));
      tables_[t].values.resize(p.rows(int(t)) * std::size_t(of.rows().table(t).width()));
    }
  }
  pull_memory(pull_memory const&) = delete;
  pull_memory& operator=(pull_memory const&) = delete;
  ~pull_memory() { pool_.push_back(std::move(tables_)); }

  std::vector<std::span<std::byte>> into() {
    std::vector<std::span<std::byte>> all;
    for (row_update& t : tables_) all.push_back(std::as_writable_bytes(std::span(t.ids)));
    return all;
  }
  std::vector<row_update>& tables() { return tables_; }

 private:
  std::vector<std::vector<row_update>>& pool_;
  std::vector<row_update> tables_;
};

EDL_INLINE asio::awaitable<void> server::pull_rows(net::request& r) {
  auto const request = wire::unpack<wire::PullRowsRequest>(r.message(), r.peer());
  std::shared_ptr<store> const from = of(request.generation(), request.range()).state;
  if (std::size_t(request.rows_size()) != from->rows().tables())
    throw net::call_error(net::status::invalid,
                          fmt::format("rows of {} tables are asked for, {} keeps {}", request.rows_size(),
                                      options_.name, from->rows().tables()));
  std::uint64_t all = 0;
  for (std::uint32_t n : request.rows()) all += n;
  if (all * sizeof(std::uint64_t) != r.payload_size())
    throw net::call_error(net::status::invalid,
                          fmt::format("{} rows are asked for by {} bytes of ids", all, r.payload_size()));
  pull_memory memory(pull_buffers_, *from, request);
  co_await r.read(memory.into());
  if (request.version() > from->version()) {
    co_await reach(r, request.generation(), request.range(), request.version());
    if (of(request.generation(), request.range()).state != from) throw overtaken();
  }
  std::vector<bytes> payload;
  for (std::size_t t = 0; t < from->rows().tables(); ++t) {
    auto& [ids, weights] = memory.tables()[t];
    if (!from->rows().has_all(ids))
      throw net::call_error(net::status::invalid,
                            fmt::format("{} is asked for rows that others have, not it", options_.name));
    from->rows().pull(t, ids, weights);
    payload.push_back(std::as_bytes(std::span(weights)));
  }
  std::string const answer = wire::pack(wire::PullRowsReply{});
  co_await r.reply(answer, payload);
}

// While generations change, or when training is over: from a table that rests.
EDL_INLINE asio::awaitable<void> server::copy_rows(net::request& r) {
  auto const request = wire::unpack<wire::CopyRowsRequest>(r.message(), r.peer());
  auto const it = shards_.find(request.range());
  if (configuring_ != request.generation() || it == shards_.end())
    throw net::call_error(net::status::not_ready,
                          fmt::format("{} does not have range {} in generation {}", options_.name,
                                      request.range(), request.generation()));
  store const& from = *it->second.state;
  auto const last = std::uint32_t(request.last() == 0 ? from.rows().slots().last : request.last());
  if (request.table() >= from.rows().tables() || request.slot() > last || last > from.rows().slots().last)
    throw net::call_error(net::status::invalid, fmt::format("{} has no hash slot {} of table {}",
                                                            options_.name, request.slot(), request.table()));
  sparse::row_cursor at{std::max(request.slot(), std::uint32_t(from.rows().slots().first)), request.row()};
  wire::CopyRowsReply reply;
  sparse::copied_rows some;
  sparse::append_rows(from.rows().table(request.table()), at, last, detail::rows_per_reply, some);
  reply.set_rows(std::move(some.rows));
  reply.set_candidates(std::move(some.candidates));
  reply.set_slot(at.slot);
  reply.set_row(at.row);
  reply.set_values(std::uint32_t(from.rows().table(request.table()).values()));
  std::string const answer = wire::pack(reply);
  co_await r.reply(answer);
}

EDL_INLINE asio::awaitable<void> server::count_rows(net::request& r) {
  auto const request = wire::unpack<wire::CountRowsRequest>(r.message(), r.peer());
  co_await reach(r, request.generation(), request.range(), request.version());
  store const& from = *of(request.generation(), request.range()).state;
  wire::CountRowsReply reply;
  reply.set_first(std::uint32_t(from.rows().slots().first));
  reply.set_last(std::uint32_t(from.rows().slots().last));
  for (std::size_t t = 0; t < from.rows().tables(); ++t) reply.add_rows(from.rows().table(t).size());
  std::string const answer = wire::pack(reply);
  co_await r.reply(answer);
}

EDL_INLINE asio::awaitable<void> server::fetch_rows(store& into, net::channel& holder,
                                                    std::uint64_t generation, std::uint32_t range) {
  for (std::uint32_t t = 0; t < into.rows().tables(); ++t)
    for (wire::row_copy copy(generation, range, t, into.rows().slots()); !copy.done();) {
      net::outgoing what{.method = wire::method::copy_rows, .message = copy.request(), .idempotent = true};
      std::string const answer = co_await ask_holder(holder, generation, std::move(what));
      copy.take(answer, holder.name(),
                [&](bytes rows, std::size_t, bytes candidates) { into.rows().put(t, rows, candidates); });
    }
}

}  // namespace edl::ps
