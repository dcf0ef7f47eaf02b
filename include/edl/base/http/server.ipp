// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/co_spawn.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "edl/base/http/connection.hpp"
#include "edl/base/http/credentials.hpp"
#include "edl/base/http/parser.hpp"
#include "edl/base/http/server.hpp"
#include "edl/base/net/disk.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/text.hpp"

namespace edl::http {

namespace detail {

inline constexpr std::size_t told_more = 64;  // beyond the limit: they get a reply that there are too many

/// Files and other connections need descriptors, too, so clients may use half of them.
inline void bound_connections(server_options& o) {
  ::rlimit most{};
  if (::getrlimit(RLIMIT_NOFILE, &most) != 0 || most.rlim_cur == RLIM_INFINITY) return;
  std::size_t const room = std::max<std::size_t>(most.rlim_cur / 2, told_more + 1) - told_more;
  if (o.bounds.connections <= room) return;
  o.log.warning(
      fmt::format("at most {} clients are accepted at once instead of {}: this process may have {} "
                  "descriptors (ulimit -n)",
                  room, o.bounds.connections, most.rlim_cur));
  o.bounds.connections = room;
}

/// One request's share of the bytes that all bodies may take.
struct share_of_bodies {
  std::size_t& all;
  std::size_t mine = 0;
  ~share_of_bodies() {
    invariant(all >= mine, "the bytes of all requests are those of each");
    all -= mine;
  }
  void grow(std::size_t to, std::size_t most) {
    all += to - mine;
    mine = to;
    if (all > most)
      throw failure(503, "the requests that are being read have too many bytes", {{"Retry-After", "1"}});
  }
};

}  // namespace detail

struct server::state : net::detail::service, std::enable_shared_from_this<server::state> {
  using connection = detail::connection;
  using phase = connection::phase;
  using shared_connection = std::shared_ptr<connection>;

  state(net::node& on, server_options o, router r)
      : executor(on.executor()),
        options(std::move(o)),
        known(options),
        routes(std::move(r)),
        acceptor(executor),
        timer(executor) {
    detail::bound_connections(options);
    if (known.has_files()) aside.emplace(on);
  }
  ~state() override {
    routes = {};
    gone.set_value();
  }

  void listen();
  asio::awaitable<void> accept();
  asio::awaitable<void> look();
  asio::awaitable<void> look_at_files();
  void take(asio::ip::tcp::socket s);
  bool make_room();
  asio::awaitable<void> serve(connection& c, bool surplus);
  asio::awaitable<bool> exchange(connection& c);
  asio::awaitable<bool> receive_request(connection& c, request_parser& parser, std::optional<found_route>& to,
                                        detail::share_of_bodies& share);
  asio::awaitable<response> answer(route const& to, request& r);
  void admit(request const& r) const;
  void begin_drain();
  void count();
  void shut() override;

  asio::any_io_executor executor;
  server_options options;
  credentials known;
  router routes;
  asio::ip::tcp::acceptor acceptor;
  asio::steady_timer timer;
  std::optional<net::disk> aside;  // reads files
  bool reading = false;
  std::uint16_t port = 0;
  std::set<shared_connection> open;  // on the node's thread, like everything above
  std::size_t bodies = 0;            // bytes of all bodies
  bool parting = false, draining = false, closed = false, full = false;
  std::mutex mutex;  // guards `connections` and `counted`
  std::condition_variable changed;
  std::size_t connections = 0;
  bool counted = false;  // no more connections arrive
  std::promise<void> gone;
};

EDL_INLINE void server::state::listen() {
  try {
    asio::ip::tcp::resolver resolver(executor);
    auto const end = resolver.resolve(options.host, std::to_string(options.port))->endpoint();
    acceptor.open(end.protocol());
    acceptor.set_option(asio::socket_base::reuse_address(true));
    acceptor.bind(end);
    acceptor.listen();
    port = acceptor.local_endpoint().port();
  } catch (asio::system_error const& e) {
    throw error(
        fmt::format("cannot listen on {}:{} for HTTP: {}{}", options.host, options.port, e.code().message(),
                    e.code() == asio::error::address_in_use ? "; choose another port, or 0 for any" : ""));
  }
}

EDL_INLINE asio::awaitable<void> server::state::accept() {
  while (!closed && !draining) {
    asio::error_code failed;
    asio::ip::tcp::socket s(executor);
    co_await acceptor.async_accept(s, asio::redirect_error(asio::use_awaitable, failed));
    if (closed) break;
    if (!failed) {
      take(std::move(s));  // including one that arrived before `draining`
    } else if (draining) {
      break;
    } else if (failed != asio::error::connection_aborted) {
      options.log.warning(fmt::format("cannot accept on port {}: {}", port, failed.message()));
      asio::steady_timer rest(executor, std::chrono::seconds(1));  // out of descriptors or memory
      co_await rest.async_wait(asio::redirect_error(asio::use_awaitable, failed));
    }
  }
}

EDL_INLINE asio::awaitable<void> server::state::look() {
  limits const& b = options.bounds;
  auto const tick = std::clamp<std::chrono::milliseconds>(
      std::min({b.head, b.read, b.idle, b.write}) / 4, std::chrono::milliseconds(5), std::chrono::seconds(1));
  while (!closed) {
    asio::error_code failed;
    timer.expires_after(tick);
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, failed));
    auto const now = connection::clock::now();
    for (auto const& c : open) c->look(now);
    if (aside && !std::exchange(reading, true))
      asio::co_spawn(
          executor, [me = shared_from_this()] { return me->look_at_files(); },
          [me = shared_from_this()](std::exception_ptr) { me->reading = false; });
  }
}

/// Connected clients are served while this waits for a disk or a network volume.
EDL_INLINE asio::awaitable<void> server::state::look_at_files() {
  credentials::files now;
  std::function<void()> const read = [&] { now = known.read(); };
  co_await aside->run("the token and the certificate", read);
  if (!closed) known.look(now);
}

/// Closes the connection that has been idle for longest. False: all are busy.
EDL_INLINE bool server::state::make_room() {
  auto const before = connection::clock::now() - options.bounds.quiet;
  asio::error_code ignored;
  connection* longest = nullptr;
  for (auto const& c : open)
    if (c->now == phase::idle && c->since <= before && (!longest || c->since < longest->since) &&
        c->socket.plain().is_open() && c->socket.plain().available(ignored) == 0)
      longest = c.get();
  if (longest) longest->socket.close();
  return longest;
}

EDL_INLINE void server::state::take(asio::ip::tcp::socket s) {
  asio::error_code ignored;
  ignored = s.set_option(asio::ip::tcp::no_delay(true), ignored);
  ignored = s.set_option(asio::socket_base::keep_alive(true), ignored);
  // A few more are accepted, to be told that there are too many.
  std::size_t const most = options.bounds.connections;
  bool const surplus = open.size() >= most && !make_room();
  if (open.size() + most / 8 < most) full = false;
  if (surplus && !std::exchange(full, true))
    options.log.warning(fmt::format("{} clients are connected, the maximum: refusing others", most));
  if (surplus && open.size() >= most + detail::told_more) return;
  auto const c = std::make_shared<connection>(std::move(s), known.certificate(), options.bounds.write);
  open.insert(c);
  {
    std::lock_guard const lock(mutex);
    ++connections;
    invariant(connections == open.size(), "each connection that is open is counted");
  }
  asio::co_spawn(
      executor, [me = shared_from_this(), c, surplus] { return me->serve(*c, surplus); },
      asio::bind_cancellation_slot(c->cancel.slot(), [me = shared_from_this(), c](std::exception_ptr) {
        c->socket.close();
        // The coroutine still uses this connection's signal until it has returned.
        asio::post(me->executor, [me, c] {
          bool const was_open = me->open.erase(c) == 1;
          std::lock_guard const lock(me->mutex);
          invariant(was_open && me->connections > 0, "a connection ends once");
          --me->connections;
          me->changed.notify_all();
        });
      }));
}

EDL_INLINE asio::awaitable<void> server::state::serve(connection& c, bool surplus) {
  c.enter(phase::head, options.bounds.head);
  co_await c.socket.handshake();
  if (surplus) {
    failure const many(503, fmt::format("{} clients are connected, the maximum", options.bounds.connections),
                       {{"Retry-After", "1"}});
    response const reply = to_response(many);
    co_await c.send(reply, false, false, false);
  } else {
    while (co_await exchange(c)) {
    }
  }
  co_await c.linger();
}

/// Returns whether the connection stays open.
EDL_INLINE asio::awaitable<bool> server::state::exchange(connection& c) {
  request_parser parser(options.bounds.header, options.bounds.body);
  detail::share_of_bodies share{bodies};
  std::optional<found_route> to;
  response said;
  bool refused = false;
  try {
    if (!co_await receive_request(c, parser, to, share)) co_return false;
  } catch (failure const& f) {
    said = to_response(f);
    refused = true;
  } catch (asio::system_error const&) {
    if (!c.late || closed) throw;
    said = to_response({408, c.now == phase::head ? "the request's head came too slowly"
                                                  : "the request's body came too slowly"});
    refused = true;
  }
  bool const complete = parser.done();
  bool const head_only = parser.headed() && parser.head().method == "HEAD";
  if (!refused) {
    request r = parser.take();
    r.arguments = std::move(to->arguments);
    r.left = [&c] { return c.socket.left(); };
    c.enter_answer();
    said = co_await answer(*to->at, r);
  } else if (to && to->at && to->at->refused) {
    to->at->refused(said.status);
  }
  bool const chunks = parser.headed() && parser.chunks();
  bool const keep = complete && parser.keeps_alive() && !parting && (!said.stream || chunks);
  co_await c.send(said, head_only, keep, chunks);
  co_return keep;
}

/// False: the client has no further request.
EDL_INLINE asio::awaitable<bool> server::state::receive_request(connection& c, request_parser& parser,
                                                                std::optional<found_route>& to,
                                                                detail::share_of_bodies& share) {
  bool starved = c.unread().empty();
  c.enter(starved ? phase::idle : phase::head, starved ? options.bounds.idle : options.bounds.head);
  if (draining && !c.heard) c.enter(c.now, options.bounds.first);
  for (;;) {
    if (starved) {
      if (draining && c.now == phase::idle && c.heard) co_return false;
      bool const more = co_await c.receive();
      if (!more && c.now == phase::idle) co_return false;
      if (!more) throw failure(400, "the request is truncated");
      c.heard = true;
      if (c.now == phase::idle) c.enter(phase::head, options.bounds.head);
    }
    std::optional<failure> wrong;
    try {
      c.take(parser.feed(c.unread()));
    } catch (failure const& f) {
      wrong = f;
    }
    bool const first = parser.headed() && !to;
    if (first) {
      to = routes.find(parser.head());
      if (!to->at || !to->at->open) admit(parser.head());  // before any other reply
    }
    if (wrong) throw *wrong;
    if (parser.headed()) share.grow(parser.held(), options.bounds.bodies);
    if (first) {
      if (to->refused) throw *to->refused;
      if (parser.wants_continue()) co_await c.socket.write("HTTP/1.1 100 Continue\r\n\r\n", {});
      c.enter(phase::read, options.bounds.read);
    }
    if (parser.done()) co_return true;
    starved = true;
  }
}

EDL_INLINE void server::state::admit(request const& r) const {
  if (!known.wants_token()) return;
  std::string_view const given = r.field("authorization");
  constexpr std::string_view scheme = "bearer ";
  bool const bears = lower(given.substr(0, scheme.size())) == scheme;  // case-insensitive (RFC 9110)
  if (!(bears && known.takes(given.substr(scheme.size()))) &&
      !(options.token_in_address && known.takes(r.parameter("token"))))
    throw failure(401, "the request's field 'Authorization' must be 'Bearer' and the server's token",
                  {{"WWW-Authenticate", "Bearer"}});
}

EDL_INLINE asio::awaitable<response> server::state::answer(route const& to, request& r) {
  std::string why;
  try {
    co_return co_await to.serve(r);
  } catch (failure const& f) {
    co_return to_response(f);
  } catch (asio::system_error const& e) {
    if (closed) throw;
    why = e.what();
  } catch (std::exception const& e) {
    why = e.what();
  }
  options.log.error(fmt::format("{} {}: {}", r.method, r.path, why));
  co_return to_response({500, why});
}

EDL_INLINE void server::state::begin_drain() {
  parting = draining = true;
  asio::error_code ignored, failed;
  // Connections that the kernel has already accepted are served, too.
  failed = acceptor.non_blocking(true, failed);
  for (int i = 0; i < SOMAXCONN && !failed && !closed; ++i) {
    asio::ip::tcp::socket s(executor);
    failed = acceptor.accept(s, failed);
    if (!failed) take(std::move(s));
  }
  ignored = acceptor.close(ignored);
  for (auto const& c : open) {
    // A request that has already arrived is answered.
    bool const asks = c->now == phase::idle && c->socket.plain().available(ignored) > 0;
    if (c->now == phase::idle && !c->heard && !asks)
      c->enter(phase::idle, options.bounds.first);
    else if ((c->now == phase::idle && !asks) || c->now == phase::linger)
      c->socket.close();
    if (c->streaming) c->cancel.emit(asio::cancellation_type::terminal);
  }
  // Connections accepted before are handled first.
  asio::post(executor, [me = shared_from_this()] { me->count(); });
}

EDL_INLINE void server::state::count() {
  std::lock_guard const lock(mutex);
  counted = true;
  changed.notify_all();
}

EDL_INLINE void server::state::shut() {
  if (closed) return;
  closed = true;
  begin_drain();
  count();
  timer.cancel();
  for (auto const& c : open) {
    c->socket.close();
    c->cancel.emit(asio::cancellation_type::terminal);
  }
}

EDL_INLINE server::server(net::node& on, server_options o, router routes)
    : state_(std::make_shared<state>(on, std::move(o), std::move(routes))), node_(on) {
  state_->listen();
  node_.attach(state_);
  node_.post([s = state_] {
    asio::co_spawn(s->executor, s->accept(), [s](std::exception_ptr) {});
    asio::co_spawn(s->executor, s->look(), [s](std::exception_ptr) {});
  });
}

EDL_INLINE server::~server() {
  close();
  if (node_.on_thread()) return;
  auto ended = state_->gone.get_future();
  state_.reset();
  ended.wait();
}

EDL_INLINE void server::close() {
  node_.post([s = state_] { s->shut(); });
}

EDL_INLINE void server::part() {
  node_.post([s = state_] { s->parting = true; });
}

EDL_INLINE bool server::drain(std::chrono::milliseconds timeout) {
  node_.post([s = state_] { s->begin_drain(); });
  std::unique_lock lock(state_->mutex);
  bool const all =
      state_->changed.wait_for(lock, timeout, [this] { return state_->counted && state_->connections == 0; });
  lock.unlock();
  close();
  return all;
}

EDL_INLINE std::uint16_t server::port() const { return state_->port; }

EDL_INLINE std::string server::address() const {
  std::string const& host = state_->options.host;
  bool const six = host.find(':') != host.npos;
  return fmt::format("{}://{}{}{}:{}", state_->known.certificate() ? "https" : "http", six ? "[" : "", host,
                     six ? "]" : "", state_->port);
}

EDL_INLINE std::size_t server::connections() const {
  std::lock_guard const lock(state_->mutex);
  return state_->connections;
}

}  // namespace edl::http
