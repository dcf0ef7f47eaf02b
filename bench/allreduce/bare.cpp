// SPDX-License-Identifier: Apache-2.0
// The floor: blocking sockets around the ring, the bytes and the rounds of a ring's sum without its
// arithmetic.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "contestant.hpp"

namespace bench {
namespace {

using edl::net::descriptor;

// Everybody sends and then receives: no more at once than sockets hold.
constexpr std::size_t chunk = 64u << 10;

void must(bool done) {
  if (!done) std::abort();
}

std::pair<descriptor, descriptor> linked(transport over) {
  int const one = 1, buffer = 1 << 20;
  if (over == transport::local) {
    int pair[2];
    must(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    for (int const end : pair) ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    return {descriptor(pair[0]), descriptor(pair[1])};
  }
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* where = reinterpret_cast<sockaddr*>(&at);
  descriptor const listening(::socket(AF_INET, SOCK_STREAM, 0));
  must(::bind(listening.get(), where, size) == 0 && ::listen(listening.get(), 1) == 0 &&
       ::getsockname(listening.get(), where, &size) == 0);
  descriptor a(::socket(AF_INET, SOCK_STREAM, 0));
  must(::connect(a.get(), where, size) == 0);
  descriptor b(::accept(listening.get(), nullptr, nullptr));
  must(bool(b));
  for (int const end : {a.get(), b.get()}) ::setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return {std::move(a), std::move(b)};
}

void around(int to, int from, std::span<float> values, int size) {
  auto* const bytes = reinterpret_cast<char*>(values.data());
  for (int step = 0; step < 2 * (size - 1); ++step) {
    std::size_t const share = values.size_bytes() / std::size_t(size);
    for (std::size_t at = 0; at < share; at += chunk) {
      std::size_t const now = std::min(chunk, share - at);
      for (std::size_t done = 0; done < now;) {
        ssize_t const n = ::send(to, bytes + at + done, now - done, MSG_NOSIGNAL);
        must(n > 0);
        done += std::size_t(n);
      }
      must(::recv(from, bytes + at, now, MSG_WAITALL) == ssize_t(now));
    }
  }
}

}  // namespace

mesh connect(int size, transport over, std::function<std::vector<int>(int a)> const& wanted) {
  mesh links;
  for (int r = 0; r < size; ++r) links.emplace_back(std::size_t(size));
  for (int a = 0; a < size; ++a)
    for (int const b : wanted(a)) {
      if (links[std::size_t(a)][std::size_t(b)]) continue;
      auto both = linked(over);
      links[std::size_t(a)][std::size_t(b)] = std::move(both.first);
      links[std::size_t(b)][std::size_t(a)] = std::move(both.second);
    }
  return links;
}

std::vector<contestant> bare_sockets(int size) {
  std::vector<contestant> all;
  for (auto const over : {transport::tcp, transport::local}) {
    // Between two members, one socket for each direction, as there are between more.
    auto const ring = std::make_shared<std::vector<std::pair<descriptor, descriptor>>>();
    for (int r = 0; r < size; ++r) ring->push_back(linked(over));
    all.push_back({"bare", "bare", over == transport::tcp ? "TCP" : "Unix", false, [ring, size](int rank) {
                     auto const to =
                         std::make_shared<descriptor>(std::move((*ring)[std::size_t(rank)].first));
                     auto const from = std::make_shared<descriptor>(
                         std::move((*ring)[std::size_t((rank + size - 1) % size)].second));
                     ring->clear();
                     return [=](std::span<float> values) -> ready {
                       return [=] { around(to->get(), from->get(), values, size); };
                     };
                   }});
  }
  return all;
}

}  // namespace bench
