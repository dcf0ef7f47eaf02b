// SPDX-License-Identifier: Apache-2.0
// Groups whose members share memory: agreeing on it, waiting in it, summing through it.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "edl/core/clock.hpp"
#include "edl/core/cores.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/collective/group.hpp"
#include "edl/job/collective/numbers.hpp"
#include "edl/job/collective/topology.hpp"

namespace edl::collective {
namespace detail {

inline constexpr std::size_t block_floats = segment::block_bytes / sizeof(float);
inline constexpr std::size_t line_floats = 16;           // slices end at the borders of cache lines
inline constexpr std::size_t strip_floats = 1024;        // summed at once, within a core's first-level cache
inline constexpr std::size_t at_once_bytes = 32u << 10;  // below: each reads all numbers
// How long to spin: waking a process takes longer than most waits. Not if processes share cores. There
// yielding does not help either: it gives the core away for milliseconds.
inline constexpr std::chrono::microseconds spin{20};
inline constexpr int longest_pause = 31;              // most waits without spinning
inline constexpr std::chrono::milliseconds nap{100};  // longest sleep between two checks of everything

inline bool is_local(int socket) {
  int family = 0;
  socklen_t size = sizeof family;
  return ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family == AF_UNIX;
}

// How many numbers of one term fit into a member's room, if the member with the most terms stores all there.
inline std::size_t room_of_term(std::size_t all, int members) {
  return block_floats / share_of(all, members, 0).count / line_floats * line_floats;
}

// Divides numbers into blocks, and blocks among the members. All blocks are divided alike, also the last one,
// so that writes never touch what others may still read.
struct blocks {
  struct range {
    std::size_t first, size;
    std::size_t last() const { return first + size; }
  };
  std::size_t size, members, lines = members * line_floats;
  std::size_t most;  // numbers in a block
  std::size_t count = (size + most - 1) / most;
  std::size_t share = (size + count * lines - 1) / (count * lines) * line_floats;

  // Block `t`, as a range of the numbers.
  range block(std::size_t t) const {
    std::size_t const first = std::min(size, t * share * members);
    return {first, std::min(share * members, size - first)};
  }
  // A member's slice, as a range of the block.
  range slice(std::size_t t, int member) const {
    std::size_t const all = block(t).size, first = std::min(all, std::size_t(member) * share);
    return {first, std::min(share, all - first)};
  }
};

}  // namespace detail

// ---- Agreeing ----

EDL_INLINE bool group::agreed(bool mine) {
  float votes = mine ? 1.0f : 0.0f;
  doubling({&votes, 1});
  return votes == float(size());
}

// Runs as part of the first operation, so that members need not wait for each other when they form a group.
EDL_INLINE void group::set_up() {
  // Partners meet in increasing order, so no cycle of waits arises, and all learn that an operation has
  // begun.
  std::byte none{};
  for (int const other : partners(rank_, size())) swap(other, {&none, 0}, {&none, 0});
  bool local = options_.shared_memory && size() <= segment::most_members;
  for (auto const& link : links_) local = local && (!link || detail::is_local(link.get()));
  if (agreed(local)) share();
  set_up_ = true;
}

// The first member creates the segment. It is passed on in the pattern of recursive doubling.
EDL_INLINE void group::share() {
  std::vector<net::descriptor> parts;
  if (rank_ == 0) parts = segment::make(size());
  auto const give = [&](int to) {
    while (!send_descriptors(links_[std::size_t(to)].get(), parts)) wait(to, -1);
  };
  auto const take = [&](int from) {
    while (!receive_descriptors(links_[std::size_t(from)].get(), parts)) wait(-1, from);
  };
  std::unique_ptr<segment> mine;
  int other = 0;
  try {
    int const half = doubling_size(size());
    if (rank_ >= half) take(other = rank_ - half);
    for (int bit = 1; rank_ < half && bit < half; bit *= 2)
      if (rank_ < bit)
        give(other = rank_ + bit);
      else if (rank_ < 2 * bit)
        take(other = rank_ - bit);
    if (rank_ < size() - half) give(other = rank_ + half);
  } catch (broken const&) {
    throw;
  } catch (error const&) {
    lost(other, "has closed its link");
  }
  try {
    mine = std::make_unique<segment>(std::move(parts), rank_, size());
  } catch (error const&) {
    // Shared memory is not available: use sockets.
  }
  if (!agreed(bool(mine))) return;
  invariant(!segment_, "memory is shared once");
  segment_ = std::move(mine);
  known_ = segment_.get();  // from here on `abort` uses it to notify the others
  spins_ = size() <= granted_cores();
}

// ---- Waiting ----

EDL_INLINE void group::compare(int other) const {
  auto const theirs = segment_->said(other, round_);
  if (theirs == purpose_) return;
  if (theirs[1] != purpose_[1]) lost(other, "sums another number of values");
  check({theirs[0], theirs[1]}, other);
}

EDL_INLINE void group::await_all(std::uint64_t count) {
  invariant(count <= last_post_, "no member waits for more than an operation posts");
  if (aborted_) throw broken("the collective was aborted");
  if (segment_->all_posted(count)) return;
  auto const begin = clock::now();
  if (spins_ && ++waited_ > pause_) {
    while (clock::now() - begin < detail::spin)
      if (segment_->all_posted(count)) {
        pause_ = waited_ = 0;
        return;
      }
    // Spinning was in vain: the others' core may be busy with another process. Spin less the more often that
    // happens, except within a large sum, whose many waits would each risk losing this core by sleeping.
    pause_ = last_post_ - posts_ > 1 ? 0 : std::min(2 * pause_ + 1, detail::longest_pause);
    waited_ = 0;
  }
  for (;;) {
    sleep(count);
    if (segment_->all_posted(count)) return;
    if (clock::now() - begin <= options_.silence) continue;
    // The others may themselves wait for the member that is furthest behind.
    int last = rank_;
    for (int i = 0; i < size(); ++i)
      if (segment_->posted(i) < segment_->posted(last)) last = i;
    give_up(last, "gives no sign of life");
  }
}

// Waits until every member may have posted this many times, or one is lost.
EDL_INLINE void group::sleep(std::uint64_t count) {
  std::vector<pollfd> all{{segment_->bell(), POLLIN, 0}};
  std::vector<int> whose{rank_};
  for (int i = 0; i < size(); ++i)
    if (links_[std::size_t(i)] && segment_->posted(i) < last_post_) {
      // Members that have done their part may leave.
      all.push_back({links_[std::size_t(i)].get(), POLLIN, 0});
      whose.push_back(i);
    }
  segment_->rest(segment::whom::all, count);
  auto const timeout = std::clamp(options_.silence, std::chrono::milliseconds(1), detail::nap);
  if (!segment_->all_posted(count) && !aborted_ && segment_->given_up() < 0)
    ::poll(all.data(), nfds_t(all.size()), int(timeout.count()));
  segment_->rise();
  if (aborted_) throw broken("the collective was aborted");
  if (segment_->all_posted(count)) return;
  // A member that detects a loss records it before it closes its own links, so that all name the same one.
  if (int const gone = segment_->given_up(); gone >= 0) lost(gone, "is lost");
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].revents == 0 || segment_->posted(whose[i]) >= last_post_) continue;
    char byte = 0;
    ssize_t const n = ::recv(all[i].fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) continue;
    give_up(whose[i], n > 0 ? "does something else, or speaks another protocol" : "has closed its link");
  }
}

EDL_INLINE void group::give_up(int other, char const* why) const {
  segment_->give_up(other);
  int const first = segment_->given_up();
  lost(first, first == other ? why : "is lost");
}

EDL_INLINE bool group::begun(std::chrono::milliseconds timeout) {
  auto const until = clock::now() + timeout;
  std::vector<pollfd> all;
  for (auto const& link : links_)
    if (link) all.push_back({link.get(), POLLIN, 0});
  if (segment_) all.push_back({segment_->bell(), POLLIN, 0});
  for (;;) {
    auto const arrived = [&] {
      for (int i = 0; segment_ && i < size(); ++i)
        if (segment_->posted(i) > posts_) return true;
      if (std::ranges::any_of(links_, [](auto const& link) { return link.buffered(); })) return true;
      return segment_ && segment_->given_up() >= 0;
    };
    if (segment_) segment_->rest(segment::whom::any, posts_ + 1);
    auto const left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
    bool const already = arrived();
    int const ready = already ? 0 : ::poll(all.data(), nfds_t(all.size()), int(std::max(left.count(), 0L)));
    if (segment_) segment_->rise();
    if (aborted_) throw broken("the collective was aborted");
    if (already || arrived()) return true;
    for (std::size_t i = 0; i + (segment_ ? 1 : 0) < all.size(); ++i)
      if (ready > 0 && all[i].revents) return true;
    if (clock::now() >= until) return false;
  }
}

EDL_INLINE void group::watch() {
  if (aborted_) throw broken("the collective was aborted");
  if (segment_ && segment_->given_up() >= 0) give_up(segment_->given_up(), "has left");
  for (int i = 0; i < size(); ++i) {
    if (!links_[std::size_t(i)]) continue;
    pollfd link{links_[std::size_t(i)].get(), POLLRDHUP, 0};
    if (::poll(&link, 1, 0) > 0 && (link.revents & (POLLRDHUP | POLLHUP | POLLERR)))
      lost(i, "has closed its link");
  }
}

// ---- Summing ----

// Each member adds all members' numbers, in the same order.
template <class Wire>
void group::sum_at_once(std::span<float> values) {
  invariant(values.size() <= detail::block_floats, "a sum in one round fits a member's part of the segment");
  auto const room = [&](int member) { return reinterpret_cast<Wire*>(segment_->room(member, round_)); };
  write_out(view<float>(values), room(rank_));
  last_post_ = ++posts_;
  segment_->post(posts_);
  await_all(posts_);
  for (int i = 0; i < size(); ++i) compare(i);
  for (std::size_t at = 0; at < values.size(); at += detail::strip_floats) {
    auto const strip = values.subspan(at, std::min(detail::strip_floats, values.size() - at));
    read_in(room(0) + at, strip);
    for (int i = 1; i < size(); ++i) add(room(i) + at, strip);
    if constexpr (is_bfloat16<Wire>)
      for (float& x : strip) x = travelled<Wire>(x);
  }
  ++round_;
}

// Works block by block. A member writes its numbers into its room and posts (a), adds the others' numbers to
// its slice, leaves the sums in its room and posts (b), and reads the others' sums. It writes the next block
// before that, into the other half of the room, so that nobody waits for a member that is slightly late. When
// a member writes to a half again, all have posted a step that follows their reading it.
template <class Write, class Sum, class Read>
void group::in_blocks(std::size_t blocks, Write write, Sum sum, Read read) {
  auto const post = [&](auto const& work, std::size_t t) {
    work(t);
    segment_->post(++posts_);
  };
  std::uint64_t const before = posts_;
  invariant(before >= last_post_, "an operation begins when the one before has posted all");
  last_post_ = before + 2 * blocks;
  post(write, 0);
  await_all(before + 1);
  for (int i = 0; i < size(); ++i) compare(i);
  for (std::size_t t = 0; t < blocks; ++t) {
    if (t + 1 < blocks) post(write, t + 1);
    post(sum, t);
    await_all(posts_);
    read(t);
  }
  invariant(blocks == 0 || posts_ == last_post_, "a member posts as often as it has announced");
  round_ += blocks;
}

template <class Wire>
void group::sum_in_blocks(std::span<float> values) {
  std::size_t const n = links_.size();
  detail::blocks const parts{
      .size = values.size(), .members = n, .most = detail::block_floats - n * detail::line_floats};
  invariant(parts.share * n <= detail::block_floats, "a block fits a member's part of the segment");
  auto const room = [&](int member, std::size_t t) {
    return reinterpret_cast<Wire*>(segment_->room(member, round_ + t));
  };
  auto const block = [&](std::size_t t) { return values.subspan(parts.block(t).first, parts.block(t).size); };
  auto const write = [&](std::size_t t) {
    auto const from = block(t);
    auto const own = parts.slice(t, rank_);
    write_out(view<float>(from.first(own.first)), room(rank_, t));
    write_out(view<float>(from.subspan(own.last())), room(rank_, t) + own.last());
  };
  auto const sum = [&](std::size_t t) {
    auto const own = parts.slice(t, rank_);
    for (std::size_t at = own.first; at < own.last(); at += detail::strip_floats) {
      auto const strip = block(t).subspan(at, std::min(detail::strip_floats, own.last() - at));
      for (std::size_t i = 1; i < n; ++i) add(room(int((std::size_t(rank_) + i) % n), t) + at, strip);
      write_out(view<float>(strip), room(rank_, t) + at);
      if constexpr (is_bfloat16<Wire>) read_in(room(rank_, t) + at, strip);
    }
  };
  auto const read = [&](std::size_t t) {
    for (std::size_t i = 1; i < n; ++i) {
      int const other = int((std::size_t(rank_) + i) % n);
      auto const theirs = parts.slice(t, other);
      read_in(room(other, t) + theirs.first, block(t).subspan(theirs.first, theirs.size));
    }
  };
  in_blocks(parts.count, write, sum, read);
}

// As above, but a room holds the block of each of a member's terms, one after the other. A slice is added up
// from the first member's first term to the last member's last.
template <class Wire>
void group::sum_in_order(std::span<view<float> const> terms, std::size_t all, std::span<float> values) {
  std::size_t const n = links_.size(), each = detail::room_of_term(all, size());
  detail::blocks const parts{.size = values.size(), .members = n, .most = each - n * detail::line_floats};
  invariant(parts.share * n <= each, "a block of a term fits its part of a member's part of the segment");
  invariant(terms.size() == share_of(all, size(), rank_).count, "a member has its share of the terms");
  auto const room = [&](int member, std::size_t t, std::size_t term) {
    return reinterpret_cast<Wire*>(segment_->room(member, round_ + t)) + term * each;
  };
  auto const term = [&](std::size_t t, std::size_t k) {
    return terms[k].subspan(parts.block(t).first, parts.block(t).size);
  };
  auto const write = [&](std::size_t t) {
    auto const own = parts.slice(t, rank_);
    for (std::size_t k = 0; k < terms.size(); ++k) {
      if (k > 0) write_out(term(t, k).subspan(own.first, own.size), room(rank_, t, k) + own.first);
      write_out(term(t, k).first(own.first), room(rank_, t, k));
      write_out(term(t, k).subspan(own.last()), room(rank_, t, k) + own.last());
    }
  };
  auto const sum = [&](std::size_t t) {
    auto const own = parts.slice(t, rank_);
    // The place of the sums. It is free, because the others have read those of two blocks before.
    if (!terms.empty()) write_out(term(t, 0).subspan(own.first, own.size), room(rank_, t, 0) + own.first);
    for (std::size_t at = own.first; at < own.last(); at += detail::strip_floats) {
      std::array<float, detail::strip_floats> numbers;
      auto const strip = std::span(numbers).first(std::min(detail::strip_floats, own.last() - at));
      for (int i = 0; i < size(); ++i)
        for (std::size_t k = 0; k < share_of(all, size(), i).count; ++k) {
          auto const* const from = room(i, t, k) + at;
          if (i == 0 && k == 0)
            read_in(from, strip);
          else
            for (std::size_t j = 0; j < strip.size(); ++j)
              strip[j] = travelled<Wire>(strip[j] + collective::read(from[j]));
        }
      std::ranges::copy(strip, values.begin() + std::ptrdiff_t(parts.block(t).first + at));
      write_out(view<float>(strip), room(rank_, t, 0) + at);
    }
  };
  auto const read = [&](std::size_t t) {
    for (int i = 0; i < size(); ++i)
      if (auto const theirs = parts.slice(t, i); i != rank_)
        read_in(room(i, t, 0) + theirs.first,
                values.subspan(parts.block(t).first + theirs.first, theirs.size));
  };
  in_blocks(parts.count, write, sum, read);
}

EDL_INLINE bool group::has_room(std::size_t all) const {
  return detail::room_of_term(all, size()) >= 2 * links_.size() * detail::line_floats;
}

EDL_INLINE void group::shared_sum_in_order(std::span<view<float> const> terms, std::size_t all,
                                           std::span<float> sum, bool bfloat16) {
  purpose_ = {mark(), sum.size() * (bfloat16 ? sizeof(std::uint16_t) : sizeof(float))};
  segment_->say(round_, purpose_);
  bfloat16 ? sum_in_order<std::uint16_t>(terms, all, sum) : sum_in_order<float>(terms, all, sum);
}

EDL_INLINE void group::shared_sum(std::span<float> values, bool bfloat16) {
  purpose_ = {mark(), values.size() * (bfloat16 ? sizeof(std::uint16_t) : sizeof(float))};
  segment_->say(round_, purpose_);
  bool const small = values.size_bytes() <= detail::at_once_bytes;
  if (bfloat16)
    small ? sum_at_once<std::uint16_t>(values) : sum_in_blocks<std::uint16_t>(values);
  else
    small ? sum_at_once<float>(values) : sum_in_blocks<float>(values);
}

}  // namespace edl::collective
