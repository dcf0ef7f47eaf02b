// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "edl/base/net/byte_stream.hpp"

namespace edl::collective {

/// Memory that all members of a group on one host have mapped. Each of them has room for numbers, a count of
/// what it has posted there, and a bell (an eventfd) that wakes it. It has no name anywhere, and lives as
/// long as somebody has it mapped, whoever else is killed.
///
/// Thread safety: one thread; `give_up` and `given_up` from any.
class segment {
 public:
  /// Bytes of a member's numbers that are worked on at once; it has room for two such blocks.
  static constexpr std::size_t block_bytes = 512u << 10;
  static constexpr int most_members = 128;

  /// What a segment is made of, to be passed to the other members; empty where the system does not give it.
  static std::vector<net::descriptor> make(int members);

  /// Throws `edl::error` when `parts` are not what `make(members)` gives.
  segment(std::vector<net::descriptor> parts, int rank, int members);
  segment(segment const&) = delete;
  segment& operator=(segment const&) = delete;
  ~segment();

  /// Member's room for the blocks of even or odd rounds. Whose turn it is to write where is the callers'
  /// business.
  std::byte* room(int member, std::uint64_t round) const;

  /// How much the member has posted. What it wrote before is seen by who reads this.
  std::uint64_t posted(int member) const { return place_of(member).posted; }

  /// Sets this member's count, and wakes those who wait for it.
  void post(std::uint64_t count);

  /// What an operation that begins with some round is, for the others to compare: says it; reads a member's.
  using purpose = std::array<std::uint64_t, 2>;
  void say(std::uint64_t round, purpose const& what);
  purpose said(int member, std::uint64_t round) const;

  /// Have all members posted as much?
  bool all_posted(std::uint64_t count) const;

  /// Waiting for any other member, or for all, to post `count`: after `rest`, unless that is so already, poll
  /// `bell` for reading, then `rise`.
  enum class whom : std::uint64_t { any = 1, all };
  void rest(whom others, std::uint64_t count);
  int bell() const { return parts_[std::size_t(rank_) + 1].get(); }
  void rise();

  /// Tells all members that one of them is lost. The first that is named stays. `given_up`: −1: none.
  void give_up(int member) noexcept;
  int given_up() const;

 private:
  // The line of a member, which it alone writes, but for `waits`: who wakes it clears that.
  struct alignas(128) place {
    std::atomic<std::uint64_t> posted;
    std::atomic<std::uint64_t> purposes[2][2];
    alignas(
        128) std::atomic<std::uint64_t> waits;  // 0: it does not; else `whom` (upper 16 bits) and for what
    std::atomic<std::uint64_t> lost;            // used of the first: rank + 1
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  static std::size_t total(int members);
  place& place_of(int member) const;
  void ring(int member) const noexcept;

  std::vector<net::descriptor> parts_;  // the memory, then the bells
  int rank_, members_;
  std::byte* base_ = nullptr;
};

/// Passes descriptors over a Unix socket with one byte. False: the socket takes nothing now. Throws
/// `edl::error` when it never will.
bool send_descriptors(int socket, std::span<net::descriptor const> what);

/// Takes what was passed. False: nothing has come yet. Throws `edl::error` when nothing will.
bool receive_descriptors(int socket, std::vector<net::descriptor>& into);

}  // namespace edl::collective

#ifdef EDL_HEADER_ONLY
#include "edl/job/collective/segment.ipp"
#endif
