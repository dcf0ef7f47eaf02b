// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "edl/base/net/status.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/ledger_message.hpp"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/digest.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/ps/server.hpp"

namespace edl::ps {
namespace detail {

template <class Minibatch>
contribution contribution_of(Minibatch const& m, float rate) {
  minibatch_key const key{{m.task().epoch(), m.task().index()}, m.minibatch(), m.minibatches()};
  return {key, m.records(), m.skipped(), rate};
}

inline constexpr int most_of_a_round = 4096;  // minibatches; --outer_steps has no more

inline std::vector<contribution> contributions_of(wire::PushRequest const& p) {
  if (p.more_size() >= most_of_a_round)
    throw net::call_error(net::status::invalid,
                          fmt::format("a push of more than {} minibatches", most_of_a_round));
  float const rate = p.has_rate() ? p.rate() : 1;
  std::vector<contribution> all{contribution_of(p, rate)};
  for (auto const& m : p.more()) all.push_back(contribution_of(m, rate));
  return all;
}

}  // namespace detail

EDL_INLINE server::server(net::node& on, server_options options, logger log)
    : node_(on), options_(std::move(options)), log_(std::move(log)), shards_(on.executor(), options_.name) {}

EDL_INLINE asio::awaitable<void> server::handle(net::request& r) {
  switch (r.method()) {
    case wire::method::pull:
      return pull(r);
    case wire::method::push:
      return push(r);
    case wire::method::replicate:
      return replicate(r);
    case wire::method::digest:
      return digest_of(r);
    case wire::method::pull_rows:
      return rows_.pull(r);
    case wire::method::copy:
      return configurer_.copy(r);
    case wire::method::copy_rows:
      return rows_.copy(r);
    case wire::method::count_rows:
      return rows_.count(r);
    case wire::method::compare:
      return configurer_.compare(r);
    case wire::method::position:
      return position(r);
    case wire::method::configure:
      return configurer_.configure(r);
    case wire::method::claim:
      return claim(r);
    case wire::method::release:
      return release(r);
    case wire::method::commit:
      return commit(r);
    case wire::method::checkpoint:
      return checkpoint(r);
  }
  throw net::call_error(net::status::unknown_method,
                        fmt::format("{} knows no method {}", options_.name, r.method()));
}

EDL_INLINE asio::awaitable<void> server::pull(net::request& r) {
  auto const request = wire::unpack<wire::PullRequest>(r.message(), r.peer());
  if (request.check_memory()) {
    store const& doubted = *shards_.of(request.generation(), request.range()).state;
    use(options_, [&] { doubted.check_memory(); });
    if (!doubted.watches_memory()) co_await compare_with_backup(request.generation(), request.range());
  }
  store& from = *shards_.of(request.generation(), request.range()).state;
  // At the end of a job nobody may have frozen the last version, but it is also the current one.
  snapshot const s = !request.frozen()                     ? from.snapshot()
                     : request.version() == from.version() ? from.averaged()
                                                           : from.frozen().evaluation(request.version());
  wire::PullReply reply;
  reply.set_version(s.version());
  std::string const message = wire::pack(reply);
  bytes const range = std::as_bytes(s.variables());
  co_await r.reply(message, {&range, 1});
}

EDL_INLINE asio::awaitable<void> server::push(net::request& r) {
  auto const request = wire::unpack<wire::PushRequest>(r.message(), r.peer());
  store const& state = *shards_.of(request.generation(), request.range()).state;
  auto const memory =
      std::make_shared<push_memory>(buffers_, state, request, request.bfloat16(), r.payload_size());
  co_await r.read(memory->into());
  memory->spread();
  std::size_t const parameters = state.parameters();
  view<float> const values = memory->values();
  // The server may have changed its generation while the payload arrived.
  shard& s = shards_.of(request.generation(), request.range());
  push_result const result = use(options_, [&] {
    return s.state->push(detail::contributions_of(request), request.version(), values.first(parameters),
                         values.subspan(parameters), memory->rows());
  });
  shards_.stepped();
  if (result.outcome == push_outcome::applied) ++s.applied;
  if (s.backup) {
    if (result.outcome == push_outcome::applied)
      node_.spawn([this, request, memory, number = s.applied] { return send_on(request, memory, number); });
    co_await make_safe(request.range(), s.applied);
  }
  if (request.range() == 0) {
    for (push_result const& passed : result.passed) options_.frozen(shards_.generation(), passed);
    if (result.evaluate || result.checkpoint) options_.frozen(shards_.generation(), result);
  }
  wire::PushReply reply;
  reply.set_verdict(wire::PushReply::Verdict(int(result.outcome)));
  reply.set_version(result.version);
  std::string const answer = wire::pack(reply);
  co_await r.reply(answer);
}

// Sends an update on to the backup even if the process that pushed it is gone.
EDL_INLINE asio::awaitable<void> server::send_on(wire::PushRequest p, std::shared_ptr<push_memory> values,
                                                 std::uint64_t number) {
  if (shards_.generation() != p.generation()) co_return;
  wire::ReplicateRequest request;
  *request.mutable_push() = p;
  request.set_number(number);
  // Its number makes the call idempotent. A lost connection alone does not mean that the server is lost.
  net::outgoing what{.method = wire::method::replicate,
                     .message = wire::pack(request),
                     .idempotent = true,
                     .patience = options_.patience};
  what.payload = values->as_payload();
  std::shared_ptr<net::channel> const backup = shards_.find(p.range())->backup;
  std::string failed;
  try {
    co_await backup->call(what);
  } catch (net::call_error const& e) {
    failed = e.what();
  }
  if (shards_.generation() != p.generation()) co_return;
  shard& s = *shards_.find(p.range());
  if (failed.empty()) {
    s.safe = std::max(s.safe, number);  // the backup applies updates in order
  } else if (!s.cut_off) {
    s.cut_off = true;
    log_.warning(fmt::format("range {}: the backup is cut off: {}", p.range(), failed));
    options_.cut_off(p.generation(), p.range());
  }
  shards_.stepped();
}

// Returns when the backup has made all updates up to `number`.
EDL_INLINE asio::awaitable<void> server::make_safe(std::uint32_t range, std::uint64_t number) {
  std::uint64_t const generation = shards_.generation();
  for (;;) {
    shards_.check(generation);
    shard const& s = *shards_.find(range);
    if (s.safe >= number) co_return;
    if (s.cut_off)
      throw net::call_error(net::status::not_ready,
                            fmt::format("{} waits for another backup of range {}", options_.name, range));
    co_await shards_.changed();
  }
}

// Fails if the backup, which has made the same updates, has other variables. A server that does not watch its
// memory cannot know which of the two is wrong, but its own variables gave the loss that is not finite. If
// the backup was wrong, the loss is not finite again, and there is nothing to lose.
EDL_INLINE asio::awaitable<void> server::compare_with_backup(std::uint64_t generation, std::uint32_t range) {
  // Another update may reach the backup first. Few come while the model gives no loss.
  for (int attempt = 0; attempt < 3; ++attempt) {
    shard const& s = shards_.of(generation, range);
    if (!s.backup || s.cut_off) co_return;
    std::shared_ptr<net::channel> const backup = s.backup;
    std::uint64_t const own = digest(s.state->current());
    wire::DigestRequest request;
    request.set_generation(generation);
    request.set_range(range);
    request.set_applied(s.applied);
    net::outgoing const what{.method = wire::method::digest,
                             .message = wire::pack(request),
                             .idempotent = true,
                             .patience = options_.patience};
    wire::DigestReply reply;
    try {
      net::reply const answer = co_await backup->call(what);
      reply = wire::unpack<wire::DigestReply>(answer.message, backup->name());
    } catch (net::call_error const& e) {
      log_.debug(fmt::format("range {} cannot be compared with its backup: {}", range, e.what()));
      co_return;
    }
    if (reply.applied() != request.applied()) continue;
    if (reply.digest() == own) co_return;
    use(options_, [&] {
      throw store_failure(
          fmt::format("a loss is not finite, and the variables of range {} differ from those of its backup, "
                      "so the memory of this machine may be faulty",
                      range));
    });
  }
}

EDL_INLINE asio::awaitable<void> server::digest_of(net::request& r) {
  auto const request = wire::unpack<wire::DigestRequest>(r.message(), r.peer());
  while (shards_.of(request.generation(), request.range(), false).applied < request.applied())
    co_await shards_.changed();
  shard const& s = shards_.of(request.generation(), request.range(), false);
  wire::DigestReply reply;
  reply.set_applied(s.applied);
  if (s.applied == request.applied()) reply.set_digest(digest(s.state->current()));
  std::string const answer = wire::pack(reply);
  co_await r.reply(answer);
}

EDL_INLINE asio::awaitable<void> server::replicate(net::request& r) {
  auto const request = wire::unpack<wire::ReplicateRequest>(r.message(), r.peer());
  wire::PushRequest const& p = request.push();
  store const& state = *shards_.of(p.generation(), p.range(), false).state;
  std::size_t const parameters = state.parameters();
  push_memory memory(buffers_, state, p, false, r.payload_size());
  co_await r.read(memory.into());
  view<float> const values = memory.values();
  while (shards_.of(p.generation(), p.range(), false).applied + 1 < request.number())
    co_await shards_.changed();
  shard& s = shards_.of(p.generation(), p.range(), false);
  if (s.applied + 1 == request.number()) {
    push_result const result = use(options_, [&] {
      return s.state->push(detail::contributions_of(p), p.version(), values.first(parameters),
                           values.subspan(parameters), memory.rows());
    });
    if (result.outcome != push_outcome::applied)
      throw net::call_error(net::status::internal,
                            fmt::format("{} is not a copy of range {}", options_.name, p.range()));
    ++s.applied;
    shards_.stepped();
  }
  std::string const answer = wire::pack(wire::Empty{});
  co_await r.reply(answer);
}

EDL_INLINE asio::awaitable<void> server::position(net::request& r) {
  auto const request = wire::unpack<wire::PositionRequest>(r.message(), r.peer());
  shard const& s = shards_.of(request.generation(), request.range());
  task_position const at = s.state->segments().position({request.task().epoch(), request.task().index()});
  wire::PositionReply reply;
  reply.set_applied(at.applied);
  reply.set_closed(at.closed);
  std::string const answer = wire::pack(reply);
  co_await r.reply(answer);
}

EDL_INLINE asio::awaitable<void> server::reach(net::request const& r, std::uint64_t generation,
                                               std::uint32_t range, std::uint64_t version) {
  return shards_.reach(generation, range, version, clock::now() + r.time_left());
}

EDL_INLINE asio::awaitable<void> server::claim(net::request& r) {
  auto const request = wire::unpack<wire::ClaimRequest>(r.message(), r.peer());
  co_await reach(r, request.generation(), request.range(), request.version());
  shards_.of(request.generation(), request.range()).state->frozen().evaluation(request.version());
  std::string const answer = wire::pack(wire::Empty{});
  co_await r.reply(answer);
}

EDL_INLINE asio::awaitable<void> server::release(net::request& r) {
  auto const request = wire::unpack<wire::ReleaseRequest>(r.message(), r.peer());
  if (shard* const s = shards_.find(request.range()))
    request.evaluation() ? s->state->frozen().release_evaluation(request.version())
                         : s->state->frozen().release_checkpoint(request.version());
  std::string const answer = wire::pack(wire::Empty{});
  co_await r.reply(answer);
}

EDL_INLINE asio::awaitable<void> server::commit(net::request& r) {
  auto const request = wire::unpack<wire::CommitRequest>(r.message(), r.peer());
  wire::CommitReply reply;
  store& state = *shards_.of(request.generation(), request.range()).state;
  reply.set_version(use(options_, [&] { return state.flush(); }).version);
  if (std::string const tables = state.rows().describe(); !tables.empty())
    log_.info(fmt::format("version {}, range {}: {}", reply.version(), request.range(), tables));
  shards_.stepped();
  std::string const answer = wire::pack(reply);
  co_await r.reply(answer);
}

EDL_INLINE std::vector<checkpoint::manifest::file> server::write(
    full_snapshot const& what, wire::CheckpointRequest const& request) const {
  written_parts parts{.server = request.range(),
                      .servers = options_.ranges,
                      .variables = !request.rows_only(),
                      .most_changes = options_.delta_checkpoints};
  if (auto const& r = request.rows(); request.has_rows())
    parts.of_rows = {.slots = {r.first(), r.last()}, .part = r.part(), .parts = r.parts()};
  return write_snapshot(what, options_.checkpoints.at(request.path()), options_.layout, parts);
}

EDL_INLINE asio::awaitable<void> server::checkpoint(net::request& r) {
  auto const request = wire::unpack<wire::CheckpointRequest>(r.message(), r.peer());
  co_await reach(r, request.generation(), request.range(), request.version());
  store& from = *shards_.of(request.generation(), request.range()).state;
  full_snapshot what = use(options_, [&] {
    return request.final() ? from.full_snapshot() : from.frozen().checkpoint(request.version());
  });
  if (std::string const tables = from.rows().describe(); !tables.empty() && !request.final())
    log_.info(fmt::format("version {}, range {}: {}", what.version(), request.range(), tables));
  std::vector<checkpoint::manifest::file> files;
  std::string fault;  // in the rows being written
  std::function<void()> const work = [&] {
    try {
      files = write(what, request);
    } catch (memory_fault const& e) {
      fault = e.what();
    }
  };
  co_await disk_.run(std::string(), work);
  use(options_, [&] {
    if (!fault.empty()) throw store_failure(fault);
  });
  wire::CheckpointReply reply;
  for (checkpoint::manifest::file const& file : files) {
    auto& out = *reply.add_files();
    out.set_name(file.name);
    out.set_bytes(file.bytes);
    out.set_crc32(file.crc32);
    out.set_version(file.version);
    wire::to_message(file.ledger, *out.mutable_ledger());
  }
  std::string const answer = wire::pack(reply);
  co_await r.reply(answer);
}

}  // namespace edl::ps
