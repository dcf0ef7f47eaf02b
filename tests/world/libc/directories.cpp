// SPDX-License-Identifier: Apache-2.0
// Lists of directories.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>
#include <string>

#include "world/kernel/disk.hpp"
#include "world/libc/result.hpp"

using namespace world;

namespace {

bool ours(int fd) { return self && is_simulated(fd); }

/// What opendir gives.
struct listing {
  int fd;
  std::vector<std::pair<std::string, std::shared_ptr<inode>>> names;
  std::size_t next = 0;
  dirent entry;
};
listing& of(DIR* d) { return *reinterpret_cast<listing*>(d); }

DIR* list_open(int fd) {
  auto const f = descriptor_of<open_file>(fd);
  if (!f || !f->node || !f->node->is_directory()) return result_of(-ENOTDIR), nullptr;
  auto* const l = new listing{.fd = fd, .names = {}, .entry = {}};
  l->names = {{".", f->node}, {"..", f->node}};
  l->names.insert(l->names.end(), f->node->entries.begin(), f->node->entries.end());
  return reinterpret_cast<DIR*>(l);
}

}  // namespace

extern "C" {

DIR* opendir(char const* path) {
  static auto* const real = next<DIR*(char const*)>("opendir");
  if (!self) return real(path);
  int const fd = open(path, O_RDONLY | O_DIRECTORY);
  return fd < 0 ? nullptr : list_open(fd);
}
DIR* fdopendir(int fd) {
  static auto* const real = next<DIR*(int)>("fdopendir");
  return ours(fd) ? list_open(fd) : real(fd);
}
dirent* readdir(DIR* d) {
  static auto* const real = next<dirent*(DIR*)>("readdir");
  if (!self) return real(d);
  listing& l = of(d);
  if (l.next == l.names.size()) return nullptr;
  auto const& [name, node] = l.names[l.next++];
  l.entry = {};
  l.entry.d_ino = node->number;
  l.entry.d_type = static_cast<unsigned char>(IFTODT(node->mode));
  std::strncpy(l.entry.d_name, name.c_str(), sizeof l.entry.d_name - 1);
  return &l.entry;
}
dirent64* readdir64(DIR* d) { return reinterpret_cast<dirent64*>(readdir(d)); }
int closedir(DIR* d) {
  static auto* const real = next<int(DIR*)>("closedir");
  if (!self) return real(d);
  close_descriptor(of(d).fd);
  delete &of(d);
  return 0;
}
int dirfd(DIR* d) noexcept {
  static auto* const real = next<int(DIR*)>("dirfd");
  return self ? of(d).fd : real(d);
}

}  // extern "C"
