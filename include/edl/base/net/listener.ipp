// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/error.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/system_error.hpp>
#include <asio/use_awaitable.hpp>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <future>
#include <list>
#include <string>
#include <utility>

#include "edl/base/net/connection.hpp"
#include "edl/base/net/listener.hpp"
#include "edl/base/net/security/handshake.hpp"
#include "edl/base/net/security/secure_socket.hpp"
#include "edl/base/net/time_limit.hpp"
#include "edl/base/net/transport.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::net {

struct listener::state : detail::service, std::enable_shared_from_this<listener::state> {
  using generic_acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol>;
  using shared_socket = std::shared_ptr<secure_socket>;

  state(node& on, handler s, listener_options o)
      : executor(on.executor()),
        options(on.options()),
        tls(on.tls()),
        serve(std::move(s)),
        streams(std::move(o.streams)) {
    if (o.credential) {
      options.secret = *o.credential;
      tls = tls_context(options.secret, options.job);
    }
    ::rlimit most{};
    if (::getrlimit(RLIMIT_NOFILE, &most) == 0 && most.rlim_cur != RLIM_INFINITY)
      options.bounds.strangers =
          std::clamp<std::size_t>(most.rlim_cur / 8, 1, std::max<std::size_t>(options.bounds.strangers, 1));
  }
  ~state() override {
    serve = nullptr;
    streams = nullptr;
    gone.set_value();
  }

  address listen(address const& where);
  asio::awaitable<void> accept_from(std::size_t index);
  void take(shared_socket const& s, address const& at);
  void drop_oldest();
  asio::awaitable<void> welcome(shared_socket s, std::string peer);
  void reject(std::string const& peer, std::string const& why);
  void complain(std::string const& what);
  void shut() override;

  asio::any_io_executor executor;
  node_options options;
  tls_context tls;
  handler serve;
  stream_handler streams;
  std::vector<address> addresses;
  std::vector<generic_acceptor> acceptors;
  std::list<shared_socket> strangers;  // oldest first
  std::vector<std::weak_ptr<connection>> open;
  std::atomic<std::uint64_t> accepted = 0, rejected = 0;
  std::atomic<std::size_t> connections = 0;
  time_point quiet_until = time_point::min();
  std::uint64_t unsaid = 0;
  bool closed = false;
  std::promise<void> gone;
};

EDL_INLINE address listener::state::listen(address const& where) {
  try {
    asio::generic::stream_protocol::endpoint end;
    if (where.over == address::transport::local) {
      end = detail::local_endpoint(where);
      if (where.is_path()) ::unlink(where.host.c_str());
    } else {
      asio::error_code failed;
      if (auto const number = asio::ip::make_address(where.host, failed); !failed)
        end = asio::ip::tcp::endpoint(number, where.port);
      else
        end = asio::ip::tcp::resolver(executor).resolve(where.host, std::to_string(where.port))->endpoint();
    }
    generic_acceptor acceptor(executor, end.protocol());
    if (where.over == address::transport::tcp) acceptor.set_option(asio::socket_base::reuse_address(true));
    acceptor.bind(end);
    acceptor.listen(4096);
    address result = where;
    result.peer = to_string(options.self);
    if (where.over == address::transport::tcp) {
      auto const real = acceptor.local_endpoint();
      asio::ip::tcp::endpoint bound;
      bound.resize(real.size());
      std::memcpy(bound.data(), real.data(), real.size());
      result.port = bound.port();
    }
    acceptors.push_back(std::move(acceptor));
    return result;
  } catch (asio::system_error const& e) {
    throw error(
        fmt::format("cannot listen on {}: {}{}", place_of(where), e.code().message(),
                    e.code() == asio::error::address_in_use ? "; another process does, choose another" : ""));
  }
}

EDL_INLINE asio::awaitable<void> listener::state::accept_from(std::size_t index) {
  while (!closed) {
    asio::error_code failed;
    auto const s = std::make_shared<secure_socket>(executor);
    co_await acceptors[index].async_accept(s->plain(), asio::redirect_error(asio::use_awaitable, failed));
    if (closed) break;
    if (!failed) {
      take(s, addresses[index]);
      continue;
    }
    if (failed == asio::error::connection_aborted) continue;
    // Unauthenticated peers must not keep members out: they make room first.
    bool const full = failed == asio::error::no_descriptors || failed.value() == ENFILE;
    if (full && !strangers.empty()) {
      drop_oldest();
      continue;
    }
    // Out of descriptors or memory: open connections continue, and new ones wait in the kernel's queue.
    complain(fmt::format("cannot accept on {}: {}", place_of(addresses[index]), failed.message()));
    asio::steady_timer rest(executor, std::chrono::milliseconds(200));
    co_await rest.async_wait(asio::redirect_error(asio::use_awaitable, failed));
  }
}

EDL_INLINE void listener::state::drop_oldest() {
  invariant(!strangers.empty(), "an unauthenticated connection is dropped only if one waits");
  strangers.front()->close();
  strangers.pop_front();
}

EDL_INLINE void listener::state::take(shared_socket const& s, address const& at) {
  std::string const peer = detail::peer_name(s->plain(), at);
  try {
    if (at.over == address::transport::local) detail::check_owner(s->plain());
  } catch (std::exception const& e) {
    s->close();
    return reject(peer, e.what());
  }
  while (strangers.size() >= options.bounds.strangers) drop_oldest();
  strangers.push_back(s);
  invariant(strangers.size() <= std::max<std::size_t>(options.bounds.strangers, 1),
            "no more unauthenticated connections wait than the limit allows");
  asio::co_spawn(executor, welcome(s, peer), [self = shared_from_this()](std::exception_ptr) {});
}

EDL_INLINE asio::awaitable<void> listener::state::welcome(shared_socket s, std::string peer) {
  bool late = false;
  greeting said;
  std::string why;
  try {
    detail::time_limit const limit(executor, clock::now() + options.bounds.handshake, [s, &late] {
      late = true;
      s->close();
    });
    detail::tune(s->plain());
    co_await greet_client(*s, options, tls, addresses, said);
    if (!said.stream.empty() && !streams) throw error("this listener accepts no raw bytes");
  } catch (asio::system_error const& e) {
    why = late ? fmt::format("no handshake within {} ms", options.bounds.handshake.count())
               : "the handshake broke off: " + e.code().message();
  } catch (std::exception const& e) {
    why = e.what();
  }
  std::erase(strangers, s);
  if (closed) {
    s->close();
    co_return;
  }
  if (late || !why.empty()) {
    s->close();
    if (late || said.heard) reject(peer, why);
    co_return;
  }
  ++accepted;
  if (!said.client.empty()) peer = fmt::format("{} ({})", said.client, peer);
  if (!said.stream.empty()) {
    streams(s->release(), said.stream, peer);
    co_return;
  }
  ++connections;
  invariant(connections <= accepted, "an open connection was accepted");
  std::erase_if(open, [](auto const& c) { return c.expired(); });
  open.push_back(
      connection::open(std::move(*s), std::move(peer), options.bounds, options.log,
                       serve ? [me = shared_from_this()](request& r) { return me->serve(r); } : handler{},
                       [me = shared_from_this()] {
                         invariant(me->connections > 0, "a connection that ends was counted as open");
                         --me->connections;
                       }));
}

EDL_INLINE void listener::state::reject(std::string const& peer, std::string const& why) {
  ++rejected;
  complain(fmt::format("{}: connection refused: {}", peer, why));
}

// Logs at most one line a second, whatever unauthenticated peers do.
EDL_INLINE void listener::state::complain(std::string const& what) {
  auto const now = clock::now();
  if (now < quiet_until) {
    ++unsaid;
    return;
  }
  quiet_until = now + std::chrono::seconds(1);
  options.log.warning(what +
                      (unsaid ? fmt::format(" (and {} others since the last such line)", unsaid) : ""));
  unsaid = 0;
}

EDL_INLINE void listener::state::shut() {
  if (closed) return;
  closed = true;
  asio::error_code ignored;
  for (auto& acceptor : acceptors) acceptor.close(ignored);
  for (auto const& s : strangers) s->close();
  for (auto const& weak : open)
    if (auto const c = weak.lock()) c->close(status::cancelled, "this process is closing its connections");
}

EDL_INLINE listener::listener(node& on, std::vector<address> const& where, handler serve, listener_options o)
    : state_(std::make_shared<state>(on, std::move(serve), o)), node_(on) {
  if (where.empty()) throw error("a listener needs an address to listen on, as tcp:0.0.0.0:0");
  for (auto const& a : where) try {
      state_->addresses.push_back(state_->listen(a));
    } catch (error const& e) {
      bool const last = &a == &where.back() && state_->addresses.empty();
      if (!o.some_suffice || last) throw;
      on.options().log.warning(e.what());
    }
  invariant(state_->addresses.size() == state_->acceptors.size() && !state_->addresses.empty(),
            "each address that is listened on has its acceptor");
  node_.attach(state_);
  node_.post([s = state_] {
    for (std::size_t i = 0; i < s->acceptors.size(); ++i)
      asio::co_spawn(s->executor, s->accept_from(i), [s](std::exception_ptr) {});
  });
}

EDL_INLINE listener::~listener() {
  close();
  if (node_.on_thread()) return;
  auto ended = state_->gone.get_future();
  state_.reset();
  ended.wait();
}

EDL_INLINE void listener::close() {
  node_.post([s = state_] { s->shut(); });
}

EDL_INLINE std::vector<address> const& listener::addresses() const { return state_->addresses; }
EDL_INLINE std::uint64_t listener::accepted() const { return state_->accepted; }
EDL_INLINE std::uint64_t listener::rejected() const { return state_->rejected; }
EDL_INLINE std::size_t listener::connections() const { return state_->connections; }

}  // namespace edl::net
