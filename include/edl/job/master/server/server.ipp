// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <asio/system_error.hpp>
#include <asio/use_awaitable.hpp>
#include <exception>
#include <utility>
#include <variant>

#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/master/server/server.hpp"

namespace edl::master {
namespace detail {

inline server_options with_model(server_options o) {
  o.job.writes_model = o.job.trains() && !o.output.empty();
  return o;
}

}  // namespace detail

EDL_INLINE server::server(net::node& on, server_options options, callbacks around, logger log)
    : node_(on),
      options_(detail::with_model(std::move(options))),
      around_(std::move(around)),
      log_(std::move(log)),
      loop_(on, options_, log_,
            [this](command const& c) { std::visit([this](auto const& one) { execute(one); }, c); }),
      coordinator_(loop_.decisions()),
      processes_(options_, loop_, around_.adopted, log_),
      keepers_(coordinator_, options_.job.replicas),
      orders_(on, coordinator_, keepers_),
      calls_(options_, loop_, keepers_, orders_, log_),
      source_(options_, coordinator_, keepers_, orders_),
      files_(on, options_, loop_, keepers_, orders_, source_, log_),
      handlers_(on, options_, loop_, keepers_, calls_, processes_, around_.inspected),
      watchdog_(options_.step_timeout) {
  if (coordinator_.over()) end({});  // by a decision of the previous master
}

EDL_INLINE asio::awaitable<void> server::tick() {
  asio::steady_timer timer(node_.executor());
  while (!coordinator_.over()) {
    auto const now = clock::now();
    coordinator_.tick(now);
    loop_.run_commands();
    keepers_.forget_gone();
    handlers_.forget_gone();
    watch_steps(now);
    timer.expires_after(std::chrono::milliseconds(250));
    co_await timer.async_wait(asio::use_awaitable);
  }
  // The trained model has yet to be fetched, and a server may not reply.
  while (!loop_.ended()) {
    watch_steps(clock::now());
    timer.expires_after(std::chrono::milliseconds(250));
    co_await timer.async_wait(asio::use_awaitable);
  }
  if (shown_.value_or("") != "") processes_.waits("");
}

EDL_INLINE void server::stop(std::uint64_t at) {
  coordinator_.stop(clock::now(), at);
  loop_.run_commands();
}

EDL_INLINE std::string server::waits(time_point now) const {
  std::vector<std::string> all = orders_.unanswered(now);
  if (std::string decided = coordinator_.waits_for(now); !decided.empty())
    all.insert(all.begin(), std::move(decided));
  if (!loop_.kept()) all.push_back("the journal to be written");
  return all.empty() ? "nothing known" : fmt::format("{}", fmt::join(all, "; "));
}

EDL_INLINE void server::watch_steps(time_point now) {
  std::string shown = shown_.value_or("");
  if (bool const tell = watchdog_.look(coordinator_.steps(), now); tell) {
    shown = fmt::format("no step for {} s: waiting for {}",
                        std::chrono::duration_cast<std::chrono::seconds>(watchdog_.still(now)).count(),
                        waits(now));
    execute(log_line{severity::warning, fmt::format("the job has made {}", shown), topic::waiting});
  } else if (!watchdog_.stuck(now)) {
    shown.clear();
  }
  if (shown_ == shown) return;
  shown_ = shown;
  processes_.waits(shown);
}

// ---- Commands ----

EDL_INLINE void server::execute(find_restore_point const& c) {
  loop_.carry("the search for a checkpoint ended", [this, c] { return files_.find(c); });
}

EDL_INLINE void server::execute(ask_version const& c) {
  loop_.carry("cannot request the servers' last version",
              [this, g = c.generation] { return calls_.commit(g); });
}

EDL_INLINE void server::execute(write_checkpoint const& c) {
  loop_.carry("a checkpoint cannot be written", [this, c] { return files_.checkpoint(c); });
}

EDL_INLINE void server::execute(release_frozen const& c) {
  loop_.carry("a version cannot be released", [this, c] { return calls_.release(c); });
}

EDL_INLINE void server::execute(evaluation_done const& c) {
  bool const best = around_.evaluated(c.result);
  if (options_.job.judges)
    loop_.carry("an evaluation cannot be judged", [this, of = c.result, best] { return judge(of, best); });
}

EDL_INLINE void server::execute(write_model const& c) {
  loop_.carry("the model cannot be written", [this, c] { return write(c); });
}

EDL_INLINE void server::execute(finish_job const&) {
  loop_.carry("the job cannot be finished", [this] { return finish(); });
}

EDL_INLINE void server::end(std::string const& error) {
  if (loop_.end()) processes_.end({.failure = error});
}

// Writes the best model before it lists it as the best, so that a reader of the list finds the model.
EDL_INLINE asio::awaitable<void> server::judge(evaluation_result of, bool best) {
  std::uint64_t const version = of.evaluated.version;
  std::uint64_t generation = coordinator_.generation();
  final_retries tries("the best model", options_.final_limits(), log_, clock::now());
  std::string failed;
  while (best) {
    failed.clear();
    try {
      co_await files_.write_best(of.evaluated);
      break;
    } catch (std::exception const& e) {
      failed = e.what();
    }
    // An evaluation lost with its generation is repeated when the job reaches that version again.
    if (coordinator_.over() || !coordinator_.versions().evaluations().to_be_judged(version)) co_return;
    if (std::exchange(generation, coordinator_.generation()) != coordinator_.generation())
      tries.restart(clock::now());
    if (!tries.go_on(failed, clock::now())) break;
    co_await orders_.pause(tries.pause());
  }
  if (coordinator_.over() || !coordinator_.versions().evaluations().to_be_judged(version)) co_return;
  verdict follows;
  if (failed.empty() && around_.judged) try {
      std::function<void()> const keep = [&, keeps = around_.judged(of)] { follows = keeps(); };
      co_await files_.keep_evaluation(keep);
    } catch (asio::system_error const&) {
      throw;  // this process exits
    } catch (std::exception const& e) {
      failed = e.what();
    }
  coordinator_.judged(version, clock::now(), failed, follows);
  loop_.run_commands();
}

EDL_INLINE asio::awaitable<void> server::write(write_model c) {
  final_retries tries("the model", options_.final_limits(), log_, clock::now());
  std::string failed;
  do {
    if (!failed.empty()) co_await orders_.pause(tries.pause());
    failed.clear();
    try {
      co_await files_.write_last();
    } catch (error const& e) {
      failed = e.what();
    }
    // Another generation requests its own.
    if (coordinator_.generation() != c.generation || coordinator_.over()) co_return;
  } while (!failed.empty() && tries.go_on(failed, clock::now()));
  coordinator_.model_written(c.generation, failed);
  loop_.run_commands();
}

// Waits until the journal has the end: processes that learn of it leave, and a successor would wait for them.
// The wait is limited, because the storage may have failed.
EDL_INLINE asio::awaitable<void> server::finish() {
  for (auto const until = clock::now() + options_.final_timeout; !loop_.kept();)
    if (!co_await loop_.keeps().wait_until(until)) break;
  end(coordinator_.versions().unevaluated());
  loop_.announces().notify();
}

}  // namespace edl::master
