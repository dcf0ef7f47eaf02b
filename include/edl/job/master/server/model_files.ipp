// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <utility>

#include "edl/base/checkpoint/directory.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/ledger_message.hpp"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/master/server/model_files.hpp"

namespace edl::master {

// ---- Checkpoints ----

EDL_INLINE model_files::finding model_files::look_for_checkpoint(std::optional<std::uint64_t> newest) const
    try {
  finding f;
  if (options_.files.directory.empty()) return f;
  auto const& files = options_.files;
  if (newest) f.warning = checkpoint::set_aside_newer(files.directory, *newest, files.allowed);
  bool const tolerant = options_.ignore_damaged_checkpoints;
  auto const search = checkpoint::find_checkpoint(
      options_.files.directory, checkpoint::check::checksums,
      tolerant ? checkpoint::unreadable::passed_over : checkpoint::unreadable::refused);
  if (!search.passed_over.empty()) f.warning += (f.warning.empty() ? "" : "; ") + search.warning();
  if (!search.newest && !search.passed_over.empty() && !tolerant)
    f.unusable = fmt::format(
        "no checkpoint in {} is usable; add --ignore_damaged_checkpoints to start from the beginning",
        options_.files.directory.path());
  if (!search.passed_over.empty()) f.point = options_.anew;
  if (search.newest) {
    checkpoint::manifest const m = checkpoint::read_manifest(files.directory.at(*search.newest));
    f.point = restore_point{*search.newest, m.version, m.applied(), m.generation};
  }
  return f;
} catch (std::exception const& e) {
  finding f;
  f.why = e.what();
  return f;
}

EDL_INLINE asio::awaitable<void> model_files::find(find_restore_point c) {
  auto const since = clock::now();
  orders::waiting_entry const shown(orders_, {{}, options_.files.directory.path(), {}, since});
  for (;;) {
    finding f;
    std::function<void()> const look = [&] { f = look_for_checkpoint(c.newest); };
    co_await checkpoints_.run(std::string(), look);  // removing large ones takes long
    if (coordinator_.generation() != c.generation || coordinator_.over()) co_return;
    if (!f.warning.empty()) log_.warning(f.warning);
    if (f.why.empty() && f.unusable.empty()) {
      coordinator_.restore_point_found(c.generation, f.point, clock::now());
      break;
    }
    bool const late = clock::now() - since >= options_.order_timeout;
    if (!f.unusable.empty() || late) {
      coordinator_.fail(f.unusable.empty() ? fmt::format("cannot search {} for checkpoints: {}",
                                                         options_.files.directory.path(), f.why)
                                           : f.unusable);
      break;
    }
    if (shown->reason.empty())
      log_.warning(fmt::format("cannot search for checkpoints yet, retrying: {}", f.why));
    shown->reason = f.why;
    co_await orders_.pause(options_.storage_pause);
  }
  loop_.run_commands();
}

// Returns why it could not write the checkpoint; empty: it has.
EDL_INLINE asio::awaitable<std::string> model_files::write(write_checkpoint c) {
  std::string const path = options_.files.path(c.version);
  try {
    checkpoint::job_files::attempt attempt;
    std::function<void()> const begin = [&] { attempt = options_.files.begin(c.version, c.generation); };
    co_await checkpoints_.run(path, begin);
    wire::CheckpointRequest request;
    request.set_generation(c.generation);
    // The last generation makes no steps, so a server that lags behind keeps lagging, and its ledger shows
    // that. In a world one member may have made the last step before the others.
    request.set_version(c.final && !options_.job.replicas ? 0 : c.version);
    request.set_path(path);
    request.set_final(c.final);
    order_terms const terms{
        .name = "checkpoint", .generation = c.generation, .timeout = options_.order_timeout};
    std::vector<keeper> target;
    std::vector<std::string> messages;
    std::function<void(keeper const&)> const add = [&](keeper const& k) {
      request.set_range(k.range);
      messages.push_back(wire::pack(request));
      target.push_back(k);
    };
    if (!source_.shares_rows()) {
      std::ranges::for_each(keepers_.all(true), add);
    } else {
      std::vector<model_source::row_part> const parts = co_await source_.row_parts(c.version);
      for (model_source::row_part const& p : parts) {
        auto& rows = *request.mutable_rows();
        rows.set_first(std::uint32_t(p.slots.first));
        rows.set_last(std::uint32_t(p.slots.last));
        rows.set_part(std::uint32_t(target.size()));
        rows.set_parts(std::uint32_t(parts.size()));
        request.set_rows_only(!target.empty());
        add(p.target);
      }
    }
    auto const replies =
        co_await orders_.ask_each(target, wire::method::checkpoint, std::move(messages), disk_timeout, terms);
    for (std::string const& reply : replies) {
      auto const written = wire::unpack<wire::CheckpointReply>(reply, "a server");
      for (auto const& f : written.files())
        attempt.contents.files.push_back(
            {f.name(), f.bytes(), f.crc32(), f.version(), wire::from_message(f.ledger())});
    }
    // The next generation may have looked for a checkpoint already and rolled back behind this one.
    if (coordinator_.generation() != c.generation) co_return "another generation has begun";
    std::function<void()> const commit = [&] { options_.files.commit(attempt); };
    co_await checkpoints_.run(path + "/manifest.json", commit);
  } catch (error const& e) {
    co_return e.what();
  }
  co_return std::string();
}

EDL_INLINE asio::awaitable<void> model_files::checkpoint(write_checkpoint c) {
  final_retries tries("the final checkpoint", options_.final_limits(), log_, clock::now());
  std::string failed;
  for (;;) {
    failed = co_await write(c);
    // Another generation requests its own.
    if (coordinator_.generation() != c.generation || coordinator_.over()) co_return;
    if (failed.empty() || !c.final || !tries.go_on(failed, clock::now())) break;
    co_await orders_.pause(tries.pause());
    if (coordinator_.generation() != c.generation || coordinator_.over()) co_return;
  }
  std::function<void()> const prune = [this] { options_.files.prune(log_); };
  if (failed.empty()) co_await checkpoints_.run(options_.files.directory.path(), prune);
  coordinator_.checkpoint_written(c.generation, c.version, failed, clock::now());
  loop_.run_commands();
}

// ---- Models ----

EDL_INLINE asio::awaitable<void> model_files::write_model(std::string directory,
                                                          model_source::model const& m) {
  std::function<void()> const write = [&] {
    options_.files.export_model(directory, m.variables, m.tables, m.version, log_);
  };
  co_await models_.run(std::string(), write);  // a large one takes long
}

EDL_INLINE asio::awaitable<void> model_files::write_last() {
  model_source::model const m = co_await source_.last();
  co_await write_model(options_.output, m);
}

EDL_INLINE asio::awaitable<void> model_files::write_best(evaluated_version of) {
  model_source::model const m = co_await source_.evaluated(of);
  co_await write_model(options_.best, m);
}

EDL_INLINE asio::awaitable<void> model_files::keep_evaluation(std::function<void()> work) {
  std::function<void()> const checked = [&] {
    if (options_.files.allowed) options_.files.allowed();
    work();
  };
  co_await models_.run(options_.files.directory.path() + "/evaluations.json", checked);
}

}  // namespace edl::master
