// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "edl/core/clock.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/collective/group.hpp"
#include "edl/job/collective/numbers.hpp"
#include "edl/job/collective/topology.hpp"

namespace edl::collective {
namespace detail {

// Precedes an operation's bytes on each link, so that members in different operations detect that.
inline constexpr std::uint64_t operation_mark = 0x6c6465'0000000000;
inline constexpr std::size_t piece_bytes = 256u
                                           << 10;  // received at once, and added while it is in the cache
inline constexpr std::size_t floats_per_line = 16;
// The buffer of a link within a host, small enough to stay in a cache. TCP would let it grow to megabytes,
// which takes up to half as long again.
inline constexpr int held_bytes = 192 << 10;

inline bool within_host(int socket) {
  sockaddr_storage here{}, there{};
  socklen_t here_size = sizeof here, there_size = sizeof there;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&here), &here_size) != 0 ||
      ::getpeername(socket, reinterpret_cast<sockaddr*>(&there), &there_size) != 0 ||
      here.ss_family != there.ss_family)
    return false;
  if (here.ss_family == AF_INET)
    return reinterpret_cast<sockaddr_in&>(here).sin_addr.s_addr ==
           reinterpret_cast<sockaddr_in&>(there).sin_addr.s_addr;
  return here.ss_family == AF_INET6 &&
         std::memcmp(&reinterpret_cast<sockaddr_in6&>(here).sin6_addr,
                     &reinterpret_cast<sockaddr_in6&>(there).sin6_addr, sizeof(in6_addr)) == 0;
}

}  // namespace detail

struct group::flow {
  int peer;  // its rank
  std::vector<std::span<std::byte>> parts;
  std::size_t part = 0, offset = 0, done = 0, total = 0;

  explicit flow(int p) : peer(p) {}
  void add(std::span<std::byte> bytes) {
    parts.push_back(bytes);
    total += bytes.size();
  }
  bool over() const { return done == total; }
  std::span<std::byte> next() {
    invariant(!over(), "bytes are moved while some are left");
    while (offset == parts[part].size()) ++part, offset = 0;
    return parts[part].subspan(offset);
  }
  void advance(std::size_t n) {
    offset += n, done += n;
    invariant(done <= total, "no more bytes are moved than the operation has");
  }
};

EDL_INLINE group::group(int rank, std::vector<net::byte_stream> links, group_options o)
    : rank_(rank), links_(std::move(links)), options_(o) {
  invariant(rank >= 0 && rank < size(), "a member's rank is below the size of its group");
  invariant(!links_[std::size_t(rank)], "a member has no link to itself");
  for (int const other : partners(rank_, size())) {
    int const link = links_[std::size_t(other)].get();
    if (link < 0) throw error(fmt::format("member {} of {} has no link to member {}", rank, size(), other));
    if (detail::within_host(link))
      ::setsockopt(link, SOL_SOCKET, SO_SNDBUF, &detail::held_bytes, sizeof detail::held_bytes);
  }
}

EDL_INLINE void group::abort() noexcept {
  aborted_ = true;
  if (segment* const shared = known_) shared->give_up(rank_);
  for (auto const& link : links_)
    if (link) ::shutdown(link.get(), SHUT_RDWR);
}

EDL_INLINE void group::lost(int rank, char const* how) const {
  if (aborted_) throw broken("the collective was aborted");
  throw broken(fmt::format("member {} of {} {}", rank, size(), how), rank);
}

// Sends, and returns the bytes moved: those of the flow, and those that the link had accepted earlier.
EDL_INLINE std::size_t group::send(flow& f) {
  auto& link = links_[std::size_t(f.peer)];
  bool const waited = link.unsent();
  try {
    std::size_t const n = link.send(f.over() ? std::span<std::byte>() : f.next());
    f.advance(n);
    return n + (waited && !link.unsent() ? 1 : 0);
  } catch (error const&) {
    lost(f.peer, "has closed its link");
  }
}

EDL_INLINE bool group::sent(flow const& f) const { return f.over() && !links_[std::size_t(f.peer)].unsent(); }

EDL_INLINE std::size_t group::receive(flow& f) {
  auto const bytes = f.next();
  try {
    std::size_t const n =
        links_[std::size_t(f.peer)].receive(bytes.first(std::min(bytes.size(), detail::piece_bytes)));
    f.advance(n);
    return n;
  } catch (error const&) {
    lost(f.peer, "has closed its link");
  }
}

// Waits until member `to` accepts bytes or `from` sends some; −1: no such member.
EDL_INLINE void group::wait(int to, int from) {
  pollfd both[2];
  nfds_t count = 0;
  if (to >= 0) both[count++] = {links_[std::size_t(to)].get(), POLLOUT, 0};
  if (from >= 0) both[count++] = {links_[std::size_t(from)].get(), POLLIN, 0};
  invariant(count > 0, "a wait is for a member of the group");
  int const ready = ::poll(both, count, int(std::clamp<long>(options_.silence.count(), 1, 1000)));
  if (aborted_) throw broken("the collective was aborted");
  auto const now = clock::now();
  if (ready > 0)
    moved_ = now;
  else if (now - moved_ > options_.silence)
    lost(from >= 0 ? from : to, "gives no sign of life");
}

EDL_INLINE std::uint64_t group::mark() const { return detail::operation_mark | (operations_ & 0xffffffff); }

EDL_INLINE void group::check(std::uint64_t const (&head)[2], int from) const {
  if (head[0] == mark()) return;
  lost(from, "does something else, or speaks another protocol");
}

EDL_INLINE bool group::begin() {
  ++operations_;
  moved_ = clock::now();
  if (!set_up_) set_up();
  invariant(set_up_ && known_ == segment_.get(), "the aborting member knows the shared memory");
  if (!segment_) return false;
  if (int const gone = segment_->given_up(); gone >= 0) lost(gone, "is lost");
  return true;
}

EDL_INLINE void group::all_reduce(std::span<float> values) {
  if (size() == 1) return;
  if (begin())
    shared_sum(values, false);
  else if (values.size_bytes() <= options_.small)
    doubling(values);
  else
    ring<float>(values);
}

EDL_INLINE void group::all_reduce_bfloat16(std::span<float> values) {
  if (size() == 1) return;
  if (begin())
    shared_sum(values, true);
  else
    ring<std::uint16_t>(values);
}

EDL_INLINE void group::all_reduce_in_order(std::span<view<float> const> terms, std::size_t all,
                                           std::span<float> sum, bool bfloat16) {
  if (sum.empty()) return barrier();
  if (terms.size() != share_of(all, size(), rank_).count)
    throw error(fmt::format("{} of {} terms, from member {} of {}", terms.size(), all, rank_, size()));
  if (size() == 1)
    bfloat16 ? fold<std::uint16_t>(nullptr, terms, 0, sum) : fold<float>(nullptr, terms, 0, sum);
  else if (begin() && has_room(all))
    shared_sum_in_order(terms, all, sum, bfloat16);
  else
    bfloat16 ? pass_on<std::uint16_t>(terms, sum) : pass_on<float>(terms, sum);
}

EDL_INLINE void group::barrier() { all_reduce({}); }

// Sends one piece of memory to a member while receiving another.
EDL_INLINE void group::swap(int with, std::span<std::byte const> out, std::span<std::byte> in) {
  invariant(with != rank_ && with >= 0 && with < size(), "bytes are swapped with another member");
  std::uint64_t mine[2]{mark(), out.size()}, theirs[2]{};
  flow to(with), from(with);
  if (out.data()) {
    to.add(std::as_writable_bytes(std::span(mine)));
    to.add({const_cast<std::byte*>(out.data()), out.size()});
  }
  if (in.data()) {
    from.add(std::as_writable_bytes(std::span(theirs)));
    from.add(in);
  }
  bool checked = from.over();
  while (!sent(to) || !from.over()) {
    std::size_t moved = sent(to) ? 0 : send(to);
    if (!from.over()) moved += receive(from);
    if (!checked && from.done >= sizeof theirs) {
      if (theirs[1] != in.size()) lost(with, "sends another number of bytes");
      check(theirs, with);
      checked = true;
    }
    if (moved == 0) wait(sent(to) ? -1 : with, from.over() ? -1 : with);
  }
  invariant(checked || !in.data(), "the received bytes belong to this operation");
}

EDL_INLINE void group::doubling(std::span<float> values) {
  // Never empty, so that a barrier exchanges something, too.
  partner_.resize(values.size() + 1);
  auto const theirs = std::as_writable_bytes(std::span(partner_)).first(values.size_bytes());
  auto const nothing = theirs.first(0);
  auto const mine = values.empty() ? nothing : std::as_writable_bytes(values);
  auto const add = [&] {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += partner_[i];
  };
  int const half = doubling_size(size());
  invariant(half <= size() && size() < 2 * half, "a member beyond the power of two has a partner within it");
  if (rank_ >= half) {
    // Members beyond a power of two hand their numbers to a partner and receive the result. They also wait
    // for the partner to begin, because otherwise the partner might wait for them.
    swap(rank_ - half, mine, nothing);
    swap(rank_ - half, {}, mine);
    return;
  }
  bool const carries = rank_ < size() - half;
  if (carries) {
    // Send the header before waiting for anything, so that an idle member learns that an operation has begun.
    swap(rank_ + half, nothing, theirs);
    add();
  }
  for (int bit = 1; bit < half; bit *= 2) {
    swap(rank_ ^ bit, mine, theirs);
    add();
  }
  if (carries) swap(rank_ + half, mine, {});
}

// A schedule of segments in the order of the stream.
struct group::course {
  std::size_t out, in;  // how many segments a member sends, and how many it receives
  std::size_t adds;     // of those received, how many are added to its own numbers
  std::size_t ahead;    // sent before any is received: the k-th received is the (k + ahead)-th sent
};

// `outgoing(k)`, `incoming(k)`: the memory of a segment. `add(to, from, at)`: adds what has arrived for the
// elements of a segment from `at` on.
template <class Wire, class Outgoing, class Incoming, class Add>
void group::travel(std::size_t bytes, course c, Outgoing outgoing, Incoming incoming, Add add) {
  constexpr std::size_t piece = detail::piece_bytes / sizeof(Wire);
  struct position {
    std::size_t k = 0, at = 0;  // segment in the order of the stream, element in it
  } sending, receiving;
  std::size_t sendable = 0;  // elements that may be sent, but are not yet
  for (std::size_t k = 0; k < c.ahead; ++k) sendable += outgoing(k).size();

  std::size_t const n = links_.size(), me = std::size_t(rank_);
  invariant(n > 1 && c.ahead <= c.out && c.adds <= c.in, "a ring needs several members");
  std::uint64_t mine[2]{mark(), bytes}, theirs[2]{};
  flow out(int((me + 1) % n)), in(int((me + n - 1) % n));
  out.add(std::as_writable_bytes(std::span(mine)));
  in.add(std::as_writable_bytes(std::span(theirs)));
  bool checked = false;
  std::size_t taken = 0;  // elements received of the current run
  received_.resize(detail::piece_bytes);
  if (is_bfloat16<Wire>) to_send_.resize(piece);

  for (;;) {
    while (out.over() && sending.k < c.out && outgoing(sending.k).size() == sending.at)
      ++sending.k, sending.at = 0;
    while (in.over() && receiving.k < c.in && incoming(receiving.k).size() == receiving.at)
      ++receiving.k, receiving.at = 0;
    if (out.over() && sending.k < c.out && sendable > 0) {
      auto const run = outgoing(sending.k).subspan(sending.at);
      auto const now = run.first(std::min({run.size(), sendable, is_bfloat16<Wire> ? piece : run.size()}));
      out = flow(out.peer);
      if constexpr (is_bfloat16<Wire>) {
        write_out(now, to_send_.data());
        // The member that completes a sum rounds it to what the others receive, so that all have the same.
        if (sending.k == c.adds) read_in(to_send_.data(), now);
        out.add(std::as_writable_bytes(std::span(to_send_).first(now.size())));
      } else {
        out.add(std::as_writable_bytes(now));
      }
      sending.at += now.size();
      sendable -= now.size();
    }
    bool const adds = receiving.k < c.adds;
    if (in.over() && receiving.k < c.in) {
      auto const run = incoming(receiving.k).subspan(receiving.at);
      std::size_t const now = std::min(run.size(), piece);
      in = flow(in.peer);
      in.add(adds || is_bfloat16<Wire> ? std::span(received_).first(now * sizeof(Wire))
                                       : std::as_writable_bytes(run.first(now)));
      taken = 0;
    }
    if (sent(out) && in.over() && sending.k == c.out && receiving.k == c.in) {
      invariant(sendable == 0 && checked, "the received bytes are passed on, and belong to this operation");
      return;
    }

    std::size_t moved = sent(out) ? 0 : send(out);
    if (!in.over()) moved += receive(in);
    if (!checked) {
      if (in.over()) {
        if (theirs[1] != mine[1]) lost(in.peer, "sums another number of values");
        check(theirs, in.peer);
        checked = true;
      }
    } else if (std::size_t const whole = in.done / sizeof(Wire); whole > taken) {
      auto const to = incoming(receiving.k).subspan(receiving.at, whole - taken);
      auto const* from = reinterpret_cast<Wire const*>(received_.data()) + taken;
      if (adds)
        add(to, from, receiving.at);
      else if (is_bfloat16<Wire>)
        read_in(from, to);
      receiving.at += to.size();
      sendable += receiving.k + c.ahead < c.out ? to.size() : 0;
      taken = whole;
    }
    if (moved == 0) wait(sent(out) ? -1 : out.peer, in.over() ? -1 : in.peer);
  }
}

// The segments travel around the ring. Each member adds its numbers to what arrives and passes that on, until
// every segment is complete on one member; then the complete ones travel around. As a stream: the k-th
// segment that a member sends is the (k−1)-th that it receives, so it may send its first segment and then as
// much as has arrived.
template <class Wire>
void group::ring(std::span<float> values) {
  std::size_t const n = links_.size(), me = std::size_t(rank_);
  std::size_t const lines = (values.size() + detail::floats_per_line - 1) / detail::floats_per_line;
  auto const segment = [&](std::size_t i) {
    i %= n;
    std::size_t const first = std::min(values.size(), lines * i / n * detail::floats_per_line),
                      last = std::min(values.size(), lines * (i + 1) / n * detail::floats_per_line);
    return values.subspan(first, last - first);
  };
  travel<Wire>(
      values.size() * sizeof(Wire), {.out = 2 * (n - 1), .in = 2 * (n - 1), .adds = n - 1, .ahead = 1},
      [&](std::size_t k) { return segment(me + 2 * n - k); },
      [&](std::size_t k) { return segment(me + 2 * n - 1 - k); },
      [](std::span<float> to, Wire const* from, std::size_t) { add(from, to); });
}

// The first member sends its terms on; every other member adds its own to what arrives. The last member's sum
// is complete, and travels around behind the partial sums. A complete number arrives after the partial sum
// was sent, so both use the same memory.
template <class Wire>
void group::pass_on(std::span<view<float> const> terms, std::span<float> sum) {
  std::size_t const n = links_.size(), me = std::size_t(rank_);
  bool const first = me == 0, last = me == n - 1, before_last = me + 2 == n;
  if (first) fold<Wire>(nullptr, terms, 0, sum);
  auto const whole = [&](std::size_t) { return sum; };
  travel<Wire>(sum.size() * sizeof(Wire),
               {.out = last || before_last ? 1u : 2u,
                .in = first || last ? 1u : 2u,
                .adds = first ? 0u : 1u,
                .ahead = first ? 1u : 0u},
               whole, whole,
               [&](std::span<float> to, Wire const* from, std::size_t at) { fold(from, terms, at, to); });
}

}  // namespace edl::collective
