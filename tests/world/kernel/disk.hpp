// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <vector>

#include "world/kernel/object.hpp"
#include "world/kernel/process.hpp"

namespace world {

struct open_file;

/// A file, directory or link of a volume, with what of it a loss of power would leave.
struct inode {
  mode_t mode = 0;
  std::uint64_t number = 0;
  int links = 0;
  std::int64_t modified = 0;
  std::string data;  ///< of a link: where it leads
  std::string forced;
  std::map<std::string, std::shared_ptr<inode>> entries;
  std::map<std::string, std::shared_ptr<inode>> forced_entries;
  /// Changes since the entries were forced; each is whole or not there. Null: the name goes.
  std::vector<std::vector<std::pair<std::string, std::shared_ptr<inode>>>> changes;

  open_file* exclusive = nullptr;  ///< flock
  std::vector<open_file*> shared;
  wait_queue lockers;
  struct range {
    std::int64_t first, last;
    bool write;
    open_file* by;
  };
  std::vector<range> ranges;  ///< locks of open file descriptions

  bool is_directory() const { return S_ISDIR(mode); }
};

struct volume {
  std::string name;
  disk how;
  std::shared_ptr<inode> root;
  std::uint64_t used = 0, inodes = 0, device = 0;
};

/// A place in a tree: what lies there, if something does, and where a name would be made.
struct place {
  volume* on = nullptr;
  std::shared_ptr<inode> directory, node;
  std::string name;
  int error = 0;  ///< a directory on the way is missing
  bool special = false;
};
place look_up(process const& p, std::string const& path, bool follow = true);
std::string absolute(process const& p, std::string const& path);

struct open_file final : object {
  long read(std::span<iovec const>, int) override;
  long write(std::span<iovec const>, int) override;
  long read_at(std::span<iovec const>, std::int64_t at);
  long write_at(std::span<iovec const>, std::int64_t at);
  long resize(std::int64_t size);
  long force();
  long lock(int operation, bool wait);  ///< flock
  long lock_range(struct ::flock const& how);
  void unlock_all();
  void closed() override { unlock_all(); }
  bool can_be_watched() const override { return false; }
  char const* kind() const override { return "file"; }
  volume* on = nullptr;  ///< null: a special file
  host* at = nullptr;    ///< who has opened it
  std::shared_ptr<inode> node;
  std::string path;
  int flags = 0;
  std::int64_t offset = 0;
  std::string special;  ///< content of one of the kernel's files; "random", "null"
};

/// Of /proc, made when it is asked for; null: there is no such file.
std::shared_ptr<inode> kernel_file(process const& p, std::string const& path);
long open_path(process& p, std::string const& path, int flags, mode_t mode);  ///< a descriptor
long make_directory(process& p, std::string const& path, mode_t mode);
long remove_name(process& p, std::string const& path, bool directory);
long rename_path(process& p, std::string const& from, std::string const& to);
long link_path(process& p, std::string const& from, std::string const& to);
long make_link(process& p, std::string const& leads_to, std::string const& path);
long make_socket_file(process& p, std::string const& path);
int refusal_of(process& p, std::string const& path);  ///< of a Unix socket that nobody listens at
void fill(struct stat& facts, inode const& of, volume const* on);

volume& volume_called(std::string const& name);
void add_common_mounts(host& to);
host* find_host(std::string const& name);
std::vector<std::string> host_names();
/// Lets time pass for the calling thread: little of it without letting others run.
void take_time(std::int64_t nanoseconds);

}  // namespace world
