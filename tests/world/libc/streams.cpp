// SPDX-License-Identifier: Apache-2.0
// C's streams over simulated descriptors.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cstring>
#include <unordered_map>

#include "world/kernel/disk.hpp"
#include "world/libc/result.hpp"

using namespace world;

namespace {

std::unordered_map<FILE*, int>& numbers() {
  static auto& all = *new std::unordered_map<FILE*, int>;
  return all;
}

int number_of(void* cookie) { return int(reinterpret_cast<std::intptr_t>(cookie)); }

ssize_t read_stream(void* c, char* into, size_t size) { return ::read(number_of(c), into, size); }
ssize_t write_stream(void* c, char const* from, size_t size) { return ::write(number_of(c), from, size); }
int seek_stream(void* c, off64_t* at, int from) {
  off64_t const to = ::lseek(number_of(c), *at, from);
  if (to < 0) return -1;
  *at = to;
  return 0;
}
int close_stream(void* c) { return ::close(number_of(c)); }

FILE* stream_on(int fd, char const* mode) {
  cookie_io_functions_t const how{read_stream, write_stream, seek_stream, close_stream};
  FILE* const f = ::fopencookie(reinterpret_cast<void*>(std::intptr_t(fd)), mode, how);
  if (f) numbers()[f] = fd;
  return f;
}

int flags_of(char const* mode) {
  bool const both = std::strchr(mode, '+');
  int const how = both ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
  int const made = mode[0] == 'r' ? 0 : O_CREAT | (mode[0] == 'w' ? O_TRUNC : O_APPEND);
  return how | made | (std::strchr(mode, 'x') ? O_EXCL : 0);
}

}  // namespace

namespace world {

/// Standard output of a simulated process goes to its own descriptors.
void own_standard_streams() {
  std::fflush(nullptr);
  cookie_io_functions_t const how{nullptr, write_stream, nullptr, nullptr};
  stdout = ::fopencookie(reinterpret_cast<void*>(std::intptr_t(1)), "w", how);
  stderr = ::fopencookie(reinterpret_cast<void*>(std::intptr_t(2)), "w", how);
  ::setvbuf(stdout, nullptr, _IONBF, 0);
  ::setvbuf(stderr, nullptr, _IONBF, 0);
}

}  // namespace world

extern "C" {

FILE* fopen(char const* path, char const* mode) {
  static auto* const real = next<FILE*(char const*, char const*)>("fopen");
  if (!self) return real(path, mode);
  int const fd = int(result_of(open_path(*self->of, path, flags_of(mode), 0666)));
  return fd < 0 ? nullptr : stream_on(fd, mode);
}
FILE* fopen64(char const* path, char const* mode) { return fopen(path, mode); }

FILE* fdopen(int fd, char const* mode) noexcept {
  static auto* const real = next<FILE*(int, char const*)>("fdopen");
  return self && is_simulated(fd) ? stream_on(fd, mode) : real(fd, mode);
}

int fclose(FILE* f) {
  static auto* const real = next<int(FILE*)>("fclose");
  numbers().erase(f);
  return real(f);
}

int fileno(FILE* f) noexcept {
  static auto* const real = next<int(FILE*)>("fileno");
  if (f == stdout) return 1;
  if (f == stderr) return 2;
  auto const it = numbers().find(f);
  return it == numbers().end() ? real(f) : it->second;
}

}  // extern "C"
