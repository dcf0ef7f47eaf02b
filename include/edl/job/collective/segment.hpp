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

/// Memory that all members of a group on one host have mapped. It has, for each member, room for numbers, a
/// count of its posts, and a bell (an eventfd) that wakes it. It has no name in the system, and lives as long
/// as any process has it mapped.
///
/// Thread safety: one thread; `give_up` and `given_up` from any.
class segment {
 public:
  /// Bytes of a member's numbers processed at once; it has room for two blocks.
  static constexpr std::size_t block_bytes = 512u << 10;
  static constexpr int most_members = 128;

  /// Creates the parts of a segment, to pass to the other members; empty if the system does not support it.
  static std::vector<net::descriptor> make(int members);

  /// Throws `edl::error` if `parts` are not from `make(members)`.
  segment(std::vector<net::descriptor> parts, int rank, int members);
  segment(segment const&) = delete;
  segment& operator=(segment const&) = delete;
  ~segment();

  /// A member's room for the blocks of even or odd rounds. Callers coordinate who writes where.
  std::byte* room(int member, std::uint64_t round) const;

  /// The member's count of posts. A reader also sees everything that the member wrote before it.
  std::uint64_t posted(int member) const { return place_of(member).posted; }

  /// Sets this member's count, and wakes waiting members.
  void post(std::uint64_t count);

  /// Describes an operation that begins with a round, for comparison: publishes it; reads a member's.
  using purpose = std::array<std::uint64_t, 2>;
  void say(std::uint64_t round, purpose const& what);
  purpose said(int member, std::uint64_t round) const;

  /// Whether all members have posted this much.
  bool all_posted(std::uint64_t count) const;

  /// Waiting for any other member, or for all, to post `count`: after `rest`, unless that is so already, poll
  /// `bell` for reading, then `rise`.
  enum class whom : std::uint64_t { any = 1, all };
  void rest(whom others, std::uint64_t count);
  int bell() const { return parts_[std::size_t(rank_) + 1].get(); }
  void rise();

  /// Informs all members that one of them is lost. The first call counts. `given_up`: −1: none.
  void give_up(int member) noexcept;
  int given_up() const;

 private:
  // The line of a member, which only it writes, except `waits`, which the waking member clears.
  struct alignas(128) place {
    std::atomic<std::uint64_t> posted;
    std::atomic<std::uint64_t> purposes[2][2];
    alignas(
        128) std::atomic<std::uint64_t> waits;  // 0: it does not; else `whom` (upper 16 bits) and for what
    std::atomic<std::uint64_t> lost;            // used in the first place only: rank + 1
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  static std::size_t total(int members);
  place& place_of(int member) const;
  void ring(int member) const noexcept;

  std::vector<net::descriptor> parts_;  // the memory, then the bells
  int rank_, members_;
  std::byte* base_ = nullptr;
};

/// Passes descriptors over a Unix socket with one byte. False: the socket is full. Throws `edl::error` on
/// failure.
bool send_descriptors(int socket, std::span<net::descriptor const> what);

/// Receives passed descriptors. False: none has arrived yet. Throws `edl::error` on failure.
bool receive_descriptors(int socket, std::vector<net::descriptor>& into);

}  // namespace edl::collective

#ifdef EDL_HEADER_ONLY
#include "edl/job/collective/segment.ipp"
#endif
