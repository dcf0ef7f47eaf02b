// SPDX-License-Identifier: Apache-2.0
// What lies between hosts, and what drivers do to it.
#include <algorithm>
#include <utility>

#include "world/kernel/disk.hpp"
#include "world/kernel/network.hpp"

namespace world {

namespace {

struct network_state {
  link standard;
  std::map<std::pair<host const*, host const*>, link> links;
  std::map<std::string, std::string> names;
};
network_state& net() {
  static auto& all = *new network_state;
  return all;
}

constexpr std::int64_t first_retransmission = 200'000'000, longest_retransmission = 120'000'000'000;

}  // namespace

link const& link_between(host const& from, host const& to) {
  auto const it = net().links.find({&from, &to});
  return it == net().links.end() ? net().standard : it->second;
}

bool reachable(host const& a, host const& b) {
  return a.up && b.up && (&a == &b || (!link_between(a, b).cut && !link_between(b, a).cut));
}

std::int64_t travel(host const& from, host const& to, std::size_t bytes) {
  random_stream& draw = os->network;
  if (&from == &to) return 5'000 + std::int64_t(draw.below(10'000)) + std::int64_t(bytes / 8);
  link const& l = link_between(from, to);
  std::int64_t t = l.latency.count() + std::int64_t(draw.exponential(double(l.jitter.count())));
  for (std::int64_t again = first_retransmission; l.loss > 0 && draw.fraction() < l.loss; again *= 2)
    t += again;
  return t;
}

namespace {

/// After links or hosts have changed: who was cut off begins to wait, who is reached again sends again.
void look_at_links() {
  auto const held = std::exchange(held_sockets(), {});
  for (auto const& s : held)
    if (s->held && !s->reachable()) held_sockets().push_back(s);
  for (auto const& s : open_sockets()) {
    if (!s->peer_host || s->peer_host == s->at) continue;
    bool const passes = s->reachable();
    if (!passes && s->outages % 2 == 0) {
      ++s->outages;
      s->watch_silence();
    } else if (passes && s->outages % 2 == 1) {
      ++s->outages;
      if (!s->held) continue;
      // Pauses double (RFC 6298): to find back may take as long as the outage was.
      link const& way = link_between(*s->at, *s->peer_host);
      std::int64_t pause = first_retransmission + 2 * way.latency.count() +
                           std::int64_t(os->network.exponential(double(way.jitter.count())));
      std::int64_t again = s->held_since + pause;
      while (again <= os->now) again += pause = std::min(2 * pause, longest_retransmission);
      std::int64_t const wait = again - os->now;
      ++s->arrivals;  // what is scheduled already comes now
      for (std::size_t i = 0; i < s->in_flight.size(); ++i)
        os->at(os->now + wait + std::int64_t(i), [s, n = s->arrivals] {
          s->held = false;
          if (s->arrivals == n) s->arrive();
        });
      s->last_arrival = std::max(s->last_arrival, os->now + wait + std::int64_t(s->in_flight.size()));
    }
  }
}

}  // namespace

void host_lost(host& h) {
  h.up = false;
  for (auto const& s : open_sockets())
    if (s->at == &h) s->vanished = true, s->in_flight.clear(), s->bytes_in_flight = 0, ++s->arrivals;
  h.ports.clear();
  h.local.clear();
  look_at_links();
}

void host_back(host& h) {
  h.up = true;
  look_at_links();
}

// ---- The interface of drivers ----

host* resolve_name(std::string const& name) {
  auto const it = net().names.find(name);
  if (it != net().names.end()) return it->second.empty() ? nullptr : &host_called(it->second);
  return find_host(name);
}

void set_dns(std::string const& name, std::string const& host) { net().names[name] = host; }

link get_link(std::string const& from, std::string const& to) {
  return link_between(host_called(from), host_called(to));
}

void set_link(std::string const& from, std::string const& to, link const& one_way) {
  net().links[{&host_called(from), &host_called(to)}] = one_way;
  look_at_links();
}

void set_default_link(link const& all) {
  net().standard = all;
  look_at_links();
}

static void set_cut(std::string const& a, std::string const& b, bool cut) {
  host &one = host_called(a), &other = host_called(b);
  for (auto const& [from, to] : {std::pair(&one, &other), std::pair(&other, &one)}) {
    link l = link_between(*from, *to);
    l.cut = cut;
    net().links[{from, to}] = l;
  }
}

void cut(std::string const& a, std::string const& b) {
  os->note("cut", a + " " + b);
  set_cut(a, b, true);
  look_at_links();
}

void heal(std::string const& a, std::string const& b) {
  os->note("heal", a + " " + b);
  set_cut(a, b, false);
  look_at_links();
}

void isolate(std::string const& host) {
  os->note("isolate", host);
  for (std::string const& other : host_names())
    if (other != host) set_cut(host, other, true);
  look_at_links();
}

void rejoin(std::string const& host) {
  os->note("rejoin", host);
  for (std::string const& other : host_names())
    if (other != host) set_cut(host, other, false);
  look_at_links();
}

template <class Do>
static void for_connections(std::string const& a, std::string const& b, Do&& what) {
  host &one = host_called(a), &other = host_called(b);
  for (auto const& s : open_sockets())
    if (s->is == socket::state::connected && s->domain != AF_UNIX &&
        ((s->at == &one && s->peer_host == &other) || (s->at == &other && s->peer_host == &one)))
      what(*s);
}

void reset_connections(std::string const& a, std::string const& b) {
  os->note("reset", a + " " + b);
  for_connections(a, b, [](socket& s) { s.break_off(ECONNRESET); });
}

void strand_connections(std::string const& a, std::string const& b) {
  os->note("strand", a + " " + b);
  for_connections(a, b, [](socket& s) { s.stranded = true; });
  look_at_links();
}

void swallow(std::string const& a, std::string const& b, std::uint64_t count) {
  os->note("swallow", a + " " + b);
  host const* const from = &host_called(a);
  for_connections(a, b, [from, count](socket& s) {
    if (s.at != from || s.bound) return;
    s.swallowed = s.swallowed || count == 0;
    s.to_swallow = count;
  });
}

void end_late(std::string const& a, std::string const& b, duration late) {
  os->note("end late", a + " " + b);
  host const* const from = &host_called(a);
  for_connections(a, b, [from, late](socket& s) {
    if (s.at != from) return;
    auto const other = s.peer.lock();
    s.break_off(ECONNRESET);
    if (other) os->at(os->now + late.count(), [other] { other->break_off(ECONNRESET); });
  });
}

std::string address_of(std::string const& host) {
  std::uint32_t const a = host_called(host).address;
  return std::to_string(a >> 24) + '.' + std::to_string(a >> 16 & 255) + '.' + std::to_string(a >> 8 & 255) +
         '.' + std::to_string(a & 255);
}

std::size_t connections() {
  std::size_t n = 0;
  for (auto const& s : open_sockets())
    n += s->is == socket::state::connected && s->at != s->peer_host && !s->user_closed;
  return n / 2;
}

}  // namespace world
