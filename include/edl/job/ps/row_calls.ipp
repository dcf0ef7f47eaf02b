// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "edl/base/net/status.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/message.hpp"
#include "edl/compute/sparse/row_bytes.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/ps/row_calls.hpp"

namespace edl::ps {
namespace detail {

inline constexpr std::size_t rows_per_reply = std::size_t{4} << 20;  // bytes, approximately

}  // namespace detail

/// Memory for the reply to one pull of rows. It is reused, because it is large and fresh pages are slow.
class row_calls::memory {
 public:
  memory(std::vector<std::vector<row_update>>& pool, store const& of, wire::PullRowsRequest const& p)
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
  memory(memory const&) = delete;
  memory& operator=(memory const&) = delete;
  ~memory() { pool_.push_back(std::move(tables_)); }

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

EDL_INLINE asio::awaitable<void> row_calls::pull(net::request& r) {
  auto const request = wire::unpack<wire::PullRowsRequest>(r.message(), r.peer());
  std::shared_ptr<store> const from = shards_.of(request.generation(), request.range()).state;
  if (std::size_t(request.rows_size()) != from->rows().tables())
    throw net::call_error(net::status::invalid,
                          fmt::format("the request is for rows of {} tables, but {} keeps {}",
                                      request.rows_size(), shards_.name(), from->rows().tables()));
  std::uint64_t all = 0;
  for (std::uint32_t n : request.rows()) all += n;
  if (all * sizeof(std::uint64_t) != r.payload_size())
    throw net::call_error(
        net::status::invalid,
        fmt::format("the request is for {} rows, but has {} bytes of ids", all, r.payload_size()));
  memory held(buffers_, *from, request);
  co_await r.read(held.into());
  if (request.version() > from->version()) {
    co_await shards_.reach(request.generation(), request.range(), request.version(),
                           clock::now() + r.time_left());
    if (shards_.of(request.generation(), request.range()).state != from) throw shards_.overtaken();
  }
  std::vector<bytes> payload;
  for (std::size_t t = 0; t < from->rows().tables(); ++t) {
    row_update& rows = held.tables()[t];
    if (!from->rows().has_all(rows.ids))
      throw net::call_error(
          net::status::invalid,
          fmt::format("{} does not have the requested rows: other processes do", shards_.name()));
    from->rows().pull(t, rows.ids, rows.values);
    payload.push_back(std::as_bytes(std::span(rows.values)));
  }
  std::string const answer = wire::pack(wire::PullRowsReply{});
  co_await r.reply(answer, payload);
}

EDL_INLINE asio::awaitable<void> row_calls::copy(net::request& r) {
  auto const request = wire::unpack<wire::CopyRowsRequest>(r.message(), r.peer());
  store const& from = shards_.source(request.generation(), request.range());
  auto const last = std::uint32_t(request.last() == 0 ? from.rows().slots().last : request.last());
  if (request.table() >= from.rows().tables() || request.slot() > last || last > from.rows().slots().last)
    throw net::call_error(net::status::invalid, fmt::format("{} has no hash slot {} of table {}",
                                                            shards_.name(), request.slot(), request.table()));
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

EDL_INLINE asio::awaitable<void> row_calls::count(net::request& r) {
  auto const request = wire::unpack<wire::CountRowsRequest>(r.message(), r.peer());
  co_await shards_.reach(request.generation(), request.range(), request.version(),
                         clock::now() + r.time_left());
  store const& from = *shards_.of(request.generation(), request.range()).state;
  wire::CountRowsReply reply;
  reply.set_first(std::uint32_t(from.rows().slots().first));
  reply.set_last(std::uint32_t(from.rows().slots().last));
  for (std::size_t t = 0; t < from.rows().tables(); ++t) reply.add_rows(from.rows().table(t).size());
  std::string const answer = wire::pack(reply);
  co_await r.reply(answer);
}

}  // namespace edl::ps
