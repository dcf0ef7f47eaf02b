// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/collective/segment.hpp"

namespace edl::collective {
namespace detail {

inline constexpr int count_bits = 48;
inline constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;  // members rely on its size

}  // namespace detail

EDL_INLINE std::size_t segment::total(int members) {
  return std::size_t(members) * (2 * block_bytes + sizeof(place));
}

EDL_INLINE segment::place& segment::place_of(int member) const {
  return reinterpret_cast<place*>(base_ + std::size_t(members_) * 2 * block_bytes)[member];
}

EDL_INLINE std::byte* segment::room(int member, std::uint64_t round) const {
  return base_ + (std::size_t(member) * 2 + round % 2) * block_bytes;
}

EDL_INLINE std::vector<net::descriptor> segment::make(int members) {
  std::vector<net::descriptor> parts;
  parts.emplace_back(::memfd_create("edl", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  int const memory = parts[0].get();
  // Allocate all memory now: a member must not run out of it in the middle of a sum.
  if (memory < 0 || ::posix_fallocate(memory, 0, off_t(total(members))) != 0 ||
      ::fcntl(memory, F_ADD_SEALS, detail::seals) != 0)
    return {};
  for (int i = 0; i < members; ++i) {
    parts.emplace_back(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!parts.back()) return {};
  }
  return parts;
}

EDL_INLINE segment::segment(std::vector<net::descriptor> parts, int rank, int members)
    : parts_(std::move(parts)), rank_(rank), members_(members) {
  struct ::stat is{};
  if (parts_.size() != std::size_t(members) + 1 || ::fstat(parts_[0].get(), &is) != 0 ||
      std::size_t(is.st_size) != total(members) ||
      (::fcntl(parts_[0].get(), F_GET_SEALS) & detail::seals) != detail::seals)
    throw error("the memory that was passed does not belong to this group");
  void* const at =
      ::mmap(nullptr, total(members), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, parts_[0].get(), 0);
  if (at == MAP_FAILED) throw error(std::string("cannot map shared memory: ") + std::strerror(errno));
  base_ = static_cast<std::byte*>(at);
  parts_[0] = net::descriptor();  // the memory stays mapped without the descriptor
}

EDL_INLINE segment::~segment() { ::munmap(base_, total(members_)); }

EDL_INLINE void segment::ring(int member) const noexcept {
  std::uint64_t const once = 1;
  // This can only fail if the counter is full, which wakes the reader as well.
  [[maybe_unused]] auto const n = ::write(parts_[std::size_t(member) + 1].get(), &once, sizeof once);
}

EDL_INLINE bool segment::all_posted(std::uint64_t count) const {
  for (int i = 0; i < members_; ++i)
    if (posted(i) < count) return false;
  return true;
}

// Only the last member to post wakes a waiter for all members.
EDL_INLINE void segment::post(std::uint64_t count) {
  place_of(rank_).posted = count;
  for (int i = 0; i < members_; ++i) {
    if (i == rank_) continue;
    auto& waits = place_of(i).waits;
    std::uint64_t seen = waits;
    if (seen == 0) continue;
    std::uint64_t const wanted = seen & ((std::uint64_t(1) << detail::count_bits) - 1);
    bool const arrived = whom(seen >> detail::count_bits) == whom::all ? all_posted(wanted) : count >= wanted;
    if (arrived && waits.compare_exchange_strong(seen, 0)) ring(i);
  }
}

EDL_INLINE void segment::say(std::uint64_t round, purpose const& what) {
  for (std::size_t i = 0; i < what.size(); ++i)
    place_of(rank_).purposes[round % 2][i].store(what[i], std::memory_order_relaxed);
}

EDL_INLINE segment::purpose segment::said(int member, std::uint64_t round) const {
  auto const& p = place_of(member).purposes[round % 2];
  return {p[0].load(std::memory_order_relaxed), p[1].load(std::memory_order_relaxed)};
}

EDL_INLINE void segment::rest(whom others, std::uint64_t count) {
  place_of(rank_).waits = std::uint64_t(others) << detail::count_bits | count;
}

EDL_INLINE void segment::rise() {
  place_of(rank_).waits.store(0, std::memory_order_relaxed);
  std::uint64_t rung = 0;
  [[maybe_unused]] auto const n = ::read(bell(), &rung, sizeof rung);
}

EDL_INLINE void segment::give_up(int member) noexcept {
  invariant(member >= 0 && member < members_, "only a member is given up");
  std::uint64_t nobody = 0;
  if (!place_of(0).lost.compare_exchange_strong(nobody, std::uint64_t(member) + 1)) return;
  for (int i = 0; i < members_; ++i)
    if (i != rank_) ring(i);
}

EDL_INLINE int segment::given_up() const {
  std::uint64_t const gone = place_of(0).lost;
  return gone <= std::uint64_t(members_) ? int(gone) - 1 : 0;
}

EDL_INLINE bool send_descriptors(int socket, std::span<net::descriptor const> what) {
  char byte = 0;
  ::iovec text{&byte, 1};
  std::vector<int> raw;
  for (auto const& d : what) raw.push_back(d.get());
  std::vector<std::size_t> control((CMSG_SPACE(raw.size() * sizeof(int)) + sizeof(std::size_t) - 1) /
                                   sizeof(std::size_t));
  ::msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  if (!raw.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(raw.size() * sizeof(int));
    ::cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(raw.size() * sizeof(int));
    std::memcpy(CMSG_DATA(head), raw.data(), raw.size() * sizeof(int));
  }
  if (::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1) return true;
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return false;
  throw error(std::string("cannot pass descriptors: ") + std::strerror(errno));
}

EDL_INLINE bool receive_descriptors(int socket, std::vector<net::descriptor>& into) {
  char byte = 0;
  ::iovec text{&byte, 1};
  std::vector<std::size_t> control(
      CMSG_SPACE((std::size_t(segment::most_members) + 1) * sizeof(int)) / sizeof(std::size_t) + 1);
  ::msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size() * sizeof(std::size_t);
  ssize_t const n = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
  if (n <= 0) throw error(n == 0 ? "the link is closed" : std::strerror(errno));
  for (::cmsghdr* head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    std::size_t const count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int one = -1;
      std::memcpy(&one, CMSG_DATA(head) + i * sizeof one, sizeof one);
      into.emplace_back(one);
    }
  }
  return true;
}

}  // namespace edl::collective
