// SPDX-License-Identifier: Apache-2.0
// Files of /proc, as far as edl and its doubles look at them.
#include <fmt/format.h>

#include <cstdlib>

#include "world/kernel/disk.hpp"

namespace world {

namespace {

std::shared_ptr<inode> file_of(std::string content) {
  auto n = std::make_shared<inode>();
  n->mode = S_IFREG | 0444;
  n->data = std::move(content);
  return n;
}

std::shared_ptr<inode> link_to(std::string where) {
  auto n = file_of(std::move(where));
  n->mode = S_IFLNK | 0777;
  return n;
}

std::shared_ptr<inode> descriptors_of(process const& p) {
  auto const n = std::make_shared<inode>();
  n->mode = S_IFDIR | 0555;
  for (std::size_t i = 0; i < p.descriptors.size(); ++i)
    if (p.descriptors[i])
      n->entries[std::to_string(int(i) + first_descriptor)] =
          link_to(fmt::format("anon_inode:[{}]", p.descriptors[i]->kind()));
  return n;
}

std::string status_of(process const& p) {
  std::uint64_t caught = 0, blocked = p.threads.empty() ? 0 : ~std::uint64_t(0);
  for (auto const& [signal, action] : p.actions)
    if (action.sa_handler != SIG_IGN && action.sa_handler != SIG_DFL) caught |= bit_of(signal);
  for (thread const* t : p.threads)
    if (t->is != thread::state::gone) blocked &= t->signal_mask;
  return fmt::format("Name:\t{}\nPid:\t{}\nSigBlk:\t{:016x}\nSigCgt:\t{:016x}\n", p.name, p.number, blocked,
                     caught);
}

}  // namespace

std::shared_ptr<inode> kernel_file(process const& p, std::string const& path) {
  if (path == "/proc/sys/kernel/random/boot_id")
    return file_of("b007-" + (p.at->outside ? p.at->outside : p.at)->name + '\n');
  std::size_t const slash = path.find('/', 6);
  if (slash == std::string::npos) return nullptr;
  std::string const who = path.substr(6, slash - 6), rest = path.substr(slash + 1);
  process const* const of = who == "self" ? &p : process_of(std::atoi(who.c_str()));
  if (!of || (of->end && of->reaped)) return nullptr;
  if (rest == "exe") return link_to("/proc/self/exe");
  if (rest == "status") return file_of(status_of(*of));
  if (rest == "fd") return descriptors_of(*of);
  if (rest.starts_with("fd/")) {
    auto const all = descriptors_of(*of);
    auto const it = all->entries.find(rest.substr(3));
    return it == all->entries.end() ? nullptr : it->second;
  }
  if (rest != "cmdline") return nullptr;
  std::string line;
  for (std::string const& a : of->arguments) line.append(a).push_back('\0');
  return file_of(line);
}

}  // namespace world
