// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <asio/system_error.hpp>
#include <asio/use_awaitable.hpp>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>

#include "edl/checkpoint/checkpoint.hpp"
#include "edl/checkpoint/directory.hpp"
#include "edl/checkpoint/layout_digest.hpp"
#include "edl/checkpoint/model_file.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/partition.hpp"
#include "edl/master/server.hpp"
#include "edl/net/event.hpp"
#include "edl/net/status.hpp"
#include "edl/wire/edl.pb.h"
#include "edl/wire/ledger_message.hpp"
#include "edl/wire/message.hpp"
#include "edl/wire/method.hpp"

// What the master asks of those who keep the model: servers, or the workers of a world.
namespace edl::master {
namespace detail {

/// Counts itself in a number as long as it lives.
struct one_more {
  int& number;
  explicit one_more(int& of) : number(of) { ++number; }
  one_more(one_more const&) = delete;
  ~one_more() { --number; }
};

/// Calls to all servers under way.
struct gathering {
  explicit gathering(asio::any_io_executor on, std::size_t n) : replies(n), left(n), changed(on) {}
  std::vector<std::string> replies;
  std::exception_ptr failed;
  std::size_t left;
  net::event changed;
};

}  // namespace detail

EDL_INLINE std::vector<server::keeper> server::keepers(bool one) const {
  std::vector<keeper> all;
  auto const add = [&](std::uint32_t id, std::uint32_t range) {
    if (auto const it = servers_.find(id); it != servers_.end())
      all.push_back({it->second.to, range, id, it->second.incarnation});
  };
  if (options_.job.replicas) {
    auto members = coordinator_.current_world().members;
    if (one) std::ranges::stable_partition(members, [](world::member const& m) { return m.current; });
    for (world::member const& m : members) add(m.id, 0);
    if (one && all.size() > 1) all.resize(1);
  } else {
    for (std::uint32_t r = 0; r < coordinator_.places().size(); ++r) add(coordinator_.places()[r].primary, r);
  }
  return all;
}

EDL_INLINE asio::awaitable<std::vector<std::string>> server::ask_each(std::vector<keeper> target,
                                                                      std::uint16_t method,
                                                                      std::vector<std::string> messages,
                                                                      std::chrono::milliseconds timeout,
                                                                      order_terms terms) {
  auto const g = std::make_shared<detail::gathering>(node_.executor(), target.size());
  for (std::size_t place = 0; place < target.size(); ++place) {
    node_.spawn(
        [this, g, to = target[place], terms,
         what = net::outgoing{.method = method, .message = std::move(messages[place]), .timeout = timeout},
         place]() -> asio::awaitable<void> {
          try {
            std::string answer = co_await order(to, what, terms);
            g->replies[place] = std::move(answer);
          } catch (...) {
            g->failed = std::current_exception();
          }
          --g->left;
          g->changed.notify();
        });
  }
  while (g->left > 0) co_await g->changed.wait();
  if (g->failed) std::rethrow_exception(g->failed);
  co_return g->replies;
}

EDL_INLINE asio::awaitable<void> server::settle(std::uint64_t generation) {
  wire::SettleRequest request;
  request.set_generation(generation);
  std::optional<std::uint64_t> version;
  auto const since = std::chrono::steady_clock::now();
  // Members of a world may not have heard of it yet, and one of them may have made the last step before the
  // others. The loss of one begins another generation.
  while (!version && coordinator_.generation() == generation && !coordinator_.over()) {
    try {
      order_terms const terms{.name = "settle", .generation = generation, .timeout = options_.order_timeout};
      auto const replies = co_await ask_all(keepers(), wire::method::settle, request, control_timeout, terms);
      version = 0;
      for (std::string const& reply : replies)
        version = std::max(*version, wire::unpack<wire::SettleReply>(reply, "a server").version());
    } catch (error const& e) {
      log_.debug(fmt::format("the servers could not be settled: {}", e.what()));
      bool const late = std::chrono::steady_clock::now() - since >= options_.order_timeout;
      if (late && coordinator_.generation() == generation)
        coordinator_.fail(fmt::format("the last version cannot be told: {}", e.what()));
    }
    if (!version) co_await pause();
  }
  if (version) coordinator_.version_announced(generation, *version, std::chrono::steady_clock::now());
  run_commands();
}

EDL_INLINE std::vector<server::keeper> server::claimants(std::uint64_t version) const {
  if (!options_.job.replicas) return keepers();
  std::vector<keeper> all;
  for (std::uint32_t const id : coordinator_.holders(version))
    if (auto const it = servers_.find(id); it != servers_.end())
      all.push_back({it->second.to, 0, id, it->second.incarnation});
  return all;
}

EDL_INLINE asio::awaitable<void> server::claim(version_report r) {
  detail::one_more const under_way(claims_);
  wire::ClaimRequest request;
  request.set_generation(r.generation);
  request.set_version(r.version);
  // One that is being evaluated is told again by the next world, and has been claimed.
  bool claimed = coordinator_.evaluations().wants_frozen(r.version);
  for (int tries = 0; !claimed && coordinator_.generation() == r.generation; ++tries) {
    bool again = false;
    try {
      auto const all = claimants(r.version);
      order_terms const terms{
          .name = "claim", .generation = r.generation, .timeout = options_.order_timeout, .waits = false};
      co_await ask_all(all, wire::method::claim, request, control_timeout, terms);
      claimed = true;
    } catch (net::call_error const& e) {
      // A member of a world may not have heard of it yet.
      again = e.code() == net::status::stale_generation && options_.job.replicas && tries < 100;
      if (!again) log_.warning(fmt::format("version {} is not evaluated: {}", r.version, e.what()));
    }
    if (again)
      co_await pause();
    else
      break;
  }
  if (!claimed) {
    r.evaluate = false;
    release_frozen const nothing{r.version, true};
    co_await release(nothing);
  }
  coordinator_.version_reached(r, std::chrono::steady_clock::now());
  run_commands();
}

EDL_INLINE asio::awaitable<void> server::release(release_frozen c) {
  wire::ReleaseRequest request;
  request.set_version(c.version);
  request.set_evaluation(c.evaluation);
  try {
    order_terms const terms{.name = "release", .timeout = options_.order_timeout};
    co_await ask_all(keepers(), wire::method::release, request, control_timeout, terms);
  } catch (error const& e) {
    log_.debug(fmt::format("version {} could not be released everywhere: {}", c.version, e.what()));
  }
}

// Empty, or why not.
EDL_INLINE asio::awaitable<std::string> server::write(write_checkpoint c) {
  std::string const path = checkpoint::checkpoint_path(options_.checkpoint_dir, c.version);
  try {
    std::vector<std::string> earlier;
    std::function<void()> const begin = [&] { earlier = checkpoint::begin_checkpoint(path); };
    co_await checkpoints_.run(path, begin);
    wire::CheckpointRequest request;
    request.set_generation(c.generation);
    // A generation that ends a job takes no step: a server that is behind another stays so, and its ledger
    // says it. Of a world, one may have made the last step before the others.
    request.set_version(c.final && !options_.job.replicas ? 0 : c.version);
    request.set_path(path);
    request.set_final(c.final);
    checkpoint::manifest m = options_.manifest;
    m.version = c.version;
    m.layout = checkpoint::layout_digest(options_.layout);
    order_terms const terms{
        .name = "checkpoint", .generation = c.generation, .timeout = options_.order_timeout};
    std::vector<keeper> target;
    std::vector<std::string> messages;
    std::function<void(keeper const&)> const add = [&](keeper const& k) {
      request.set_range(k.range);
      messages.push_back(wire::pack(request));
      target.push_back(k);
    };
    if (!shares_rows()) {
      std::ranges::for_each(keepers(true), add);
    } else {
      std::vector<row_part> const parts = co_await row_parts(c.version);
      for (row_part const& p : parts) {
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
        co_await ask_each(target, wire::method::checkpoint, std::move(messages), disk_timeout, terms);
    for (std::string const& reply : replies) {
      auto const written = wire::unpack<wire::CheckpointReply>(reply, "a server");
      for (auto const& f : written.files())
        m.files.push_back({f.name(), f.bytes(), f.crc32(), f.version(), wire::from_message(f.ledger())});
    }
    // The next generation has looked for a checkpoint by now, and went back behind this one.
    if (coordinator_.generation() != c.generation) co_return "another generation has begun";
    std::function<void()> const commit = [&] {
      checkpoint::commit_checkpoint(path, m, earlier, options_.allowed);
    };
    co_await checkpoints_.run(path + "/manifest.json", commit);
  } catch (error const& e) {
    co_return e.what();
  }
  co_return std::string();
}

EDL_INLINE asio::awaitable<void> server::checkpoint(write_checkpoint c) {
  auto const since = std::chrono::steady_clock::now();
  std::string failed;
  for (bool announced = false;;) {
    failed = co_await write(c);
    // Another generation asks for what it wants.
    if (coordinator_.generation() != c.generation || coordinator_.over()) co_return;
    if (failed.empty() || !c.final || std::chrono::steady_clock::now() - since >= options_.final_timeout)
      break;
    if (!std::exchange(announced, true))
      log_.warning(fmt::format("the final checkpoint cannot be written yet, it is tried again: {}", failed));
    co_await pause(std::min(options_.storage_pause, options_.final_timeout));
    if (coordinator_.generation() != c.generation || coordinator_.over()) co_return;
  }
  // What is too old may stay: the checkpoint that was written is valid.
  std::function<void()> const prune = [this] {
    checkpoint::prune(options_.checkpoint_dir, options_.keep_checkpoint_max, options_.allowed);
  };
  if (failed.empty()) try {
      co_await checkpoints_.run(options_.checkpoint_dir, prune);
    } catch (std::exception const& e) {
      log_.warning(
          fmt::format("old checkpoints in {} cannot be removed: {}", options_.checkpoint_dir, e.what()));
    }
  coordinator_.checkpoint_written(c.generation, c.version, failed, std::chrono::steady_clock::now());
  run_commands();
}

/// From the newest copy that can be reached: one member may have made the last step before the others. Its
/// rows are those of its variables.
EDL_INLINE asio::awaitable<std::uint64_t> server::pull_copy(std::span<float> variables,
                                                            std::vector<checkpoint::row_source>& tables) {
  wire::SettleRequest settle;
  settle.set_generation(coordinator_.generation());
  wire::PullRequest request;
  request.set_generation(coordinator_.generation());
  request.set_frozen(true);  // as it would be evaluated
  net::outgoing const ask{
      .method = wire::method::settle, .message = wire::pack(settle), .timeout = control_timeout};
  std::multimap<std::uint64_t, keeper, std::greater<>> newest;
  std::string why = "no worker has it";
  for (auto const& k : keepers()) try {
      net::reply const reply = co_await k.to->call(ask);
      newest.emplace(wire::unpack<wire::SettleReply>(reply.message, k.to->name()).version(), k);
    } catch (net::call_error const& e) {
      why = e.what();
    }
  for (auto const& [version, k] : newest) try {
      request.set_version(version);
      net::outgoing what{
          .method = wire::method::pull, .message = wire::pack(request), .timeout = disk_timeout};
      what.into.push_back(std::as_writable_bytes(variables));
      co_await k.to->call(what);
      tables = co_await row_sources(version);
      co_return version;
    } catch (net::call_error const& e) {
      why = e.what();
    }
  throw error(fmt::format("the model cannot be had: {}", why));
}

EDL_INLINE asio::awaitable<void> server::write_model(std::string directory, view<float> variables,
                                                     std::span<checkpoint::row_source const> tables,
                                                     std::uint64_t version) {
  std::string const path = directory + "/model.safetensors";
  std::function<void()> const write = [&] {
    std::filesystem::create_directories(directory);
    checkpoint::export_model(path, options_.layout, variables, tables, version,
                             {options_.job.seed, options_.manifest.hyperparameters});
  };
  co_await models_.run(std::string(), write);  // a large one takes its time
  log_.info(fmt::format("model written to {}", path));
}

// Of what a keeper has of its range, when nobody trains any more.
EDL_INLINE asio::awaitable<std::uint64_t> server::version_of(keeper const& k) {
  wire::SettleRequest request;
  request.set_generation(coordinator_.generation());
  request.set_range(k.range);
  net::outgoing const ask{
      .method = wire::method::settle, .message = wire::pack(request), .timeout = control_timeout};
  net::reply const reply = co_await k.to->call(ask);
  co_return wire::unpack<wire::SettleReply>(reply.message, k.to->name()).version();
}

// As they are evaluated: of the current version, or of a frozen one; each keeper has one range.
EDL_INLINE asio::awaitable<std::uint64_t> server::pull_ranges(std::vector<keeper> const& from,
                                                              std::optional<std::uint64_t> frozen,
                                                              std::span<float> variables) {
  std::uint64_t version = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    element_range const range =
        partition(variables.size(), std::uint32_t(from.size()), std::uint32_t(i), options_.layout.borders);
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
    net::reply const reply = co_await from[i].to->call(what);
    version = wire::unpack<wire::PullReply>(reply.message, from[i].to->name()).version();
  }
  co_return version;
}

EDL_INLINE asio::awaitable<void> server::write_best(evaluated_version of) {
  std::vector<float> variables(options_.layout.size());
  std::vector<checkpoint::row_source> tables;
  if (options_.job.replicas) {
    // Each of them has all ranges.
    auto const from = of.frozen ? claimants(of.version) : keepers(true);
    std::string why = "no worker has it";
    bool there = false;
    for (std::size_t i = 0; i < from.size() && !there; ++i) try {
        std::vector<keeper> const one(1, from[i]);
        co_await pull_ranges(one, of.version, variables);
        tables = co_await row_sources(of.version);
        there = true;
      } catch (net::call_error const& e) {
        why = e.what();
      }
    if (!there) throw error(fmt::format("the model cannot be had: {}", why));
  } else {
    auto const from = keepers();
    co_await pull_ranges(from, of.version, variables);
    tables = co_await row_sources(of.version);
  }
  co_await write_model(options_.best, variables, tables, of.version);
}

// The best is written before it is said to be the best: whoever reads the list finds the model.
EDL_INLINE asio::awaitable<void> server::judge(evaluation_result of, bool best) {
  std::uint64_t const version = of.of.version;
  std::uint64_t generation = coordinator_.generation();
  auto since = now();
  std::string failed;
  for (bool announced = false; best;) {
    failed.clear();
    try {
      co_await write_best(of.of);
      break;
    } catch (std::exception const& e) {
      failed = e.what();
    }
    // What is gone with its generation is evaluated again when the job comes to it.
    if (coordinator_.over() || !coordinator_.evaluations().to_be_judged(version)) co_return;
    if (std::exchange(generation, coordinator_.generation()) != coordinator_.generation()) since = now();
    if (now() - since >= options_.final_timeout) break;
    if (!std::exchange(announced, true))
      log_.warning(fmt::format("the best model cannot be written yet, it is tried again: {}", failed));
    co_await pause(std::min(options_.storage_pause, options_.final_timeout));
  }
  if (coordinator_.over() || !coordinator_.evaluations().to_be_judged(version)) co_return;
  bool stops = false;
  if (failed.empty() && around_.judged) try {
      std::function<void()> const keep = [&, keeps = around_.judged(of)] { stops = keeps(); };
      co_await models_.run(options_.checkpoint_dir + "/evaluations.json", keep);
    } catch (asio::system_error const&) {
      throw;  // this process ends
    } catch (std::exception const& e) {
      failed = e.what();
    }
  if (!failed.empty())
    log_.warning(
        fmt::format("the evaluation of version {} does not count, it cannot be kept: {}", version, failed));
  if (stops) coordinator_.stop(now(), version);
  coordinator_.judged(version, now());
  run_commands();
}

EDL_INLINE asio::awaitable<void> server::export_variables() {
  std::vector<float> variables(options_.layout.size());
  std::uint64_t version = 0;
  std::vector<checkpoint::row_source> tables;
  if (options_.job.replicas) {
    version = co_await pull_copy(variables, tables);
  } else {
    auto const from = keepers();
    tables = co_await row_sources(0);
    version = co_await pull_ranges(from, {}, variables);
  }
  co_await write_model(options_.output, variables, tables, version);
}

EDL_INLINE asio::awaitable<void> server::finish() {
  auto const since = std::chrono::steady_clock::now();
  std::string failed;
  for (bool announced = false; !options_.output.empty();) {
    failed.clear();
    try {
      co_await export_variables();
      break;
    } catch (error const& e) {
      failed = e.what();
    }
    if (std::chrono::steady_clock::now() - since >= options_.final_timeout) break;
    if (!std::exchange(announced, true))
      log_.warning(fmt::format("the model cannot be written yet, it is tried again: {}", failed));
    co_await pause(std::min(options_.storage_pause, options_.final_timeout));
  }
  if (failed.empty()) failed = coordinator_.unevaluated();
  if (!std::exchange(ended_, true)) around_.ended(failed);
  changed_.notify();
}

}  // namespace edl::master
