// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "edl/core/random.hpp"
#include "scratch_directory.hpp"
#include "text.hpp"

namespace support {

using ::scratch;

inline constexpr auto& read = ::slurp;
inline constexpr auto& has = ::contains;

/// `complaint`. Anything but an edl::error escapes, and fails the test.
template <class Act>
std::string failure(Act&& act) {
  return complaint(act);
}

inline std::string write(std::string const& path, std::string_view bytes) {
  auto const directory = std::filesystem::path(path).parent_path();
  if (!std::filesystem::exists(directory)) std::filesystem::create_directories(directory);
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
  return path;
}

/// The same as a new file: over and over into one, some file systems flush to the disk each time.
inline std::string write_anew(std::string const& path, std::string_view bytes) {
  std::filesystem::remove(path);
  return write(path, bytes);
}

inline std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(char(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

/// Where the data sets are, with the folder that is asked for; empty, with a message, if this machine has
/// none.
inline std::string data_sets(std::string const& folder) {
  char const* const root = std::getenv("EDL_TEST_DATA");
  std::string const path = root ? std::string(root) + "/" + folder : "";
  if (path.empty() || !std::filesystem::exists(path)) {
    MESSAGE("skipped: EDL_TEST_DATA names no directory with " << folder);
    return {};
  }
  return path;
}

/// Bytes damaged in one to four ways: flipped, cut, doubled, overwritten with extreme numbers.
inline std::string mutate(std::string bytes, edl::random_stream const& random) {
  std::uint64_t drawn = 0;
  auto const below = [&](std::uint64_t n) { return std::size_t(random.below(n ? n : 1, drawn++)); };
  for (auto rounds = 1 + below(4); rounds > 0; --rounds) {
    auto const at = below(bytes.size());
    switch (below(6)) {
      case 0:
        if (!bytes.empty()) bytes[at] = char(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes.resize(at);
        break;
      case 2:
        bytes.insert(at, bytes.substr(below(bytes.size()), below(40)));
        break;
      case 3:
        bytes.erase(at, below(8));
        break;
      case 4:
        for (std::size_t i = at; i < bytes.size() && i < at + 4; ++i) bytes[i] = char(0xFF);
        break;
      default:
        if (!bytes.empty()) bytes[at] = char(below(256));
    }
  }
  return bytes;
}

}  // namespace support
