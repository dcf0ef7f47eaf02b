// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <asio/co_spawn.hpp>
#include <asio/use_awaitable.hpp>
#include <cstring>

#include "edl/core/bfloat16.hpp"
#include "edl/core/inline.hpp"
#include "edl/net/status.hpp"
#include "edl/ps/server.hpp"
#include "edl/wire/edl.pb.h"
#include "edl/wire/ledger_message.hpp"
#include "edl/wire/message.hpp"
#include "edl/wire/method.hpp"

namespace edl::ps {

/// Memory for one push, given back when the push is done with.
class server::gradient_buffer {
 public:
  gradient_buffer(std::vector<std::vector<float>>& pool, std::size_t size) : pool_(pool) {
    if (!pool_.empty()) {
      memory_ = std::move(pool_.back());
      pool_.pop_back();
    }
    memory_.resize(size);
  }
  gradient_buffer(gradient_buffer const&) = delete;
  gradient_buffer& operator=(gradient_buffer const&) = delete;
  ~gradient_buffer() { pool_.push_back(std::move(memory_)); }

  std::span<float> values() { return memory_; }

 private:
  std::vector<std::vector<float>>& pool_;
  std::vector<float> memory_;
};

EDL_INLINE server::server(net::node& on, store& state, server_options options, logger log)
    : node_(on),
      store_(state),
      options_(std::move(options)),
      log_(std::move(log)),
      advanced_(on.executor()) {}

EDL_INLINE asio::awaitable<void> server::handle(net::request& r) {
  switch (r.method()) {
    case wire::method::pull:
      return pull(r);
    case wire::method::push:
      return push(r);
    case wire::method::position:
      return position(r);
    case wire::method::configure:
      return configure(r);
    case wire::method::claim:
      return claim(r);
    case wire::method::release:
      return release(r);
    case wire::method::settle:
      return settle(r);
    case wire::method::checkpoint:
      return checkpoint(r);
  }
  throw net::call_error(net::status::unknown_method,
                        fmt::format("ps-{} knows no method {}", options_.id, r.method()));
}

EDL_INLINE void server::check(std::uint64_t generation) const {
  if (generation_ == 0)
    throw net::call_error(net::status::not_ready,
                          fmt::format("ps-{} has not been configured yet", options_.id));
  if (generation != generation_)
    throw net::call_error(net::status::stale_generation, fmt::format("ps-{} is at generation {}, not {}",
                                                                     options_.id, generation_, generation));
}

EDL_INLINE asio::awaitable<void> server::pull(net::request& r) {
  auto const request = wire::unpack<wire::PullRequest>(r.message(), r.peer());
  check(request.generation());
  // A frozen version that is also the current one may have been frozen by nobody: the end of a job.
  snapshot const s = request.frozen() && request.version() != store_.version()
                         ? store_.evaluation(request.version())
                         : store_.snapshot();
  wire::PullReply reply;
  reply.set_version(s.version());
  std::string const message = wire::pack(reply);
  bytes const range = std::as_bytes(s.variables());
  co_await r.reply(message, {&range, 1});
}

EDL_INLINE asio::awaitable<void> server::push(net::request& r) {
  auto const request = wire::unpack<wire::PushRequest>(r.message(), r.peer());
  check(request.generation());
  gradient_buffer memory(buffers_, store_.parameters() + store_.state());
  std::span<float> const values = memory.values();
  // What comes in half the space comes into the space's second half, the state where it belongs, and is
  // spread from the start.
  std::size_t const parameters = store_.parameters(), skipped = request.halved() ? parameters * 2 : 0;
  std::span<std::byte> const into = std::as_writable_bytes(values).subspan(skipped);
  co_await r.read(into);
  for (std::size_t i = 0; skipped && i < parameters; ++i) {
    std::uint16_t half;
    std::memcpy(&half, into.data() + 2 * i, 2);
    values[i] = from_bfloat16(half);
  }
  check(request.generation());  // the servers may have rolled back while the bytes came in
  minibatch_key const key{
      {request.task().epoch(), request.task().index()}, request.minibatch(), request.minibatches()};
  push_result const result = store_.push({key, request.records(), request.skipped()}, request.version(),
                                         values.first(parameters), values.subspan(parameters));
  advanced_.notify();
  if (result.evaluate || result.checkpoint) options_.frozen(generation_, result);
  wire::PushReply reply;
  reply.set_verdict(wire::PushReply::Verdict(int(result.verdict)));
  reply.set_version(result.version);
  std::string const answer = wire::pack(reply);
  co_await r.reply(answer);
}

EDL_INLINE asio::awaitable<void> server::position(net::request& r) {
  auto const request = wire::unpack<wire::PositionRequest>(r.message(), r.peer());
  check(request.generation());
  task_position const at = store_.position({request.task().epoch(), request.task().index()});
  wire::PositionReply reply;
  reply.set_applied(at.applied);
  reply.set_closed(at.closed);
  std::string const answer = wire::pack(reply);
  co_await r.reply(answer);
}

EDL_INLINE asio::awaitable<void> server::configure(net::request& r) {
  auto const request = wire::unpack<wire::ConfigureRequest>(r.message(), r.peer());
  if (request.generation() < generation_)
    throw net::call_error(net::status::stale_generation,
                          fmt::format("ps-{} is already at generation {}", options_.id, generation_));
  wire::ConfigureReply reply;
  if (request.keep()) {
    if (generation_ == 0)
      throw net::call_error(net::status::invalid, fmt::format("ps-{} has no state to keep", options_.id));
    generation_ = request.generation();
    store_.forget_frozen();
    reply.set_version(store_.version());
    wire::to_message(store_.counted(), *reply.mutable_ledger());
    log_.info(fmt::format("generation {}: goes on at version {}", generation_, store_.version()));
  } else if (request.generation() > generation_) {
    generation_ = 0;
    options_.configure(store_, request.restore());
    generation_ = request.generation();
    log_.info(fmt::format("generation {}: {} of {} variables from {}", generation_, store_.elements().size(),
                          options_.layout.size(),
                          request.restore().empty() ? "the seed" : request.restore()));
  }
  std::string const answer = wire::pack(reply);
  co_await r.reply(answer);
}

EDL_INLINE asio::awaitable<void> server::reach(net::request& r, std::uint64_t generation,
                                               std::uint64_t version) {
  auto const until = std::chrono::steady_clock::now() + r.time_left();
  for (;;) {
    check(generation);
    if (store_.version() >= version) co_return;
    bool const in_time = co_await advanced_.wait_until(until);
    if (!in_time) break;
  }
  throw net::call_error(net::status::not_ready, fmt::format("ps-{} is at version {}, not yet {}", options_.id,
                                                            store_.version(), version));
}

EDL_INLINE asio::awaitable<void> server::claim(net::request& r) {
  auto const request = wire::unpack<wire::ClaimRequest>(r.message(), r.peer());
  co_await reach(r, request.generation(), request.version());
  store_.evaluation(request.version());
  std::string const answer = wire::pack(wire::Empty{});
  co_await r.reply(answer);
}

EDL_INLINE asio::awaitable<void> server::release(net::request& r) {
  auto const request = wire::unpack<wire::ReleaseRequest>(r.message(), r.peer());
  request.evaluation() ? store_.release_evaluation(request.version())
                       : store_.release_checkpoint(request.version());
  std::string const answer = wire::pack(wire::Empty{});
  co_await r.reply(answer);
}

EDL_INLINE asio::awaitable<void> server::settle(net::request& r) {
  auto const request = wire::unpack<wire::SettleRequest>(r.message(), r.peer());
  check(request.generation());
  wire::SettleReply reply;
  reply.set_version(store_.flush().version);
  advanced_.notify();
  std::string const answer = wire::pack(reply);
  co_await r.reply(answer);
}

EDL_INLINE asio::awaitable<wire::manifest::file> server::write(cut const& what, std::string const& path) {
  co_return write_cut(what, path, options_.layout, options_.id, options_.servers);
}

EDL_INLINE asio::awaitable<void> server::checkpoint(net::request& r) {
  auto const request = wire::unpack<wire::CheckpointRequest>(r.message(), r.peer());
  co_await reach(r, request.generation(), request.version());
  cut what = request.final() ? store_.cut() : store_.checkpoint(request.version());
  // On a thread of its own: training goes on while the disk works. This coroutine stays on the node's thread.
  std::string const path = request.path();
  wire::manifest::file const file = co_await asio::co_spawn(writer_, write(what, path), asio::use_awaitable);
  wire::CheckpointReply reply;
  reply.set_file(file.name);
  reply.set_bytes(file.bytes);
  reply.set_crc32(file.crc32);
  reply.set_version(file.version);
  wire::to_message(file.ledger, *reply.mutable_ledger());
  std::string const answer = wire::pack(reply);
  co_await r.reply(answer);
}

}  // namespace edl::ps
