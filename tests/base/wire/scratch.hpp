// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "edl/core/layout.hpp"
#include "scratch_directory.hpp"
#include "text.hpp"

inline void spill(std::string const& path, std::string const& content) {
  std::ofstream(path, std::ios::binary) << content;
}

inline std::vector<std::string> entries(std::string const& directory) {
  std::vector<std::string> names;
  for (auto const& entry : std::filesystem::directory_iterator(directory))
    names.push_back(entry.path().filename());
  return names;
}

/// Runs `act` in a child that may write files of at most `bytes` each. `dies`: at that byte the kernel kills
/// it, as a crash would; otherwise its writes fail, as on a full disk. Returns the status that `waitpid`
/// gives.
template <class Act>
int with_limited_files(rlim_t bytes, bool dies, Act&& act) {
  pid_t const child = ::fork();
  if (child == 0) {
    rlimit const limit{bytes, bytes}, none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, dies ? SIG_DFL : SIG_IGN);
    ::_exit(act());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

/// Variables of odd sizes: 45 + 5 + 5 + 84 parameters, 2 × 5 carried.
inline edl::parameter_layout odd_layout() {
  return {{{"conv2d_1/kernel", {3, 3, 1, 5}, 0},
           {"conv2d_1/bias", {5}, 45},
           {"batch_norm_1/scale", {5}, 50},
           {"dense_1/kernel", {12, 7}, 55},
           {"batch_norm_1/mean", {5}, 139},
           {"batch_norm_1/variance", {5}, 144}},
          139,
          10};
}
