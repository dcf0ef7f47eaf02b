// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <asio/ip/address.hpp>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "edl/base/http/server.hpp"
#include "edl/base/net/disk.hpp"
#include "edl/base/net/event.hpp"
#include "edl/base/net/node.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/text.hpp"
#include "edl/job/train/dashboard/page_server.hpp"

namespace edl::train {
namespace detail {

inline constexpr std::chrono::seconds farewell{1}, beat{15};
inline constexpr std::size_t most_readers = 64;  // each holds a connection while its page is open
inline constexpr std::size_t most_connections = 4 * most_readers;

inline bool of_this_machine(std::string const& host) {
  asio::error_code no_number;
  auto const address = asio::ip::make_address(host, no_number);
  return no_number ? lower(host) == "localhost" : address.is_loopback();
}

/// "[::1]:80" → "::1"
inline std::string host_of(std::string_view authority) {
  if (authority.starts_with('[')) return std::string(authority.substr(1, authority.find(']') - 1));
  return std::string(authority.substr(0, authority.find(':')));
}

}  // namespace detail

struct page_server::state {
  struct reader {
    explicit reader(state& s) : owner(s) {
      std::lock_guard const lock(owner.mutex);
      ++owner.readers;
    }
    ~reader() {
      std::lock_guard const lock(owner.mutex);
      --owner.readers;
      owner.left.notify_all();
    }
    state& owner;
  };
  explicit state(page_options o);
  std::vector<http::route> routes();
  http::response answer(std::string type, std::string body) const;
  asio::awaitable<void> follow(http::stream_writer& to, page_news news);
  void check_host(http::request const& r) const;
  void check_readers() const;

  page_options options;
  bool const alone;          // only reachable from this machine, and no token is required
  mutable std::mutex mutex;  // guards `readers`
  std::condition_variable left;
  std::size_t readers = 0;
  std::atomic<bool> waking{false};
  net::node node;
  net::disk aside;
  net::event changed;  // on the node's thread
  std::unique_ptr<http::server> server;
};

EDL_INLINE page_server::state::state(page_options o)
    : options(std::move(o)),
      alone(detail::of_this_machine(options.host)),
      node({.job = "dashboard", .secret = net::token::random(), .log = options.log}),
      aside(node),
      changed(node.executor()) {
  bool const token_shown = options.token.empty() && !alone;
  if (alone)
    options.token.clear();
  else
    options.token = (token_shown ? net::token::random() : net::token(options.token)).secret();
  server = std::make_unique<http::server>(
      node,
      http::server_options{.host = options.host,
                           .port = options.port,
                           .token = options.token,
                           .token_in_address = true,
                           .certificate = options.certificate,
                           .key = options.key,
                           .flags = "--dashboard_",
                           .bounds = {.body = 0, .connections = detail::most_connections},
                           .log = options.log},
      routes());
  options.log.info(fmt::format("dashboard: {}/{}{}", server->address(), token_shown ? "?token=" : "",
                               token_shown ? options.token : std::string()));
}

/// Refuses other host names: a site could make its own name resolve to 127.0.0.1 and read this machine's
/// page.
EDL_INLINE void page_server::state::check_host(http::request const& r) const {
  if (alone && !detail::of_this_machine(detail::host_of(r.field("host"))))
    throw http::failure(
        403, "this page is served to this machine, as localhost; another address to listen at changes that");
}

/// Limits open pages, so that connections remain for requests of documents.
EDL_INLINE void page_server::state::check_readers() const {
  std::lock_guard const lock(mutex);
  if (readers >= detail::most_readers)
    throw http::failure(503, fmt::format("{} pages are open already, which is the most", readers),
                        {{"Retry-After", "2"}});
}

EDL_INLINE http::response page_server::state::answer(std::string type, std::string body) const {
  return {.type = std::move(type),
          .body = std::move(body),
          .headers = {{"Cache-Control", "no-store"},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Content-Security-Policy", options.page.policy}}};
}

EDL_INLINE std::vector<http::route> page_server::state::routes() {
  std::vector<http::route> all{
      {"GET", "/", http::at_once([this](http::request const& r) {
         check_host(r);
         return answer("text/html; charset=utf-8", options.page.text);
       })},
      {"GET", "/api/live", [this](http::request& r) -> asio::awaitable<http::response> {
         check_host(r);
         check_readers();
         page_news news = options.follow(r.field("last-event-id"));
         co_return http::response{
             .type = "text/event-stream",
             .headers = {{"X-Content-Type-Options", "nosniff"}},
             .stream = [this, news = std::move(news)](http::stream_writer& to) { return follow(to, news); }};
       }}};
  for (page_document const& one : options.documents)
    all.push_back({"GET", one.path, [this, &one](http::request& r) -> asio::awaitable<http::response> {
                     check_host(r);
                     std::string text;
                     std::function<void()> const make = [&] { text = one.text(r); };
                     if (one.waits)
                       co_await aside.run("", make);
                     else
                       make();
                     co_return answer("application/json", std::move(text));
                   }});
  return all;
}

EDL_INLINE asio::awaitable<void> page_server::state::follow(http::stream_writer& to, page_news news) {
  reader const one(*this);
  if (options.watch) options.watch();
  co_await to.write("retry: 1000\n\n");
  while (auto const more = news()) {
    if (!more->empty())
      co_await to.write(*more);
    else if (!co_await changed.wait_until(std::chrono::steady_clock::now() + detail::beat))
      co_await to.write(": nothing new\n\n");  // writing detects a reader that has left
  }
}

EDL_INLINE page_server::page_server(page_options o) : state_(std::make_unique<state>(std::move(o))) {}

EDL_INLINE page_server::~page_server() {
  state& s = *state_;
  {
    std::unique_lock lock(s.mutex);
    s.left.wait_for(lock, detail::farewell, [&s] { return s.readers == 0; });
  }
  s.server.reset();
  s.node.stop();
}

/// Wakes the readers, once for all changes since the last time.
EDL_INLINE void page_server::wake() {
  state& s = *state_;
  if (s.waking.exchange(true)) return;
  s.node.post([&s] {
    s.waking = false;
    s.changed.notify();
  });
}

EDL_INLINE std::size_t page_server::readers() const {
  std::lock_guard const lock(state_->mutex);
  return state_->readers;
}

EDL_INLINE std::string page_server::address() const { return state_->server->address(); }
EDL_INLINE std::uint16_t page_server::port() const { return state_->server->port(); }
EDL_INLINE std::string const& page_server::token() const { return state_->options.token; }

}  // namespace edl::train
