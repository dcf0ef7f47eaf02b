// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edl/base/net/blocking.hpp"
#include "edl/base/net/channel.hpp"
#include "edl/base/net/status.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/worker/kept_minibatch.hpp"

namespace edl::worker {

EDL_INLINE void kept_minibatch::keep(std::shared_ptr<inputs const> what, std::size_t most) {
  invariant(what != nullptr && most > 0, "a kept minibatch stays for some minibatches");
  std::lock_guard const guard(lock_);
  // The master has a task's last minibatch checked, so only that one is kept.
  if (!kept_.empty() && kept_.back()->task == what->task) kept_.pop_back();
  kept_.push_back(std::move(what));
  while (kept_.size() > most) kept_.pop_front();
}

EDL_INLINE std::shared_ptr<kept_minibatch::inputs const> kept_minibatch::find(task_key const& task,
                                                                              std::uint32_t index) const {
  std::lock_guard const guard(lock_);
  // After a rollback a job trains the same minibatch again, with other weights.
  for (auto k = kept_.rbegin(); k != kept_.rend(); ++k)
    if ((*k)->task == task && (*k)->index == index) return *k;
  throw net::call_error(net::status::not_ready,
                        fmt::format("minibatch {} of task {} is no longer kept", index, task.index));
}

EDL_INLINE asio::awaitable<void> kept_minibatch::handle(net::request& r) const {
  auto const request = wire::unpack<wire::KeptRequest>(r.message(), r.peer());
  auto const found = find({request.task().epoch(), request.task().index()}, request.minibatch());
  if (found->rows.size() != request.rows())
    throw net::call_error(net::status::invalid, "its records need other rows of tables");
  bytes const payload[] = {std::as_bytes(std::span(found->variables)), std::as_bytes(std::span(found->rows))};
  std::string const answer = wire::pack(wire::Empty{});
  co_await r.reply(answer, payload);
}

EDL_INLINE bool kept_minibatch::fetch(net::node& on, std::uint32_t self, assignment const& check,
                                      std::span<float> variables,
                                      std::span<std::span<float> const> rows) const {
  std::size_t count = 0;
  for (auto const& of_table : rows) count += of_table.size();
  if (check.of == self) {
    auto const found = find(check.task, check.applied);
    if (found->rows.size() != count || found->variables.size() != variables.size()) return false;
    std::ranges::copy(found->variables, variables.begin());
    auto from = found->rows.begin();
    for (auto const& of_table : rows) {
      std::copy_n(from, of_table.size(), of_table.begin());
      from += std::ptrdiff_t(of_table.size());
    }
    return true;
  }
  wire::KeptRequest request;
  request.mutable_task()->set_epoch(check.task.epoch);
  request.mutable_task()->set_index(check.task.index);
  request.set_minibatch(check.applied);
  request.set_rows(count);
  net::channel from(on, net::parse_addresses(check.addresses), fmt::format("worker-{}", check.of));
  net::outgoing what{.method = wire::method::kept,
                     .message = wire::pack(request),
                     .idempotent = true,
                     .patience = net::some_patience};
  what.into.push_back(std::as_writable_bytes(variables));
  for (auto const& of_table : rows) what.into.push_back(std::as_writable_bytes(of_table));
  try {
    net::wait(from, std::move(what));
    return true;
  } catch (net::call_error const& e) {
    if (e.code() != net::status::invalid) throw;
    return false;
  }
}

}  // namespace edl::worker
