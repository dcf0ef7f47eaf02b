// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>
#include <set>
#include <utility>

#include "world/kernel/disk.hpp"

namespace world {

namespace {

std::map<std::string, std::unique_ptr<volume>>& volumes() {
  static auto& all = *new std::map<std::string, std::unique_ptr<volume>>;
  return all;
}

std::vector<std::pair<std::string, std::string>>& common_mounts() {
  static auto& all = *new std::vector<std::pair<std::string, std::string>>;
  return all;
}

std::vector<host*>& known_hosts() {
  static auto& all = *new std::vector<host*>;
  return all;
}

void mount_at(host& h, std::string const& path, volume& v) {
  std::erase_if(h.mounts, [&](auto const& m) { return m.first == path; });
  h.mounts.emplace_back(path, &v);
  std::ranges::stable_sort(h.mounts,
                           [](auto const& a, auto const& b) { return a.first.size() > b.first.size(); });
}

/// Like a process that does not wait and never meets a fault.
process outsider(std::string const& host) {
  process p;
  p.at = &host_called(host);
  return p;
}

constexpr std::size_t block = 4096;

/// Of each block either the forced or the newer content; the end anywhere between.
std::string torn(std::string const& forced, std::string const& now) {
  random_stream& draw = os->storage;
  if (draw.below(3) == 0) return now;
  std::size_t const least = std::min(forced.size(), now.size()), most = std::max(forced.size(), now.size());
  std::size_t const size = least + std::size_t(draw.below(most - least + 1));
  std::string left(size, '\0');
  for (std::size_t at = 0; at < size; at += block) {
    bool const newer = draw.below(2) == 0;
    std::string const& from = newer && at < now.size() ? now : forced;
    for (std::size_t i = at; i < std::min(at + block, size) && i < from.size(); ++i) left[i] = from[i];
  }
  return left;
}

void lose(inode& of, std::set<inode*>& seen) {
  if (!seen.insert(&of).second) return;
  of.exclusive = nullptr;
  of.shared.clear();
  of.ranges.clear();
  if (!of.is_directory()) {
    if (of.data != of.forced && S_ISREG(of.mode)) of.data = torn(of.forced, of.data);
    of.forced = of.data;
    return;
  }
  std::size_t const kept = std::size_t(os->storage.below(of.changes.size() + 1));
  of.entries = of.forced_entries;
  for (std::size_t i = 0; i < kept; ++i)
    for (auto const& [name, node] : of.changes[i])
      if (node)
        of.entries[name] = node;
      else
        of.entries.erase(name);
  of.changes.clear();
  of.forced_entries = of.entries;
  for (auto const& [name, node] : of.entries) lose(*node, seen);
}

void count(inode& of, volume& v, std::set<inode*>& seen) {
  if (seen.insert(&of).second) v.used += of.data.size();
  for (auto const& [name, node] : of.entries) {
    ++node->links;
    count(*node, v, seen);
  }
}

}  // namespace

volume& volume_called(std::string const& name) {
  auto& v = volumes()[name];
  if (v) return *v;
  v = std::make_unique<volume>();
  v->name = name;
  v->device = volumes().size() + 16;
  v->root = std::make_shared<inode>();
  v->root->mode = S_IFDIR | 0755;
  v->root->number = ++v->inodes;
  auto const tmp = std::make_shared<inode>();
  tmp->mode = S_IFDIR | S_ISVTX | 0777;
  tmp->number = ++v->inodes;
  tmp->links = 1;
  v->root->entries["tmp"] = v->root->forced_entries["tmp"] = tmp;
  return *v;
}

void add_common_mounts(host& to) {
  known_hosts().push_back(&to);
  for (auto const& [path, name] : common_mounts()) mount_at(to, path, volume_called(name));
}

host* find_host(std::string const& name) {
  for (host* h : known_hosts())
    if (h->name == name) return h;
  return nullptr;
}

std::vector<std::string> host_names() {
  std::vector<std::string> all;
  for (host const* h : known_hosts()) all.push_back(h->name);
  return all;
}

// ---- The interface of drivers ----

disk get_disk(std::string const& name) { return volume_called(name).how; }

void set_disk(std::string const& name, disk const& how) {
  os->note("disk", name);
  volume_called(name).how = how;
}

std::uint64_t disk_used(std::string const& name) { return volume_called(name).used; }

void mount(std::string const& host, std::string const& path, std::string const& name) {
  mount_at(host_called(host), path, volume_called(name));
}

void mount_everywhere(std::string const& path, std::string const& name) {
  common_mounts().emplace_back(path, name);
  for (host* h : known_hosts()) mount_at(*h, path, volume_called(name));
}

void lose_unforced(std::string const& name) {
  os->note("lose", name);
  volume& v = volume_called(name);
  std::set<inode*> seen;
  lose(*v.root, seen);
  for (inode* i : seen) i->links = 0;
  v.used = 0;
  seen.clear();
  count(*v.root, v, seen);
}

std::optional<std::string> read_file(std::string const& host, std::string const& path) {
  place const at = look_up(outsider(host), path);
  if (at.error || !at.node || at.node->is_directory()) return std::nullopt;
  return at.node->data;
}

void write_file(std::string const& host, std::string const& path, std::string_view content) {
  process const p = outsider(host);
  std::string const full = absolute(p, path);
  for (std::size_t at = 1; at != std::string::npos && at < full.size(); ++at) {
    at = full.find('/', at);
    bool const last = at == std::string::npos;
    place const one = look_up(p, last ? full : full.substr(0, at));
    if (one.error) return fail("write_file: " + full + " cannot be made");
    std::shared_ptr<inode> node = one.node;
    if (!node) {
      node = std::make_shared<inode>();
      node->mode = last ? S_IFREG | 0644 : S_IFDIR | 0755;
      node->number = ++one.on->inodes;
      node->links = 1;
      one.directory->entries[one.name] = one.directory->forced_entries[one.name] = node;
    }
    if (last) {
      one.on->used += content.size() - node->data.size();
      node->data = node->forced = content;
      node->modified = os->now;
      break;
    }
  }
}

std::vector<std::string> list(std::string const& host, std::string const& path) {
  std::vector<std::string> names;
  place const at = look_up(outsider(host), path);
  if (at.error || !at.node) return names;
  for (auto const& [name, node] : at.node->entries) names.push_back(name);
  return names;
}

bool remove_file(std::string const& host, std::string const& path) {
  process p = outsider(host);
  place const at = look_up(p, path, false);
  if (!at.on) return false;
  double const usual = std::exchange(at.on->how.io_error, 0);
  bool const removed = remove_name(p, path, false) == 0;
  at.on->how.io_error = usual;
  return removed;
}

}  // namespace world
