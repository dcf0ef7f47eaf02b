// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstring>

#include "edl/compute/device/buffer.hpp"
#include "edl/core/inline.hpp"

namespace edl::detail {

constexpr std::size_t own_pages_from = 1 << 20, large_page = 2 << 20, cache_line = 64,
                      some_pages = 64 << 10;  // whole ones on any machine: ARM has pages of up to 64 KiB

EDL_INLINE void* take_memory(std::size_t bytes) {
  if (bytes < own_pages_from) {
    void* const memory = ::operator new(bytes, std::align_val_t{cache_line});
    return std::memset(memory, 0, bytes);
  }
  // Huge pages start at multiples of their size: the ends of the mapping outside of them are unmapped at
  // once.
  std::size_t const whole = (bytes + some_pages - 1) / some_pages * some_pages, most = whole + large_page;
  void* const got = ::mmap(nullptr, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) throw std::bad_alloc();
  auto const begin = reinterpret_cast<std::uintptr_t>(got);
  std::size_t const before = (large_page - begin % large_page) % large_page, after = most - before - whole;
  if (before) ::munmap(got, before);
  auto* const memory = static_cast<std::byte*>(got) + before;
  if (after) ::munmap(memory + whole, after);
  ::madvise(memory, whole, MADV_HUGEPAGE);
  return memory;
}

EDL_INLINE void give_memory(void* memory, std::size_t bytes) noexcept {
  if (bytes < own_pages_from)
    ::operator delete(memory, std::align_val_t{cache_line});
  else
    ::munmap(memory, (bytes + some_pages - 1) / some_pages * some_pages);
}

}  // namespace edl::detail
