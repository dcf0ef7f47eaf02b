// SPDX-License-Identifier: Apache-2.0
#include "world/kernel/network.hpp"

#include <algorithm>
#include <utility>

#include "world/kernel/disk.hpp"

namespace world {

namespace {

std::vector<std::weak_ptr<socket>>& sockets() {
  static auto& all = *new std::vector<std::weak_ptr<socket>>;
  return all;
}

}  // namespace

std::vector<std::shared_ptr<socket>>& held_sockets() {
  static auto& all = *new std::vector<std::shared_ptr<socket>>;
  return all;
}

std::vector<std::shared_ptr<socket>> open_sockets() {
  std::vector<std::shared_ptr<socket>> all;
  std::erase_if(sockets(), [&](auto const& weak) {
    if (auto s = weak.lock()) return all.push_back(std::move(s)), false;
    return true;
  });
  return all;
}

std::shared_ptr<socket> make_socket(int domain) {
  auto s = std::make_shared<socket>(domain, *self->of);
  if (sockets().size() > 4096) open_sockets();
  sockets().push_back(s);
  return s;
}

void socket_pair(std::shared_ptr<socket>& a, std::shared_ptr<socket>& b) {
  a = make_socket(AF_UNIX);
  b = make_socket(AF_UNIX);
  for (auto const& [one, other] : {std::pair(a, b), std::pair(b, a)}) {
    one->peer = other;
    one->peer_host = one->at;
    one->peer_process = one->owner;
    one->is = socket::state::connected;
  }
}

// ---- Names and listening ----

long socket::bind(endpoint where, bool) {
  if (domain == AF_UNIX) {
    if (at->local.contains(where.path)) return -EADDRINUSE;
    if (where.path[0] != 0)
      if (long const code = make_socket_file(*self->of, where.path); code != 0) return code;
  } else {
    if (where.address != 0 && where.address != 0x7f000001u && where.address != at->address)
      return -EADDRNOTAVAIL;
    for (int tries = 0; where.port == 0 && tries < 30000; ++tries) {
      if (++at->last_port >= 61000) at->last_port = 32768;
      if (!at->ports.contains(at->last_port)) where.port = at->last_port;
    }
    if (at->ports.contains(where.port)) return -EADDRINUSE;
  }
  local = std::move(where);
  bound = true;
  return 0;
}

long socket::listen(int most) {
  if (domain == AF_UNIX) {
    at->local[local.path] = this;
  } else {
    if (!bound)
      if (long const code = bind({}, false); code != 0) return code;
    auto const [it, fresh] = at->ports.emplace(local.port, this);
    if (!fresh && it->second != this) return -EADDRINUSE;
  }
  most_queued = std::size_t(std::max(most, 1));
  is = state::listening;
  return 0;
}

namespace {

/// The peer of a socket that connects; null: nobody takes it.
std::shared_ptr<socket> answer(socket& from, socket* listener) {
  if (!listener || listener->queue.size() >= listener->most_queued) return nullptr;
  auto s = std::make_shared<socket>(from.domain, *process_of(listener->owner));
  sockets().push_back(s);
  s->at = listener->at;
  s->local = {from.remote.address, listener->local.port, listener->local.path};
  s->remote = from.local;
  s->peer = std::static_pointer_cast<socket>(from.shared_from_this());
  s->peer_host = from.at;
  s->peer_process = from.owner;
  s->is = socket::state::connected;
  from.peer = s;
  from.peer_host = listener->at;
  from.peer_process = listener->owner;
  listener->queue.push_back(s);
  listener->changed();
  return s;
}

void try_to_connect(std::shared_ptr<socket> const& s, host* to, int attempt) {
  if (s->is != socket::state::connecting || s->user_closed) return;
  if (to && reachable(*s->at, *to)) {
    auto const it = to->ports.find(s->remote.port);
    bool const taken = answer(*s, it == to->ports.end() ? nullptr : it->second) != nullptr;
    if (taken || it == to->ports.end()) {
      os->at(os->now + travel(*to, *s->at, 0), [s, taken] {
        if (s->is != socket::state::connecting) return;
        if (!taken) return s->break_off(ECONNREFUSED);
        s->is = socket::state::connected;
        s->changed();
      });
      return;
    }
  }
  if (attempt == 6) return s->break_off(ETIMEDOUT);
  os->at(os->now + (1'000'000'000ll << attempt), [s, to, attempt] { try_to_connect(s, to, attempt + 1); });
}

}  // namespace

long socket::begin_connect(endpoint to) {
  if (is == state::connecting) return -EALREADY;
  if (is == state::connected) return -EISCONN;
  if (is != state::fresh) return -EINVAL;
  remote = std::move(to);
  if (domain == AF_UNIX) {
    auto const it = at->local.find(remote.path);
    if (it == at->local.end())
      return remote.path[0] == 0 ? -ECONNREFUSED : refusal_of(*self->of, remote.path);
    if (!answer(*this, it->second)) return -EAGAIN;
    is = state::connected;
    changed();
    return 0;
  }
  if (remote.address == 0 || (remote.address >> 24 == 127 && !host_at(remote.address)))
    remote.address = at->outside ? at->outside->address : at->address;
  if (!bound) {
    if (long const code = bind({}, false); code != 0) return code;
  }
  local.address = at->address;
  is = state::connecting;
  host* const there = host_at(remote.address);
  auto const me = std::static_pointer_cast<socket>(shared_from_this());
  std::int64_t const takes = there ? travel(*at, *there, 0) : 0;
  os->at(os->now + takes, [me, there] { try_to_connect(me, there, 0); });
  if (there && there != at) os->called("connect", there->name);
  return -EINPROGRESS;
}

// ---- Bytes ----

std::size_t socket::room() const {
  auto const other = peer.lock();
  std::size_t const waiting =
      bytes_in_flight + (other && !other->user_closed ? other->incoming.size() - other->taken : 0);
  return waiting >= limit ? 0 : limit - waiting;
}

long socket::send(std::span<iovec const> from, int, together with) {
  if (error) return -std::exchange(error, 0);
  if (is == state::connecting) return -EAGAIN;
  if (is == state::broken || output_over) return -EPIPE;
  if (is != state::connected) return -ENOTCONN;
  if (domain == AF_UNIX) {
    auto const other = peer.lock();
    if (!other || other->user_closed) return -EPIPE;
  }
  std::size_t const all = total_of(from), space = room();
  if (all == 0) return 0;
  if (space == 0) return -EAGAIN;
  packet p{.bytes = gather(from, space), .with = std::move(with)};
  long const n = long(p.bytes.size());
  os->note("send", std::uint64_t(owner) << 32 | remote.port, std::uint64_t(n));
  transmit(std::move(p));
  if (at != peer_host) os->called("send", peer_host->name);
  return n;
}

void socket::transmit(packet p) {
  if (!peer_host) return;
  std::size_t const size = p.bytes.size();
  double const bandwidth = at == peer_host ? 8e9 : link_between(*at, *peer_host).bandwidth;
  line_free = std::max(line_free, os->now) + std::int64_t(double(size) / bandwidth * 1e9);
  last_arrival = std::max(last_arrival + 1, line_free + travel(*at, *peer_host, size));
  bytes_in_flight += size;
  in_flight.push_back(std::move(p));
  os->at(last_arrival, [me = std::static_pointer_cast<socket>(shared_from_this()), n = arrivals] {
    if (me->arrivals == n) me->arrive();
  });
  if (!reachable()) watch_silence();
}

bool socket::reachable() const { return !stranded && peer_host && world::reachable(*at, *peer_host); }

void socket::arrive() {
  if (in_flight.empty() || held) return;
  if (!reachable()) {
    if (in_flight.front().reset) {  // nobody sends it again
      in_flight.clear();
      return;
    }
    held = true;
    held_since = os->now;
    held_sockets().push_back(std::static_pointer_cast<socket>(shared_from_this()));
    return;
  }
  packet p = std::move(in_flight.front());
  in_flight.pop_front();
  bytes_in_flight -= p.bytes.size();
  bool const lost = to_swallow > 0 && !p.bytes.empty() && !p.reset;
  to_swallow -= lost;
  if (swallowed || lost) return changed();
  auto const other = peer.lock();
  if (!other || other->user_closed || other->vanished || other->is == state::broken) {
    if (!p.reset && !p.bytes.empty()) answer_with_reset(*this);
    changed();
    return;
  }
  if (p.reset) return other->break_off(ECONNRESET);
  if (p.end) other->input_over = true;
  if (!p.with.empty()) other->passed.emplace_back(other->arrived_so_far, std::move(p.with));
  other->arrived_so_far += p.bytes.size();
  if (other->taken == other->incoming.size()) other->incoming.clear(), other->taken = 0;
  other->incoming += p.bytes;
  other->changed();
}

void socket::answer_with_reset(socket& sender) const {
  if (domain == AF_UNIX) return;
  auto const to = std::static_pointer_cast<socket>(sender.shared_from_this());
  os->at(os->now + travel(*peer_host, *at, 0), [to] {
    if (to->reachable()) to->break_off(ECONNRESET);
  });
}

void socket::break_off(int code) {
  if (is == state::broken) return;
  os->note("break", std::uint64_t(owner) << 32 | remote.port, std::uint64_t(code));
  is = state::broken;
  error = code;
  in_flight.clear();
  bytes_in_flight = 0;
  ++arrivals;
  held = false;
  changed();
}

long socket::receive(std::span<iovec const> into, int flags, together* with) {
  std::size_t const there = incoming.size() - taken;
  if (there == 0) {
    if (error) return -std::exchange(error, 0);
    if (input_over || is == state::broken) return 0;
    if (is == state::fresh || is == state::listening) return -ENOTCONN;
    return -EAGAIN;
  }
  std::size_t n = std::min(there, total_of(into));
  // What was passed with a byte comes with it, and ends what is read before.
  if (!passed.empty() && passed.front().first > read_so_far)
    n = std::min(n, std::size_t(passed.front().first - read_so_far));
  scatter(std::string_view(incoming).substr(taken, n), into);
  if (flags & MSG_PEEK) return long(n);
  if (n > 0 && !passed.empty() && passed.front().first == read_so_far) {
    if (with) *with = std::move(passed.front().second);
    passed.pop_front();
  }
  std::size_t before = 0;
  auto const other = peer.lock();
  if (other) before = other->room();
  read_so_far += n;
  taken += n;
  if (taken == incoming.size()) incoming.clear(), taken = 0;
  os->note("recv", std::uint64_t(owner) << 32 | remote.port, std::uint64_t(n));
  if (other && before < limit / 3 && other->room() >= limit / 3) other->changed();
  return long(n);
}

short socket::ready() const {
  int now = 0;
  if (is == state::listening) return queue.empty() ? 0 : POLLIN;
  if (is == state::fresh) return POLLOUT | POLLHUP;
  if (incoming.size() > taken || input_over || is == state::broken) now |= POLLIN;
  if (input_over || is == state::broken) now |= POLLRDHUP;
  if (error) now |= POLLERR;
  if (is == state::broken || (input_over && output_over)) now |= POLLHUP;
  if (is == state::broken || (is == state::connected && (output_over || room() >= limit / 3))) now |= POLLOUT;
  if (domain == AF_UNIX && is == state::connected) {
    auto const other = peer.lock();
    if (!other || other->user_closed) now |= POLLOUT;
  }
  return short(now);
}

// ---- Ends ----

long socket::shut(int how) {
  if (is != state::connected && is != state::broken) return -ENOTCONN;
  if (how != SHUT_WR) input_over = true;
  if (how != SHUT_RD && !std::exchange(output_over, true) && is == state::connected) transmit({.end = true});
  changed();
  return 0;
}

void socket::closed() {
  user_closed = true;
  if (is == state::listening) {
    if (domain == AF_UNIX)
      at->local.erase(local.path);
    else
      at->ports.erase(local.port);
    for (auto const& s : queue) s->linger_reset = true, s->closed();
    queue.clear();
    return;
  }
  if (is != state::connected || vanished) return;
  if (linger_reset || (incoming.size() > taken && domain != AF_UNIX)) {
    in_flight.clear();
    bytes_in_flight = 0;
    ++arrivals;
    held = false;
    transmit({.reset = true});
  } else if (!std::exchange(output_over, true)) {
    transmit({.end = true});
  }
}

void socket::watch_silence() {
  if (is != state::connected || vanished) return;
  std::uint64_t const n = outages;
  auto const look = [me = std::weak_ptr(std::static_pointer_cast<socket>(shared_from_this())), n] {
    auto const s = me.lock();
    if (!s || s->outages != n || s->reachable() || s->is != state::connected) return;
    if (s->keepalive || !s->in_flight.empty()) s->break_off(ETIMEDOUT);
  };
  std::int64_t const probes =
      (keepalive_idle + std::int64_t(keepalive_interval) * keepalive_count) * 1'000'000'000;
  os->at(os->now + (keepalive ? std::min(user_timeout, probes) : user_timeout), look);
}

}  // namespace world
