// SPDX-License-Identifier: Apache-2.0
#include "world/kernel/disk.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cstring>

namespace world {

namespace {

std::vector<std::string> parts_of(std::string const& path) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < path.size();) {
    std::size_t const end = std::min(path.find('/', at), path.size());
    std::string part = path.substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == ".") continue;
    if (part != "..")
      parts.push_back(std::move(part));
    else if (!parts.empty())
      parts.pop_back();
  }
  return parts;
}

std::string joined(std::vector<std::string> const& parts, std::size_t from, std::size_t to) {
  std::string all;
  for (std::size_t i = from; i < to; ++i) all += '/' + parts[i];
  return all.empty() ? "/" : all;
}

bool begins_with(std::string const& path, std::string const& mount) {
  return mount == "/" ||
         (path.starts_with(mount) && (path.size() == mount.size() || path[mount.size()] == '/'));
}

std::shared_ptr<inode> new_inode(volume& on, mode_t mode) {
  auto n = std::make_shared<inode>();
  n->mode = mode;
  n->number = ++on.inodes;
  n->modified = os->now;
  return n;
}

void change(inode& directory, std::vector<std::pair<std::string, std::shared_ptr<inode>>> what) {
  for (auto const& [name, node] : what) {
    if (auto const it = directory.entries.find(name); it != directory.entries.end()) --it->second->links;
    if (node)
      ++node->links, directory.entries[name] = node;
    else
      directory.entries.erase(name);
  }
  directory.modified = os->now;
  directory.changes.push_back(std::move(what));
}

bool fails(volume const& on) { return on.how.io_error > 0 && os->storage.fraction() < on.how.io_error; }

}  // namespace

void take_time(std::int64_t t) {
  if (t < 50'000)
    os->now += t;
  else
    os->sleep_until(os->now + t);
}

std::string absolute(process const& p, std::string const& path) {
  auto const parts = parts_of(path.starts_with('/') ? path : p.directory + '/' + path);
  return joined(parts, 0, parts.size());
}

place look_up(process const& p, std::string const& path, bool follow) {
  std::string full = absolute(p, path);
  if (full.starts_with("/proc/")) {
    place found{.node = kernel_file(p, full)};
    found.error = found.node ? 0 : ENOENT;
    return found;
  }
  for (int links = 0; links < 20; ++links) {
    place found;
    std::string const* mount = nullptr;
    for (auto const& [prefix, v] : p.at->mounts)
      if (begins_with(full, prefix)) {
        found.on = v, mount = &prefix;
        break;
      }
    auto const parts = parts_of(*mount == "/" ? full : full.substr(mount->size()));
    std::string const base = *mount == "/" ? "" : *mount;
    found.node = found.on->root;
    bool again = false;
    for (std::size_t i = 0; i < parts.size() && !again; ++i) {
      bool const last = i + 1 == parts.size();
      if (!found.node || !found.node->is_directory()) {
        found.error = found.node ? ENOTDIR : ENOENT;
        found.node = nullptr;
        return found;
      }
      found.directory = found.node;
      found.name = parts[i];
      auto const it = found.directory->entries.find(parts[i]);
      found.node = it == found.directory->entries.end() ? nullptr : it->second;
      if (found.node && S_ISLNK(found.node->mode) && (!last || follow)) {
        std::string const rest = last ? "" : joined(parts, i + 1, parts.size());
        std::string const to = found.node->data;
        full = absolute(p, (to.starts_with('/') ? to : base + joined(parts, 0, i) + '/' + to) + rest);
        again = true;
      }
    }
    if (!again) return found;
  }
  return {.error = ELOOP};
}

// ---- Names ----

long open_path(process& p, std::string const& path, int flags, mode_t mode) {
  auto file = std::make_shared<open_file>();
  file->at = p.at;
  file->flags = flags;
  std::string const full = absolute(p, path);
  file->path = full;
  if (full == "/dev/null" || full == "/dev/urandom" || full == "/dev/random") {
    file->special = full == "/dev/null" ? "null" : "random";
    return add_descriptor(file);
  }
  place at = look_up(p, path, !(flags & O_NOFOLLOW));
  if (at.on) take_time(at.on->how.open.count());
  if (at.on) at = look_up(p, path, !(flags & O_NOFOLLOW));  // it may have changed meanwhile
  if (at.error) return -at.error;
  if (at.on && fails(*at.on)) return -EIO;
  bool const writes = (flags & O_ACCMODE) != O_RDONLY;
  if (at.node) {
    if ((flags & O_CREAT) && (flags & O_EXCL)) return -EEXIST;
    if (S_ISLNK(at.node->mode)) return -ELOOP;
    if (S_ISSOCK(at.node->mode)) return -ENXIO;
    if (at.node->is_directory() && (writes || (flags & O_CREAT))) return -EISDIR;
    if ((flags & O_DIRECTORY) && !at.node->is_directory()) return -ENOTDIR;
    if (writes && (!at.on || at.on->how.read_only)) return -EROFS;
  } else {
    if (!(flags & O_CREAT)) return -ENOENT;
    if (at.on->how.read_only) return -EROFS;
    if (at.on->used + 4096 > at.on->how.capacity) return -ENOSPC;
    at.node = new_inode(*at.on, S_IFREG | (mode & 0777 & ~022u));
    change(*at.directory, {{at.name, at.node}});
  }
  file->on = at.on;
  file->node = at.node;
  if ((flags & O_TRUNC) && writes) file->resize(0);
  os->note("open", full);
  return add_descriptor(file);
}

long make_directory(process& p, std::string const& path, mode_t mode) {
  place const at = look_up(p, path, false);
  if (at.error) return -at.error;
  if (at.node) return -EEXIST;
  if (fails(*at.on)) return -EIO;
  if (at.on->how.read_only) return -EROFS;
  if (at.on->used + 4096 > at.on->how.capacity) return -ENOSPC;
  change(*at.directory, {{at.name, new_inode(*at.on, S_IFDIR | (mode & 07777 & ~022u))}});
  return 0;
}

long make_socket_file(process& p, std::string const& path) {
  place const at = look_up(p, path, false);
  if (at.error) return -at.error;
  if (at.node) return -EADDRINUSE;
  change(*at.directory, {{at.name, new_inode(*at.on, S_IFSOCK | 0755)}});
  return 0;
}

int refusal_of(process& p, std::string const& path) {
  return look_up(p, path).node ? -ECONNREFUSED : -ENOENT;
}

long make_link(process& p, std::string const& leads_to, std::string const& path) {
  place const at = look_up(p, path, false);
  if (at.error) return -at.error;
  if (at.node) return -EEXIST;
  auto const n = new_inode(*at.on, S_IFLNK | 0777);
  n->data = leads_to;
  change(*at.directory, {{at.name, n}});
  return 0;
}

long link_path(process& p, std::string const& from, std::string const& to) {
  place const a = look_up(p, from, false), b = look_up(p, to, false);
  if (a.error || b.error) return -(a.error ? a.error : b.error);
  if (!a.node) return -ENOENT;
  if (b.node) return -EEXIST;
  if (a.on != b.on) return -EXDEV;
  change(*b.directory, {{b.name, a.node}});
  return 0;
}

long remove_name(process& p, std::string const& path, bool directory) {
  place const at = look_up(p, path, false);
  if (at.error) return -at.error;
  if (!at.node) return -ENOENT;
  if (!at.directory) return -EBUSY;
  if (directory != at.node->is_directory()) return directory ? -ENOTDIR : -EISDIR;
  if (fails(*at.on)) return -EIO;
  if (at.on->how.read_only) return -EROFS;
  if (directory && !at.node->entries.empty()) return -ENOTEMPTY;
  change(*at.directory, {{at.name, nullptr}});
  if (at.node->links == 0 && !directory)
    at.on->used -= std::min<std::uint64_t>(at.on->used, at.node->data.size());
  os->note("unlink", path);
  return 0;
}

long rename_path(process& p, std::string const& from, std::string const& to) {
  place const a = look_up(p, from, false), b = look_up(p, to, false);
  if (a.error || b.error) return -(a.error ? a.error : b.error);
  if (!a.node) return -ENOENT;
  if (a.on != b.on) return -EXDEV;
  if (!a.directory || !b.directory) return -EBUSY;
  if (fails(*a.on)) return -EIO;
  if (a.on->how.read_only) return -EROFS;
  if (a.node == b.node) return 0;
  if (b.node) {
    if (b.node->is_directory() != a.node->is_directory()) return b.node->is_directory() ? -EISDIR : -ENOTDIR;
    if (!b.node->entries.empty()) return -ENOTEMPTY;
    if (b.node->links == 1) a.on->used -= std::min<std::uint64_t>(a.on->used, b.node->data.size());
  }
  os->note("rename", to);
  ++a.node->links;
  if (a.directory == b.directory) {
    change(*a.directory, {{b.name, a.node}, {a.name, nullptr}});
  } else {
    change(*b.directory, {{b.name, a.node}});
    change(*a.directory, {{a.name, nullptr}});
  }
  --a.node->links;
  os->called("rename", to);
  return 0;
}

// ---- Content ----

long open_file::read(std::span<iovec const> into, int) {
  if (special == "null") return 0;
  if (special == "random") {
    std::string bytes;
    while (bytes.size() < total_of(into)) {
      std::uint64_t const r = os->entropy.next();
      bytes.append(reinterpret_cast<char const*>(&r), sizeof r);
    }
    return long(scatter(std::string_view(bytes).substr(0, total_of(into)), into));
  }
  long const n = read_at(into, offset);
  if (n > 0) offset += n;
  return n;
}

long open_file::write(std::span<iovec const> from, int) {
  if (special == "null") return long(total_of(from));
  if (flags & O_APPEND) offset = std::int64_t(node->data.size());
  long const n = write_at(from, offset);
  if (n > 0) offset += n;
  return n;
}

long open_file::read_at(std::span<iovec const> into, std::int64_t at) {
  if (!node || (flags & O_ACCMODE) == O_WRONLY) return -EBADF;
  if (node->is_directory()) return -EISDIR;
  if (on && fails(*on)) return -EIO;
  if (at >= std::int64_t(node->data.size())) return 0;
  std::size_t const n = scatter(std::string_view(node->data).substr(std::size_t(at)), into);
  if (on) take_time(std::int64_t(double(n) / on->how.bandwidth * 1e9));
  return long(n);
}

long open_file::write_at(std::span<iovec const> from, std::int64_t at) {
  if (!node || !on || (flags & O_ACCMODE) == O_RDONLY) return -EBADF;
  std::size_t n = total_of(from);
  take_time(on->how.write.count() + std::int64_t(double(n) / on->how.bandwidth * 1e9));
  if (fails(*on)) return -EIO;
  if (on->how.read_only) return -EROFS;
  std::size_t const end = std::size_t(at) + n, before = node->data.size();
  if (end > before) {
    std::uint64_t const left = on->how.capacity - std::min(on->how.capacity, on->used);
    if (end - before > left) {
      if (std::size_t(at) > before || before - std::size_t(at) + left == 0) return -ENOSPC;
      n = std::min<std::size_t>(n, before - std::size_t(at) + std::size_t(left));
    }
    std::size_t const now = std::max(before, std::size_t(at) + n);
    on->used += now - before;
    node->data.resize(now);
  }
  std::string const bytes = gather(from, n);
  std::memcpy(node->data.data() + at, bytes.data(), bytes.size());
  node->modified = os->now;
  os->note("write", node->number, bytes.size());
  return long(n);
}

long open_file::resize(std::int64_t size) {
  if (!node || !on) return -EINVAL;
  if (std::uint64_t(size) > node->data.size()) {
    std::uint64_t const more = std::uint64_t(size) - node->data.size();
    if (on->used + more > on->how.capacity) return -ENOSPC;
    on->used += more;
  } else {
    on->used -= std::min<std::uint64_t>(on->used, node->data.size() - std::size_t(size));
  }
  node->data.resize(std::size_t(size));
  node->modified = os->now;
  return 0;
}

long open_file::force() {
  if (!on) return -EINVAL;
  std::int64_t const mean = on->how.fsync.count();
  // At most three times the mean, as who waits for it goes by that.
  take_time(mean / 2 + std::int64_t(std::min(os->storage.exponential(double(mean) / 2), double(mean) * 2.5)));
  if (fails(*on)) return -EIO;
  os->note("fsync", node->number, node->data.size());
  os->called("fsync", path);
  if (on->how.lies) return 0;
  if (node->is_directory()) {
    node->forced_entries = node->entries;
    node->changes.clear();
  } else {
    node->forced = node->data;
  }
  return 0;
}

// ---- Locks ----

long open_file::lock(int operation, bool wait) {
  if (!node) return -EBADF;
  for (;;) {
    bool const mine = node->exclusive == this,
               others = !node->shared.empty() && (node->shared.size() > 1 || node->shared[0] != this);
    if (operation == LOCK_UN) {
      if (mine) node->exclusive = nullptr;
      std::erase(node->shared, this);
      node->lockers.wake_all();
      return 0;
    }
    bool const free = (!node->exclusive || mine) && (operation == LOCK_SH || !others);
    if (free) {
      node->exclusive = operation == LOCK_EX ? this : nullptr;
      std::erase(node->shared, this);
      if (operation == LOCK_SH) node->shared.push_back(this);
      return 0;
    }
    if (!wait) return -EWOULDBLOCK;
    os->block(node->lockers, never, "flock");
  }
}

long open_file::lock_range(struct ::flock const& how) {
  if (!node) return -EBADF;
  std::int64_t const first = how.l_start, last = how.l_len == 0 ? never : how.l_start + how.l_len - 1;
  auto const overlaps = [&](inode::range const& r) { return r.first <= last && first <= r.last; };
  auto const seen = [&](inode::range const& r) { return !on || !on->how.blind || r.by->at == at; };
  if (how.l_type != F_UNLCK)
    for (inode::range const& r : node->ranges)
      if (r.by != this && overlaps(r) && seen(r) && (r.write || how.l_type == F_WRLCK)) return -EAGAIN;
  std::erase_if(node->ranges, [&](inode::range const& r) { return r.by == this && overlaps(r); });
  if (how.l_type != F_UNLCK) node->ranges.push_back({first, last, how.l_type == F_WRLCK, this});
  return 0;
}

void open_file::unlock_all() {
  if (!node) return;
  lock(LOCK_UN, false);
  std::erase_if(node->ranges, [&](inode::range const& r) { return r.by == this; });
}

void fill(struct stat& facts, inode const& of, volume const* on) {
  std::memset(&facts, 0, sizeof facts);
  facts.st_mode = of.mode;
  facts.st_ino = of.number;
  facts.st_dev = on ? on->device : 1;
  facts.st_nlink = nlink_t(of.links + (of.is_directory() ? 1 : 0));
  facts.st_uid = 1000;
  facts.st_gid = 1000;
  facts.st_size = off_t(of.data.size());
  facts.st_blksize = 4096;
  facts.st_blocks = blkcnt_t((of.data.size() + 511) / 512);
  std::int64_t const t = epoch_begin + of.modified;
  facts.st_mtim = facts.st_atim = facts.st_ctim = {time_t(t / 1'000'000'000), long(t % 1'000'000'000)};
}

}  // namespace world
