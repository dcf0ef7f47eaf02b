// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>

#include "edl/compute/device/cpu/choices.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/log.hpp"
#include "edl/core/printable.hpp"
#include "edl/version.hpp"

#ifdef EDL_ONEDNN
#include <dnnl_version.h>
#endif

namespace edl::detail {

inline std::string library_version() {
#ifdef EDL_ONEDNN
  return fmt::format("oneDNN {}.{}.{}", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH);
#else
  return "no oneDNN";
#endif
}

inline std::string text_of(kernel_key const& key, int threads) {
  return fmt::format("{} {} batch {} threads {}{}", key.operation, fmt::join(key.extents, ","), key.batch,
                     threads, key.bfloat16 ? " bfloat16" : "");
}

/// Milliseconds that a way takes, the least of several tries; infinite if it cannot compute the shape.
EDL_INLINE double kernel_choices::time_of(int way, question const& run, double best) {
  using clock = std::chrono::steady_clock;
  auto const once = [&] {
    auto const start = clock::now();
    bool const done = run(way);
    double const ms = std::chrono::duration<double, std::milli>(clock::now() - start).count();
    return done ? ms : std::numeric_limits<double>::infinity();
  };
  // The first call creates kernels and touches memory, which is little beside long work.
  constexpr double long_work = 100;
  double least = once();
  if (least == std::numeric_limits<double>::infinity() || (least > long_work && least >= 2 * best))
    return least;
  least = once();
  double spent = least;
  for (int i = 0; i < 4 && least < 2 * best && spent < long_work; ++i) {
    double const ms = once();
    least = std::min(least, ms);
    spent += ms;
  }
  return least;
}

EDL_INLINE kernel_choices::kernel_choices(kernels policy, int threads, std::string cache)
    : policy_(policy), threads_(threads), cache_(std::move(cache)) {
  if (policy_ != kernels::measured) return;
  signature_ =
      fmt::format("edl {} kernels, {},{}", package_version, library_version(), edl::processor_name());
  load();
}

EDL_INLINE int kernel_choices::chosen(kernel_key const& key, std::span<std::string_view const> ways, int rule,
                                      question const& run, question const& right) {
  kernel_key shape = key;
  shape.batch = 0;
  if (auto const seen = used_.find(shape); seen != used_.end()) return seen->second;
  std::string const text = text_of(key, threads_);
  if (auto const known = learned_.find(text); known != learned_.end())
    for (std::size_t i = 0; i < ways.size(); ++i)
      if (ways[i] == known->second) return used_[shape] = int(i);
  ++measurements_;
  auto const begun = std::chrono::steady_clock::now();
  // A kernel that runs alone with warm caches is faster than in a step: a few per cent prove nothing against
  // the rule.
  constexpr double clearly = 0.93;
  constexpr double never = std::numeric_limits<double>::infinity();
  int fastest = 0;
  double least = never;
  auto const attempt = [&](int way, double handicap) {
    double const ms = time_of(way, run, least) * handicap;
    if (ms >= least) return;
    if (right(way)) {
      least = ms, fastest = way;
    } else {
      logger().warning(fmt::format("the kernel '{}' of {} is wrong on this processor, and left out",
                                   ways[std::size_t(way)], text));
    }
  };
  attempt(rule, clearly);
  for (int i = 0; i < int(ways.size()); ++i)
    if (i != rule) attempt(i, 1);
  learned_[text] = ways[std::size_t(fastest)];
  double const before = std::exchange(
      seconds_, seconds_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
  if (before < 1 && seconds_ >= 1)
    logger().info(fmt::format("the first step measures which kernels are the fastest on this machine{}",
                              cache_.empty() ? "" : "; " + printable(cache_) + " keeps what it finds"));
  save();
  return used_[shape] = fastest;
}

EDL_INLINE void kernel_choices::load() {
  constexpr std::uintmax_t largest = 16 << 20;
  std::error_code unknown;
  if (auto const size = std::filesystem::file_size(cache_, unknown); unknown || size > largest) return;
  std::ifstream in(cache_);
  std::string line;
  if (!std::getline(in, line) || line != signature_) return;
  while (std::getline(in, line))
    if (auto const at = line.find(": "); at != std::string::npos)
      learned_.try_emplace(line.substr(0, at), line.substr(at + 2));
}

/// Whether the file may be replaced: it does not exist, or some version of edl wrote it.
inline bool is_memory_of_kernels(std::string const& path) {
  std::error_code unknown;
  auto const kind = std::filesystem::status(path, unknown).type();
  if (kind == std::filesystem::file_type::not_found) return true;
  if (kind != std::filesystem::file_type::regular) return false;
  std::ifstream in(path);
  std::string begin(64, '\0');
  in.read(begin.data(), std::streamsize(begin.size()));
  begin.resize(std::size_t(in.gcount()));
  return begin.empty() || (begin.starts_with("edl ") && begin.find(" kernels, ") != begin.npos);
}

EDL_INLINE void kernel_choices::save() {
  // A failure to write the file only costs another measurement next time.
  if (cache_.empty()) return;
  if (!is_memory_of_kernels(cache_)) {
    logger().warning(
        fmt::format("{} is not a file of remembered kernels: edl leaves it as it is, and measures them again "
                    "the next time; --kernel_cache names another",
                    printable(cache_)));
    return cache_.clear();
  }
  load();  // keeps what other processes have learned meanwhile
  std::error_code ignored;
  std::filesystem::path const path(cache_);
  std::filesystem::create_directories(path.parent_path(), ignored);
  try {
    std::string text = signature_ + '\n';
    for (auto const& [key, way] : learned_) text += fmt::format("{}: {}\n", key, way);
    durable_file file(cache_);
    file.write(text);
    file.commit(forced::nothing);
  } catch (error const&) {
  }
}

}  // namespace edl::detail

namespace edl {

EDL_INLINE std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  std::string line, name, flags;
  while (std::getline(in, line) && (name.empty() || flags.empty())) {
    // ARM's processors have a number in place of a name.
    if (name.empty() && (line.starts_with("model name") || line.starts_with("CPU part")))
      name = line.substr(line.find(':') + 1);
    if (flags.empty() && line.starts_with("flags")) {
      flags = line.find(" avx512f") != std::string::npos ? " avx512" : " ";
      if (line.find(" amx_bf16") != std::string::npos) flags += " amx";
    }
  }
  return name + flags;
}

}  // namespace edl
