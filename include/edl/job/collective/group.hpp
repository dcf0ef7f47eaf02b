// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "edl/base/net/stream.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/span.hpp"
#include "edl/job/collective/broken.hpp"
#include "edl/job/collective/segment.hpp"

namespace edl::collective {

struct group_options {
  /// A member that must send but sends nothing is considered lost after this time.
  std::chrono::milliseconds silence{30'000};
  std::size_t small = 16u << 10;  ///< bytes up to which all_reduce minimises rounds instead of bytes
  bool shared_memory = true;      ///< if Unix sockets connect all members
};

/// Processes that compute together: member `rank` of `size`, with links to its `partners`. Every member must
/// call the same operations with the same sizes in the same order; anything else received over a link ends
/// the group. Operations run in the calling thread. They throw `broken` if a member is lost or silent, or
/// `abort` is called, at any byte. The group is unusable afterwards.
///
/// If Unix sockets connect all members, they share memory (1 MiB for each) from their first operation on.
/// Sums then use it, and the sockets only detect lost members.
///
/// Thread safety: one thread at a time; `abort` from any.
class group {
 public:
  /// `links[r]`: a socket to member r, for each of `partners(rank, links.size())`.
  group(int rank, std::vector<net::byte_stream> links, group_options o = {});
  group(group const&) = delete;
  group& operator=(group const&) = delete;

  int rank() const { return rank_; }
  int size() const { return int(links_.size()); }

  /// The sum over all members, bitwise equal on each. Over sockets, large spans use a ring, in pieces: every
  /// member sends 2 (size − 1) / size of the span's bytes. Small ones use recursive doubling in ⌈log₂ size⌉
  /// rounds. In shared memory, each member sums its slice of a block of numbers, or all of a small span.
  void all_reduce(std::span<float> values);

  /// The same, with each number sent as bfloat16; partial sums are rounded when they are sent.
  void all_reduce_bfloat16(std::span<float> values);

  /// The sum of `all` ≥ 1 terms in a row, of which `share_of(all, size(), rank())` are this member's, each as
  /// long as `sum`. They are added one after the other: bitwise equal on each member, for any distribution of
  /// the terms. `sum` may be the first of this member's terms. `bfloat16`: every number is sent as bfloat16,
  /// and every term and partial sum is rounded to one, whether it is sent or not. Over sockets, partial sums
  /// pass from member to member, followed by the complete ones (every member sends 2 times the span's bytes).
  /// In shared memory it works like `all_reduce`.
  void all_reduce_in_order(std::span<view<float> const> terms, std::size_t all, std::span<float> sum,
                           bool bfloat16 = false);

  /// Returns when every member has called it.
  void barrier();

  /// Waits until another member has begun an operation that this one has not, or for `timeout`. False: none
  /// has. Throws `broken` like operations.
  bool begun(std::chrono::milliseconds timeout);

  /// Throws `broken` if a member is already known to be lost, or `abort` was called. Does not wait.
  void watch();

  /// Ends the current and all further operations, here and soon on every other member.
  void abort() noexcept;

 private:
  struct flow;    // bytes to or from a member, through pieces of memory one after the other
  struct course;  // the schedule of a ring

  bool begin();  // of an operation; true: in shared memory
  [[noreturn]] void lost(int rank, char const* how) const;
  void check(std::uint64_t const (&head)[2], int from) const;
  std::uint64_t mark() const;

  // Over sockets.
  template <class Wire>
  void ring(std::span<float> values);
  template <class Wire>
  void pass_on(std::span<view<float> const> terms, std::span<float> sum);
  template <class Wire, class Outgoing, class Incoming, class Add>
  void travel(std::size_t bytes, course c, Outgoing outgoing, Incoming incoming, Add add);
  void doubling(std::span<float> values);
  void swap(int with, std::span<std::byte const> out, std::span<std::byte> in);
  std::size_t send(flow& f);
  bool sent(flow const& f) const;
  std::size_t receive(flow& f);
  void wait(int to, int from);

  // In shared memory.
  void set_up();
  void share();
  bool agreed(bool mine);
  void shared_sum(std::span<float> values, bool bfloat16);
  template <class Wire>
  void sum_at_once(std::span<float> values);
  template <class Wire>
  void sum_in_blocks(std::span<float> values);
  template <class Wire>
  void sum_in_order(std::span<view<float> const> terms, std::size_t all, std::span<float> sum);
  template <class Write, class Sum, class Read>
  void in_blocks(std::size_t blocks, Write write, Sum sum, Read read);
  bool has_room(std::size_t all) const;
  void shared_sum_in_order(std::span<view<float> const> terms, std::size_t all, std::span<float> sum,
                           bool bfloat16);
  void await_all(std::uint64_t count);
  void sleep(std::uint64_t count);
  void compare(int other) const;
  [[noreturn]] void give_up(int other, char const* why) const;

  int rank_;
  std::vector<net::byte_stream> links_;
  group_options options_;
  std::uint64_t operations_ = 0;
  std::vector<std::byte> received_;     // before addition
  std::vector<std::uint16_t> to_send_;  // bfloat16
  std::vector<float> partner_;          // received from a partner
  time_point moved_;                    // when bytes moved last
  std::atomic<bool> aborted_{false};

  bool set_up_ = false, spins_ = false;
  int waited_ = 0, pause_ = 0;  // waits since the last that spun in vain, and how many of them do not spin
  std::unique_ptr<segment> segment_;
  std::atomic<segment*> known_{nullptr};  // the same, for the thread that aborts
  std::uint64_t round_ = 0, posts_ = 0;   // of blocks; of this member
  std::uint64_t last_post_ = 0;           // after which this member has no further part in the operation
  segment::purpose purpose_{};
};

}  // namespace edl::collective

#ifdef EDL_HEADER_ONLY
#include "edl/job/collective/group.ipp"
#include "edl/job/collective/group_shared.ipp"
#endif
