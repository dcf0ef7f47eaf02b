// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "world/kernel/object.hpp"
#include "world/kernel/process.hpp"

namespace world {

/// Where a socket is, or its peer.
struct endpoint {
  std::uint32_t address = 0;  ///< in the order of this machine
  std::uint16_t port = 0;
  std::string path;  ///< of a Unix socket; an abstract one begins with 0
};

/// A stream socket. Bytes that it sends wait in `in_flight` until they arrive at the peer.
struct socket final : object {
  enum class state { fresh, listening, connecting, connected, broken };
  using together = std::vector<std::shared_ptr<object>>;
  struct packet {
    std::string bytes;
    bool end = false, reset = false;
    together with;  ///< descriptors that are passed
  };

  socket(int d, process& p) : domain(d), at(p.at), owner(p.number) {}
  long read(std::span<iovec const> into, int flags) override { return receive(into, flags, nullptr); }
  long write(std::span<iovec const> from, int flags) override { return send(from, flags, {}); }
  long receive(std::span<iovec const>, int flags, together* with);
  long send(std::span<iovec const>, int flags, together with);
  short ready() const override;
  void closed() override;
  char const* kind() const override { return "socket"; }

  long bind(endpoint where, bool reuse);
  long listen(int most);
  long begin_connect(endpoint to);  ///< -EINPROGRESS, or the result
  long shut(int how);

  std::size_t room() const;
  void transmit(packet p);
  void arrive();             ///< the oldest packet in flight is to arrive now
  void break_off(int code);  ///< the connection is over with that error
  bool reachable() const;    ///< packets pass to the peer's host and back
  void watch_silence();      ///< gives up when the peer is out of reach for too long
  void answer_with_reset(socket& sender) const;

  int domain;
  state is = state::fresh;
  host* at;
  host* peer_host = nullptr;
  pid owner;
  pid peer_process = 0;
  endpoint local, remote;
  bool bound = false, user_closed = false, vanished = false, stranded = false, swallowed = false;
  std::uint64_t to_swallow = 0;  ///< packets that arrive nowhere
  std::weak_ptr<socket> peer;

  std::deque<std::shared_ptr<socket>> queue;  ///< of one that listens
  std::size_t most_queued = 0;

  std::string incoming;
  std::size_t taken = 0;  ///< of incoming
  std::uint64_t read_so_far = 0, arrived_so_far = 0;
  std::deque<std::pair<std::uint64_t, together>> passed;
  bool input_over = false, output_over = false;
  int error = 0;

  std::deque<packet> in_flight;
  std::size_t bytes_in_flight = 0;
  std::int64_t last_arrival = 0, line_free = 0;
  std::uint64_t arrivals = 0;  ///< those scheduled before a reset find another number
  bool held = false;           ///< the oldest packet could not arrive
  std::int64_t held_since = 0;
  std::uint64_t outages = 0;
  bool keepalive = false, linger_reset = false;
  std::int64_t user_timeout = 924'000'000'000, keepalive_after = 7'200'000'000'000 + 9 * 75'000'000'000;
  int keepalive_idle = 7200, keepalive_interval = 75, keepalive_count = 9;
  std::size_t limit = 1u << 20;
};

bool reachable(host const& a, host const& b);
link const& link_between(host const& from, host const& to);
/// Those whose oldest packet cannot arrive, also when nobody has them open any more.
std::vector<std::shared_ptr<socket>>& held_sockets();
/// How long a packet of that size takes; without the time on the line.
std::int64_t travel(host const& from, host const& to, std::size_t bytes);
void host_lost(host& h);
void host_back(host& h);
/// Null: DNS does not know it.
host* resolve_name(std::string const& name);
std::vector<std::shared_ptr<socket>> open_sockets();
std::shared_ptr<socket> make_socket(int domain);
void socket_pair(std::shared_ptr<socket>& a, std::shared_ptr<socket>& b);

}  // namespace world
