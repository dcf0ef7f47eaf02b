// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace edl::cuda_library {

/// Compiles CUDA C++ with NVRTC, the library that is there when a program runs (`libnvrtc.so.13` or `.so.12`,
/// or as EDL_NVRTC_LIBRARY names it), and keeps what it made in a directory. Files there are named by a hash
/// of everything that decides about their content. They are replaced atomically, so that processes may share
/// the directory; a damaged one is compiled again. The directory holds at most `most_files`: the oldest are
/// removed. Thread safety: distinct objects: safe.
class compiler {
 public:
  static constexpr std::size_t most_files = 512;

  /// `architecture`: as 90 for compute capability 9.0. `directory`: empty: none is kept.
  compiler(int architecture, bool half, std::string directory)
      : architecture_(architecture), half_(half), directory_(std::move(directory)) {}

  /// Machine code of the GPU. `name` says for what, in errors. Throws edl::error with NVRTC's words if the
  /// source does not compile, or what is missing where there is no NVRTC.
  std::string compile(std::string const& source, std::string_view name) const;

 private:
  std::string make(std::string const& source, std::string_view name) const;

  int architecture_;
  bool half_;
  std::string directory_;
};

}  // namespace edl::cuda_library
