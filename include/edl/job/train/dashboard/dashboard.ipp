// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <asio/ip/address.hpp>
#include <asio/ip/host_name.hpp>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "edl/cluster/kubernetes/clock_text.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/http/server.hpp"
#include "edl/job/master/watchdog.hpp"
#include "edl/job/net/event.hpp"
#include "edl/job/net/node.hpp"
#include "edl/job/train/dashboard/dashboard.hpp"
#include "edl/job/train/dashboard/job_facts.hpp"
#include "edl/job/train/dashboard/job_feed.hpp"
#include "edl/job/train/dashboard/page.hpp"

namespace edl::train {
namespace detail {

/// Between two looks, each of which costs some 10 µs for a process.
inline std::chrono::milliseconds look_pause(master::coordinator const& of) {
  return std::chrono::milliseconds(of.workers().all().size() + of.servers().all().size() > 100 ? 1000 : 400);
}

inline constexpr std::chrono::seconds stuck_after{3}, speed_window{10}, farewell{1}, beat{15};
inline constexpr std::size_t most_readers = 64;

inline bool of_this_machine(std::string const& host) {
  asio::error_code no_number;
  auto const address = asio::ip::make_address(host, no_number);
  return no_number ? host == "localhost" : address.is_loopback();
}

/// "[::1]:80" → "::1"
inline std::string host_of(std::string_view authority) {
  if (authority.starts_with('[')) return std::string(authority.substr(1, authority.find(']') - 1));
  return std::string(authority.substr(0, authority.find(':')));
}

}  // namespace detail

struct dashboard::state {
  struct reader {
    explicit reader(state& s) : of(s) {
      std::lock_guard const lock(of.mutex);
      ++of.readers;
    }
    ~reader() {
      std::lock_guard const lock(of.mutex);
      --of.readers;
      of.left.notify_all();
    }
    state& of;
  };
  state(job const& of, dashboard_context c, logger l);
  std::vector<http::route> routes();
  http::route serves(std::string path, std::string type, std::function<std::string()> text);
  asio::awaitable<void> follow(http::stream_writer& to, job_feed::place at);
  void check_host(http::request const& r) const;
  void wake();

  job const& asked;
  dashboard_context context;
  logger log;
  bool const alone;  // only this machine sees it, and no token is wanted
  dashboard_page const page = make_dashboard_page();
  double const since = controller::wall_seconds();
  master::watchdog steps{detail::stuck_after};
  std::deque<std::pair<time_point, std::uint64_t>> versions;  // of the last seconds
  bool closed = false;
  std::mutex mutex;  // guards `readers`
  std::condition_variable left;
  std::size_t readers = 0;
  std::atomic<bool> waking{false};
  net::node node;
  job_feed feed;
  net::event changed;  // on the node's thread
  std::unique_ptr<http::server> server;
};

EDL_INLINE dashboard::state::state(job const& of, dashboard_context c, logger l)
    : asked(of),
      context(std::move(c)),
      log(std::move(l)),
      alone(detail::of_this_machine(of.dashboard_host)),
      node({.job = "dashboard", .secret = net::token::random(), .log = log}),
      feed(net::token::random().secret().substr(0, 16), [this] { wake(); }),
      changed(node.executor()) {
  bool const told = context.token.empty() && !alone;
  if (alone) context.token.clear();
  if (told) context.token = net::token::random().secret();
  server = std::make_unique<http::server>(
      node,
      http::server_options{.host = of.dashboard_host,
                           .port = of.dashboard.value_or(0),
                           .token = context.token,
                           .token_in_address = true,
                           .certificate = of.dashboard_certificate,
                           .key = of.dashboard_key,
                           .bounds = {.body = 0, .connections = detail::most_readers},
                           .log = log},
      routes());
  log.info(fmt::format("dashboard: {}/{}{}", server->address(), told ? "?token=" : "",
                       told ? context.token : std::string()));
}

/// Wakes readers, once for all that changes meanwhile.
EDL_INLINE void dashboard::state::wake() {
  if (waking.exchange(true)) return;
  node.post([this] {
    waking = false;
    changed.notify();
  });
}

/// Another site's page must not read a page of this machine by a name that it makes stand for 127.0.0.1.
EDL_INLINE void dashboard::state::check_host(http::request const& r) const {
  if (alone && !detail::of_this_machine(detail::host_of(r.field("host"))))
    throw http::failure(403,
                        "this page is served to this machine, as localhost; --dashboard_host changes that");
}

EDL_INLINE http::route dashboard::state::serves(std::string path, std::string type,
                                                std::function<std::string()> text) {
  return {"GET", std::move(path),
          http::at_once([this, type = std::move(type), text = std::move(text)](http::request const& r) {
            check_host(r);
            return http::response{.type = type,
                                  .body = text(),
                                  .headers = {{"Cache-Control", "no-store"},
                                              {"X-Content-Type-Options", "nosniff"},
                                              {"Referrer-Policy", "no-referrer"},
                                              {"Content-Security-Policy", page.policy}}};
          })};
}

EDL_INLINE std::vector<http::route> dashboard::state::routes() {
  std::string const json = "application/json";
  return {serves("/", "text/html; charset=utf-8", [this] { return page.text; }),
          serves("/api/job", json,
                 [this] {
                   std::string now = feed.job();
                   return now.empty() ? "{}" : now;
                 }),
          serves("/api/history", json, [this] { return feed.history(); }),
          serves("/api/events", json, [this] { return feed.events(); }),
          {"GET", "/api/live", [this](http::request& r) -> asio::awaitable<http::response> {
             check_host(r);
             auto const at = feed.after(r.field("last-event-id"));
             co_return http::response{
                 .type = "text/event-stream",
                 .headers = {{"X-Content-Type-Options", "nosniff"}},
                 .stream = [this, at](http::stream_writer& to) { return follow(to, at); }};
           }}};
}

EDL_INLINE asio::awaitable<void> dashboard::state::follow(http::stream_writer& to, job_feed::place at) {
  reader const one(*this);
  co_await to.write("retry: 1000\n\n");
  while (!at.ended) {
    if (std::string const news = feed.news(at); !news.empty())
      co_await to.write(news);
    else if (!co_await changed.wait_until(std::chrono::steady_clock::now() + detail::beat))
      co_await to.write(": nothing new\n\n");  // who has gone is found
  }
}

EDL_INLINE dashboard::dashboard(job const& j, std::string const& history, dashboard_context c, logger log)
    : state_(std::make_unique<state>(j, std::move(c), std::move(log))) {
  if (!history.empty()) read_lines(history, state_->feed);
}

EDL_INLINE dashboard::~dashboard() {
  state& s = *state_;
  s.feed.end();
  {
    std::unique_lock lock(s.mutex);
    s.left.wait_for(lock, detail::farewell, [&s] { return s.readers == 0; });
  }
  s.server.reset();
  s.node.stop();
}

EDL_INLINE void dashboard::look(master::coordinator const& of, master::job_progress const& p,
                                time_point now) {
  show(of, p, now, false);
}

EDL_INLINE void dashboard::close(master::coordinator const& of, master::job_progress const& p,
                                 time_point now) {
  if (std::exchange(state_->closed, true)) return;
  show(of, p, now, true);
}

EDL_INLINE void dashboard::show(master::coordinator const& of, master::job_progress const& p, time_point now,
                                bool last) {
  state& s = *state_;
  due_ = now + detail::look_pause(of);
  auto& all = s.versions;
  if (!all.empty() && p.version < all.back().second) all.clear();  // the job went back
  all.emplace_back(now, p.version);
  while (all.size() > 2 && now - all.front().first > detail::speed_window) all.pop_front();
  double const seconds = std::chrono::duration<double>(now - all.front().first).count();
  s.steps.look(of.steps(), now);
  s.feed.show(
      to_json(job_facts{.asked = s.asked,
                        .decisions = of,
                        .at = p,
                        .now = now,
                        .time = controller::wall_seconds(),
                        .since = s.since,
                        .steps_per_s = seconds > 0 ? double(p.version - all.front().second) / seconds : 0,
                        .stuck = s.steps.stuck(now),
                        .stopped = last,
                        .host = asio::ip::host_name(),
                        .place = s.context.place}));
}

EDL_INLINE void dashboard::happened(master::log_line const& what) {
  if (what.level != severity::debug) state_->feed.add_event(to_json(what, controller::wall_seconds()));
}

EDL_INLINE history_log::listener dashboard::listener() {
  return {.line = [&feed = state_->feed](history_file::kind of, std::uint64_t step,
                                         std::string const& line) { feed.add_line(of, step, line); },
          .go_on_from = [&feed = state_->feed](std::uint64_t step) { feed.drop_lines_after(step); }};
}

EDL_INLINE std::string dashboard::address() const { return state_->server->address(); }
EDL_INLINE std::uint16_t dashboard::port() const { return state_->server->port(); }
EDL_INLINE std::string const& dashboard::token() const { return state_->context.token; }

}  // namespace edl::train
