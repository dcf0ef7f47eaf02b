// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

/// What a machine tells of its control groups, as files in a folder of a test's own.
struct group_folder {
  std::filesystem::path root = [] {
    std::string name = (std::filesystem::temp_directory_path() / "edl-cgroup-XXXXXX").string();
    return std::filesystem::path(::mkdtemp(name.data()));
  }();
  ~group_folder() { std::filesystem::remove_all(root); }
  void write(std::string const& name, std::string const& text) const {
    std::filesystem::create_directories((root / name).parent_path());
    std::ofstream(root / name) << text;
  }
};
