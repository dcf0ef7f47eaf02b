// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <exception>
#include <functional>
#include <map>
#include <optional>

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

namespace edl::master {

EDL_INLINE server::server(net::node& on, server_options options, callbacks around, logger log)
    : node_(on),
      options_(std::move(options)),
      around_(std::move(around)),
      log_(std::move(log)),
      coordinator_(options_.job, std::chrono::steady_clock::now(), options_.before),
      changed_(on.executor()),
      events_(options_.before ? options_.before->events : 0),
      models_(on),
      checkpoints_(on),
      keeper_(on, options_.journal, options_.storage_pause, log_, [this] { run_commands(); }),
      watchdog_(options_.step_timeout) {}

EDL_INLINE void server::listens_at(std::vector<std::string> addresses) {
  addresses_ = std::move(addresses);
  remembered_.reset();
  run_commands();
}

EDL_INLINE asio::awaitable<void> server::tick() {
  asio::steady_timer timer(node_.executor());
  while (!coordinator_.over()) {
    auto const now = std::chrono::steady_clock::now();
    coordinator_.tick(now);
    run_commands();
    forget_gone();
    watch_steps(now);
    timer.expires_after(std::chrono::milliseconds(250));
    co_await timer.async_wait(asio::use_awaitable);
  }
  // What is trained has to be fetched yet, and a server may not answer.
  while (!ended_) {
    watch_steps(std::chrono::steady_clock::now());
    timer.expires_after(std::chrono::milliseconds(250));
    co_await timer.async_wait(asio::use_awaitable);
  }
  if (shown_.value_or("") != "" && around_.waits) around_.waits("");
}

// Whoever waits for a word of one that is gone is told so.
EDL_INLINE void server::forget_gone() {
  std::erase_if(servers_, [&](auto const& one) {
    keeper const k{.to = nullptr, .range = 0, .id = one.first, .incarnation = one.second.incarnation};
    if (takes_part(k)) return false;
    one.second.to->close();
    return true;
  });
  std::erase_if(answers_, [&](auto const& one) {
    return !coordinator_.workers().known(one.first, one.second.incarnation);
  });
}

EDL_INLINE void server::exited(role of, std::uint32_t id, exit_kind kind, std::string const& why,
                               std::uint64_t number) {
  events_ = number;
  coordinator_.exited(of, id, kind, why, std::chrono::steady_clock::now());
  run_commands();
}

EDL_INLINE void server::leaving(std::uint32_t worker, std::string const& why) {
  coordinator_.leaving(worker, why);
  run_commands();
}

EDL_INLINE std::string server::scale(scale_request const& r) {
  std::string refused = coordinator_.scale(r, std::chrono::steady_clock::now());
  run_commands();
  return refused;
}

EDL_INLINE void server::adopt(found_processes const& those) {
  coordinator_.adopt(those, std::chrono::steady_clock::now());
  run_commands();
}

EDL_INLINE void server::suspend() {
  coordinator_.suspend(std::chrono::steady_clock::now());
  run_commands();
}

// A generation, a successor's number, where the master listens: others are told when a successor of this
// master would know it. For the rest it is enough that it is written some time.
EDL_INLINE void server::remember() {
  auto const [generation, members, servers, worker_lines, server_lines, evaluated] = coordinator_.remembers();
  // What has been judged stands in the list of evaluations, too.
  remembered const now{{generation, servers, worker_lines, server_lines},
                       {members, events_, options_.job.judges ? 0 : evaluated}};
  if (remembered_ == now) return;
  bool const promised = !remembered_ || remembered_->promised != now.promised;
  remembered_ = now;
  persisted_state all = coordinator_.remembered();
  all.events = events_;
  all.addresses = addresses_;
  keeper_.keep(std::move(all), promised);
}

EDL_INLINE void server::run_commands() {
  remember();
  for (bool more = true; more;) {
    auto const commands = coordinator_.take_commands();
    more = !commands.empty();
    for (command const& c : commands) {
      std::function<void()> work = [this, c] { std::visit([this](auto const& one) { execute(one); }, c); };
      if (is_promise(c))
        unkept_.push_back(std::move(work));
      else
        perform(work);
    }
    if (more || unkept_.empty() || !keeper_.kept()) continue;
    auto const work = std::move(unkept_.front());
    unkept_.pop_front();
    perform(work);
    more = true;  // it may have failed
  }
  changed_.notify();
}

EDL_INLINE void server::when_kept(std::function<void()> work) {
  unkept_.push_back(std::move(work));
  run_commands();
}

EDL_INLINE void server::perform(std::function<void()> const& work) try {
  work();
} catch (std::exception const& e) {
  coordinator_.fail(fmt::format("the master cannot do what it has decided: {}", e.what()));
}

// Returns when the generation may be told.
EDL_INLINE asio::awaitable<void> server::announceable() {
  remember();
  while (keeper_.generation() < coordinator_.generation()) co_await changed_.wait();
}

EDL_INLINE void server::execute(ask_version const& c) {
  carry("the servers' last version cannot be asked for", [this, g = c.generation] { return settle(g); });
}

EDL_INLINE void server::execute(write_checkpoint const& c) {
  carry("a checkpoint cannot be written", [this, c] { return checkpoint(c); });
}

EDL_INLINE void server::execute(release_frozen const& c) {
  carry("a version cannot be released", [this, c] { return release(c); });
}

EDL_INLINE void server::execute(replace_process const& c) { around_.replace(c.of, c.id, c.with); }

EDL_INLINE void server::execute(evaluation_done const& c) {
  bool const best = around_.evaluated(c.result);
  if (options_.job.judges)
    carry("an evaluation cannot be judged", [this, of = c.result, best] { return judge(of, best); });
}

EDL_INLINE void server::execute(finish_job const&) {
  carry("the job cannot be finished", [this] { return finish(); });
}

EDL_INLINE void server::execute(suspend_job const&) {
  if (!std::exchange(ended_, true)) around_.ended({});
}

EDL_INLINE void server::execute(fail_job const& c) {
  if (!std::exchange(ended_, true)) around_.ended(c.reason);
}

EDL_INLINE void server::execute(log_line const& c) { log_.log(c.level, c.text); }

}  // namespace edl::master
