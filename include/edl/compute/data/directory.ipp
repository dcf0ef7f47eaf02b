// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "edl/compute/data/directory.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::data::detail {

EDL_INLINE listing list_directory(std::string const& directory) {
  listing all;
  std::error_code failure;
  auto it = std::filesystem::directory_iterator(directory, failure);
  for (; !failure && it != std::filesystem::directory_iterator(); it.increment(failure)) {
    auto name = it->path().filename().string();
    if (name.starts_with('.')) continue;
    std::error_code unknown;  // for a dangling link, which will fail when it is opened
    (it->is_directory(unknown) ? all.folders : all.files).push_back(std::move(name));
  }
  if (failure) throw error(fmt::format("{}: cannot be listed: {}", directory, failure.message()));
  std::ranges::sort(all.files);
  std::ranges::sort(all.folders);
  return all;
}

EDL_INLINE bool ends_as(std::string_view name, std::string_view ending) {
  auto const same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? char(a + 32) : a) == b; };
  return name.size() >= ending.size() &&
         std::ranges::equal(name.substr(name.size() - ending.size()), ending, same);
}

EDL_INLINE bool clearly_no_data(std::string_view name) {
  static constexpr std::array<std::string_view, 14> endings{
      ".md",  ".txt",    ".json", ".yaml", ".yml",     ".html",     ".log",
      ".md5", ".sha256", ".crc",  ".tmp",  ".partial", "thumbs.db", "desktop.ini"};
  return name.starts_with('_') || name.starts_with("README") || name.starts_with("LICENSE") ||
         std::ranges::any_of(endings, [&](auto e) { return ends_as(name, e); });
}

EDL_INLINE std::vector<std::string> matching_paths(std::string const& pattern) {
  struct matches : ::glob_t {
    matches() : ::glob_t{} {}
    ~matches() { ::globfree(this); }
  } found;
  if (int const failed = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
      failed != 0 && failed != GLOB_NOMATCH)
    throw error(fmt::format("{}: the files cannot be listed", pattern));
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  std::ranges::sort(paths);
  return paths;
}

EDL_INLINE bool is_pattern(std::string_view path) { return path.find_first_of("*?[") != path.npos; }

}  // namespace edl::data::detail
