// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "edl/app/machine_speed.hpp"
#include "edl/base/net/blocking.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/random.hpp"

namespace edl::app {
namespace detail {

// The best of three times: other users of a disk or a network only make it slower.
template <class Work>
double best_speed(std::size_t bytes, Work const& work) {
  double best = 0;
  for (int i = 0; i < 3; ++i) {
    auto const began = clock::now();
    if (!work()) return 0;
    best = std::max(best, double(bytes) / std::chrono::duration<double>(clock::now() - began).count());
  }
  return best;
}

/// Bytes that no layer below can compress.
inline std::vector<std::uint64_t> incompressible(std::size_t bytes) {
  std::vector<std::uint64_t> words(bytes / sizeof(std::uint64_t));
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = mix(i, 3);
  return words;
}

inline bool write_and_force(std::string const& directory, std::span<std::byte const> what) {
  std::string path = directory + "/edl-speed-XXXXXX";
  int const file = ::mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) return false;
  ::unlink(path.c_str());
  bool written = true;
  while (written && !what.empty()) {
    auto const n = ::write(file, what.data(), what.size());
    written = n > 0;
    if (written) what = what.subspan(std::size_t(n));
  }
  written = written && ::fdatasync(file) == 0;
  ::close(file);
  return written;
}

}  // namespace detail

EDL_INLINE double disk_speed(std::string const& directory, std::size_t bytes) {
  if (directory.empty()) return 0;
  auto const words = detail::incompressible(bytes);
  return detail::best_speed(
      bytes, [&] { return detail::write_and_force(directory, std::as_bytes(std::span(words))); });
}

EDL_INLINE std::string on_disk(std::vector<std::string> const& directories) {
  for (std::string const& one : directories) {
    struct statfs of{};
    if (one.empty() || ::statfs(one.c_str(), &of) != 0) continue;
    if (of.f_type != TMPFS_MAGIC && of.f_type != RAMFS_MAGIC) return one;
  }
  return {};
}

EDL_INLINE std::string speeds_in_words(double disk, std::string const& directory, double network) {
  std::string const writes =
      disk > 0            ? fmt::format("writes {:.3g} MB/s to {}", disk / 1e6, directory)
      : directory.empty() ? "has no directory on a disk, so its disk was not measured"
                          : fmt::format("could not write to {}, so its disk was not measured", directory);
  return fmt::format("this machine {}, and {}", writes,
                     network > 0 ? fmt::format("sends {:.3g} MB/s to the master", network / 1e6)
                                 : "the way to the master was not measured: it takes no probe");
}

EDL_INLINE double network_speed(net::channel& master) try {
  auto const words = detail::incompressible(wire::most_probe_bytes);
  return detail::best_speed(wire::most_probe_bytes, [&] {
    net::outgoing what{.method = wire::method::probe, .timeout = std::chrono::seconds(10)};
    what.payload.push_back(std::as_bytes(std::span(words)));
    net::wait(master, std::move(what));
    return true;
  });
} catch (std::exception const&) {
  return 0;  // joining will report the error
}

EDL_INLINE bool may_measure(net::channel& master, std::chrono::milliseconds wait) try {
  net::wait(master, {.method = wire::method::probe, .timeout = wait});
  return true;
} catch (std::exception const&) {
  return false;
}

}  // namespace edl::app
