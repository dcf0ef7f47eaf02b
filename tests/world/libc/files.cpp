// SPDX-License-Identifier: Apache-2.0
// Files and directories by their names.
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <string>

#include "world/kernel/disk.hpp"
#include "world/libc/result.hpp"

using namespace world;

namespace {

bool ours(int fd) { return self && is_simulated(fd); }

/// A name that is relative to an open directory.
std::string at_directory(int directory, char const* name) {
  if (directory == AT_FDCWD || name[0] == '/') return name;
  auto const d = descriptor_of<open_file>(directory);
  return d ? d->path + '/' + name : "/\1/" + std::string(name);
}

int facts_of(place const& at, struct stat* into) {
  if (at.error || !at.node) return int(result_of(-(at.error ? at.error : ENOENT)));
  fill(*into, *at.node, at.on);
  return 0;
}

template <class Do>
int with_file(int fd, Do&& what) {
  auto const f = descriptor_of<open_file>(fd);
  return int(result_of(f ? what(*f) : -EBADF));
}

std::string unique_name(std::string pattern) {
  static constexpr char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  for (std::size_t i = pattern.size() - 6; i < pattern.size(); ++i)
    pattern[i] = letters[os->entropy.below(36)];
  return pattern;
}

}  // namespace

extern "C" {

int open(char const* path, int flags, ...) {
  static auto* const real = next<int(char const*, int, unsigned)>("open");
  va_list given;
  va_start(given, flags);
  unsigned const mode = va_arg(given, unsigned);
  va_end(given);
  return self ? int(result_of(open_path(*self->of, path, flags, mode))) : real(path, flags, mode);
}

int open64(char const* path, int flags, ...) {
  va_list given;
  va_start(given, flags);
  unsigned const mode = va_arg(given, unsigned);
  va_end(given);
  return open(path, flags, mode);
}

int openat(int directory, char const* path, int flags, ...) {
  static auto* const real = next<int(int, char const*, int, unsigned)>("openat");
  va_list given;
  va_start(given, flags);
  unsigned const mode = va_arg(given, unsigned);
  va_end(given);
  if (!self) return real(directory, path, flags, mode);
  return int(result_of(open_path(*self->of, at_directory(directory, path), flags, mode)));
}

int openat64(int directory, char const* path, int flags, ...) {
  va_list given;
  va_start(given, flags);
  unsigned const mode = va_arg(given, unsigned);
  va_end(given);
  return openat(directory, path, flags, mode);
}

int creat(char const* path, mode_t mode) { return open(path, O_WRONLY | O_CREAT | O_TRUNC, mode); }

ssize_t pread(int fd, void* into, size_t size, off_t at) {
  static auto* const real = next<ssize_t(int, void*, size_t, off_t)>("pread");
  if (!ours(fd)) return real(fd, into, size, at);
  auto const f = descriptor_of<open_file>(fd);
  iovec const one{into, size};
  return result_of(f ? f->read_at({&one, 1}, at) : -ESPIPE);
}
ssize_t pread64(int fd, void* into, size_t size, off64_t at) { return pread(fd, into, size, at); }

ssize_t pwrite(int fd, void const* from, size_t size, off_t at) {
  static auto* const real = next<ssize_t(int, void const*, size_t, off_t)>("pwrite");
  if (!ours(fd)) return real(fd, from, size, at);
  auto const f = descriptor_of<open_file>(fd);
  iovec const one{const_cast<void*>(from), size};
  return result_of(f ? f->write_at({&one, 1}, at) : -ESPIPE);
}
ssize_t pwrite64(int fd, void const* from, size_t size, off64_t at) { return pwrite(fd, from, size, at); }

off_t lseek(int fd, off_t by, int from) noexcept {
  static auto* const real = next<off_t(int, off_t, int)>("lseek");
  if (!ours(fd)) return real(fd, by, from);
  auto const f = descriptor_of<open_file>(fd);
  if (!f || !f->node) return result_of(-ESPIPE);
  std::int64_t const base = from == SEEK_SET   ? 0
                            : from == SEEK_CUR ? f->offset
                                               : std::int64_t(f->node->data.size());
  if (base + by < 0) return result_of(-EINVAL);
  return f->offset = base + by;
}
off64_t lseek64(int fd, off64_t by, int from) noexcept { return lseek(fd, by, from); }

int fsync(int fd) {
  static auto* const real = next<int(int)>("fsync");
  return ours(fd) ? with_file(fd, [](open_file& f) { return f.force(); }) : real(fd);
}
int fdatasync(int fd) {
  static auto* const real = next<int(int)>("fdatasync");
  return ours(fd) ? with_file(fd, [](open_file& f) { return f.force(); }) : real(fd);
}

long resize_memory(int fd, off_t size);

int ftruncate(int fd, off_t size) noexcept {
  static auto* const real = next<int(int, off_t)>("ftruncate");
  if (!ours(fd)) return real(fd, size);
  if (long const done = resize_memory(fd, size); done <= 0) return int(result_of(done));
  return with_file(fd, [&](open_file& f) { return f.resize(size); });
}
int ftruncate64(int fd, off64_t size) noexcept { return ftruncate(fd, size); }

int truncate(char const* path, off_t size) noexcept {
  static auto* const real = next<int(char const*, off_t)>("truncate");
  if (!self) return real(path, size);
  int const fd = open(path, O_WRONLY);
  if (fd < 0) return -1;
  int const code = ftruncate(fd, size);
  close_descriptor(fd);
  return code;
}
int truncate64(char const* path, off64_t size) noexcept { return truncate(path, size); }

int posix_fallocate(int fd, off_t at, off_t size) {
  static auto* const real = next<int(int, off_t, off_t)>("posix_fallocate");
  if (!ours(fd)) return real(fd, at, size);
  if (long const done = resize_memory(fd, at + size); done <= 0) return int(-done);
  auto const f = descriptor_of<open_file>(fd);
  if (!f || !f->node) return EBADF;
  return std::size_t(at + size) > f->node->data.size() ? int(-f->resize(at + size)) : 0;
}
int posix_fallocate64(int fd, off64_t at, off64_t size) { return posix_fallocate(fd, at, size); }

int posix_fadvise(int fd, off_t at, off_t size, int what) noexcept {
  static auto* const real = next<int(int, off_t, off_t, int)>("posix_fadvise");
  return ours(fd) ? 0 : real(fd, at, size, what);
}

int flock(int fd, int operation) noexcept {
  static auto* const real = next<int(int, int)>("flock");
  if (!ours(fd)) return real(fd, operation);
  return with_file(fd, [&](open_file& f) { return f.lock(operation & ~LOCK_NB, !(operation & LOCK_NB)); });
}

// A reader and a writer do as well: who calls it tries them next.
ssize_t sendfile(int to, int from, off_t* at, size_t size) noexcept {
  static auto* const real = next<ssize_t(int, int, off_t*, size_t)>("sendfile");
  return ours(from) ? result_of(-EINVAL) : real(to, from, at, size);
}
ssize_t copy_file_range(int from, off64_t* at, int to, off64_t* to_at, size_t size, unsigned flags) {
  static auto* const real = next<ssize_t(int, off64_t*, int, off64_t*, size_t, unsigned)>("copy_file_range");
  return ours(from) ? result_of(-ENOSYS) : real(from, at, to, to_at, size, flags);
}

// ---- Facts ----

long fill_memory(int fd, struct stat* into);

int fstat(int fd, struct stat* into) noexcept {
  static auto* const real = next<int(int, struct stat*)>("fstat");
  if (!ours(fd)) return real(fd, into);
  if (fill_memory(fd, into) == 0) return 0;
  auto const o = descriptor(fd);
  if (!o) return int(result_of(-EBADF));
  auto* const f = dynamic_cast<open_file*>(o.get());
  if (f && f->node) return fill(*into, *f->node, f->on), 0;
  inode other;
  other.mode = f ? S_IFCHR | 0666 : fd <= 2 ? S_IFIFO | 0600 : S_IFSOCK | 0777;
  return fill(*into, other, nullptr), 0;
}

int stat(char const* path, struct stat* into) noexcept {
  static auto* const real = next<int(char const*, struct stat*)>("stat");
  return self ? facts_of(look_up(*self->of, path), into) : real(path, into);
}

int lstat(char const* path, struct stat* into) noexcept {
  static auto* const real = next<int(char const*, struct stat*)>("lstat");
  return self ? facts_of(look_up(*self->of, path, false), into) : real(path, into);
}

int fstatat(int directory, char const* path, struct stat* into, int flags) noexcept {
  static auto* const real = next<int(int, char const*, struct stat*, int)>("fstatat");
  if (!self) return real(directory, path, into, flags);
  if (!*path && (flags & AT_EMPTY_PATH)) return fstat(directory, into);
  return facts_of(look_up(*self->of, at_directory(directory, path), !(flags & AT_SYMLINK_NOFOLLOW)), into);
}

// The same structures on this machine.
int stat64(char const* p, struct stat64* into) noexcept {
  return stat(p, reinterpret_cast<struct stat*>(into));
}
int lstat64(char const* p, struct stat64* into) noexcept {
  return lstat(p, reinterpret_cast<struct stat*>(into));
}
int fstat64(int fd, struct stat64* into) noexcept { return fstat(fd, reinterpret_cast<struct stat*>(into)); }
int fstatat64(int d, char const* p, struct stat64* into, int flags) noexcept {
  return fstatat(d, p, reinterpret_cast<struct stat*>(into), flags);
}

int access(char const* path, int how) noexcept {
  static auto* const real = next<int(char const*, int)>("access");
  struct stat facts;
  return self ? stat(path, &facts) : real(path, how);
}
int faccessat(int directory, char const* path, int, int) noexcept {
  struct stat facts;
  return fstatat(directory, path, &facts, 0);
}

int statvfs(char const* path, struct statvfs* into) noexcept {
  static auto* const real = next<int(char const*, struct statvfs*)>("statvfs");
  if (!self) return real(path, into);
  place const at = look_up(*self->of, path);
  if (at.error || !at.node) return int(result_of(-ENOENT));
  *into = {};
  into->f_bsize = into->f_frsize = 4096;
  into->f_blocks = at.on->how.capacity / 4096;
  into->f_bfree = into->f_bavail = (at.on->how.capacity - std::min(at.on->how.capacity, at.on->used)) / 4096;
  into->f_namemax = 255;
  return 0;
}
int statvfs64(char const* path, struct statvfs64* into) noexcept {
  return statvfs(path, reinterpret_cast<struct statvfs*>(into));
}

int utimensat(int d, char const* path, timespec const* t, int flags) noexcept {
  static auto* const real = next<int(int, char const*, timespec const*, int)>("utimensat");
  return self ? 0 : real(d, path, t, flags);
}
int chmod(char const* path, mode_t mode) noexcept {
  static auto* const real = next<int(char const*, mode_t)>("chmod");
  if (!self) return real(path, mode);
  place const at = look_up(*self->of, path);
  if (!at.node) return int(result_of(-ENOENT));
  at.node->mode = (at.node->mode & S_IFMT) | (mode & 07777);
  return 0;
}
int fchmod(int fd, mode_t mode) noexcept {
  static auto* const real = next<int(int, mode_t)>("fchmod");
  if (!ours(fd)) return real(fd, mode);
  return with_file(fd, [&](open_file& f) {
    if (f.node) f.node->mode = (f.node->mode & S_IFMT) | (mode & 07777);
    return 0l;
  });
}
int fchmodat(int directory, char const* path, mode_t mode, int) noexcept {
  return chmod(self ? at_directory(directory, path).c_str() : path, mode);
}
mode_t umask(mode_t to) noexcept {
  static auto* const real = next<mode_t(mode_t)>("umask");
  return self ? 022 : real(to);
}

// ---- Names ----

int mkdir(char const* path, mode_t mode) noexcept {
  static auto* const real = next<int(char const*, mode_t)>("mkdir");
  return self ? int(result_of(make_directory(*self->of, path, mode))) : real(path, mode);
}
int unlink(char const* path) noexcept {
  static auto* const real = next<int(char const*)>("unlink");
  return self ? int(result_of(remove_name(*self->of, path, false))) : real(path);
}
int rmdir(char const* path) noexcept {
  static auto* const real = next<int(char const*)>("rmdir");
  return self ? int(result_of(remove_name(*self->of, path, true))) : real(path);
}
int unlinkat(int directory, char const* path, int flags) noexcept {
  static auto* const real = next<int(int, char const*, int)>("unlinkat");
  if (!self) return real(directory, path, flags);
  return int(result_of(remove_name(*self->of, at_directory(directory, path), flags & AT_REMOVEDIR)));
}
int remove(char const* path) noexcept {
  static auto* const real = next<int(char const*)>("remove");
  if (!self) return real(path);
  long const code = remove_name(*self->of, path, false);
  return int(result_of(code == -EISDIR ? remove_name(*self->of, path, true) : code));
}
int rename(char const* from, char const* to) noexcept {
  static auto* const real = next<int(char const*, char const*)>("rename");
  return self ? int(result_of(rename_path(*self->of, from, to))) : real(from, to);
}
int link(char const* from, char const* to) noexcept {
  static auto* const real = next<int(char const*, char const*)>("link");
  return self ? int(result_of(link_path(*self->of, from, to))) : real(from, to);
}
int symlink(char const* to, char const* path) noexcept {
  static auto* const real = next<int(char const*, char const*)>("symlink");
  return self ? int(result_of(make_link(*self->of, to, path))) : real(to, path);
}

ssize_t readlink(char const* path, char* into, size_t size) noexcept {
  static auto* const real = next<ssize_t(char const*, char*, size_t)>("readlink");
  if (!self) return real(path, into, size);
  std::string to;
  if (std::string_view(path) == "/proc/self/exe") {
    to = "/proc/self/exe";
  } else {
    place const at = look_up(*self->of, path, false);
    if (!at.node) return result_of(-ENOENT);
    if (!S_ISLNK(at.node->mode)) return result_of(-EINVAL);
    to = at.node->data;
  }
  std::size_t const n = std::min(size, to.size());
  std::memcpy(into, to.data(), n);
  return ssize_t(n);
}

char* realpath(char const* path, char* into) noexcept {
  static auto* const real = next<char*(char const*, char*)>("realpath");
  if (!self) return real(path, into);
  place const at = look_up(*self->of, path);
  if (!at.node) return result_of(-ENOENT), nullptr;
  std::string const full = absolute(*self->of, path);
  if (!into) return ::strdup(full.c_str());
  return std::strcpy(into, full.c_str());
}

char* getcwd(char* into, size_t size) noexcept {
  static auto* const real = next<char*(char*, size_t)>("getcwd");
  if (!self) return real(into, size);
  std::string const& here = self->of->directory;
  if (!into) return ::strdup(here.c_str());
  if (size <= here.size()) return result_of(-ERANGE), nullptr;
  return std::strcpy(into, here.c_str());
}

int chdir(char const* path) noexcept {
  static auto* const real = next<int(char const*)>("chdir");
  if (!self) return real(path);
  place const at = look_up(*self->of, path);
  if (!at.node || !at.node->is_directory()) return int(result_of(-ENOENT));
  self->of->directory = absolute(*self->of, path);
  return 0;
}

char* mkdtemp(char* pattern) noexcept {
  static auto* const real = next<char*(char*)>("mkdtemp");
  if (!self) return real(pattern);
  std::string const name = unique_name(pattern);
  if (long const code = make_directory(*self->of, name, 0700); code != 0) return result_of(code), nullptr;
  return std::strcpy(pattern, name.c_str());
}

int mkstemp(char* pattern) {
  static auto* const real = next<int(char*)>("mkstemp");
  if (!self) return real(pattern);
  std::strcpy(pattern, unique_name(pattern).c_str());
  return open(pattern, O_RDWR | O_CREAT | O_EXCL, 0600);
}
int mkstemp64(char* pattern) { return mkstemp(pattern); }

}  // extern "C"
