// SPDX-License-Identifier: Apache-2.0
// Memory that files are mapped to, and that processes of a host share.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>

#include "world/kernel/disk.hpp"
#include "world/libc/result.hpp"

using namespace world;

namespace {

/// A memfd. All that map it see one piece of this process' memory, which stays.
struct shared_memory final : object {
  char const* kind() const override { return "memfd"; }
  void* base = nullptr;
  std::size_t size = 0;
  int seals = 0;
};

std::vector<std::pair<char*, std::size_t>>& pieces() {
  static auto& all = *new std::vector<std::pair<char*, std::size_t>>;
  return all;
}

}  // namespace

namespace world {

long control_memory(object& of, int command, long argument) {
  auto* const m = dynamic_cast<shared_memory*>(&of);
  if (!m) return -EINVAL;
  if (command == F_ADD_SEALS) return m->seals |= int(argument), 0;
  return command == F_GET_SEALS ? m->seals : -EINVAL;
}

}  // namespace world

extern "C" {

void* mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  static auto* const real = next<void*(void*, size_t, int, int, int, off_t)>("mmap");
  if (!self || (flags & MAP_ANONYMOUS) || !is_simulated(fd))
    return real(at, size, protection, flags, fd, offset);
  auto const o = descriptor(fd);
  if (auto* const m = dynamic_cast<shared_memory*>(o.get())) {
    if (m->base && offset == 0 && size <= m->size) return m->base;
    return result_of(-EINVAL), MAP_FAILED;
  }
  auto* const f = dynamic_cast<open_file*>(o.get());
  if (!f || !f->node || ((flags & MAP_SHARED) && (protection & PROT_WRITE)))
    return result_of(-ENODEV), MAP_FAILED;
  void* const copy = real(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return copy;
  std::string const& data = f->node->data;
  if (std::size_t(offset) < data.size())
    std::memcpy(copy, data.data() + offset, std::min(size, data.size() - std::size_t(offset)));
  return copy;
}
void* mmap64(void* at, size_t size, int protection, int flags, int fd, off64_t offset) noexcept {
  return mmap(at, size, protection, flags, fd, offset);
}

int munmap(void* at, size_t size) noexcept {
  static auto* const real = next<int(void*, size_t)>("munmap");
  if (self)
    for (auto const& [first, bytes] : pieces())
      if (at >= first && at < first + bytes) return 0;
  return real(at, size);
}

int memfd_create(char const* name, unsigned flags) noexcept {
  static auto* const real = next<int(char const*, unsigned)>("memfd_create");
  return self ? add_descriptor(std::make_shared<shared_memory>()) : real(name, flags);
}

/// 1: it is no such memory.
long resize_memory(int fd, off_t size) {
  auto const m = descriptor_of<shared_memory>(fd);
  if (!m) return 1;
  if (m->base) return std::size_t(size) == m->size ? 0 : -EINVAL;
  static auto* const real = next<void*(void*, size_t, int, int, int, off_t)>("mmap");
  m->base = real(nullptr, std::size_t(size), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  m->size = std::size_t(size);
  pieces().emplace_back(static_cast<char*>(m->base), m->size);
  return 0;
}

long fill_memory(int fd, struct stat* into) {
  auto const m = descriptor_of<shared_memory>(fd);
  if (!m) return 1;
  *into = {};
  into->st_mode = S_IFREG | 0777;
  into->st_size = off_t(m->size);
  return 0;
}

}  // extern "C"
