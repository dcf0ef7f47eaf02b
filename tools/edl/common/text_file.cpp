// SPDX-License-Identifier: Apache-2.0
#include "common/text_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "edl/core/error.hpp"

namespace edl::tool {

std::string read_small_file(std::string const& flag, std::string const& path) {
  if (path == "-") return read_small_file(flag, "/dev/stdin");
  std::error_code failure;
  auto const size = std::filesystem::file_size(path, failure);
  if (failure && failure != std::errc::operation_not_supported && failure != std::errc::is_a_directory &&
      failure != std::errc::not_supported)
    throw usage_error(fmt::format("{}={}: {}", flag, path, failure.message()));
  if (std::filesystem::is_directory(path))
    throw usage_error(fmt::format("{}={}: is a directory, expected a file", flag, path));
  if (!failure && size > 1u << 20) throw usage_error(fmt::format("{}={}: is larger than 1 MiB", flag, path));
  std::ifstream in(path, std::ios::binary);
  if (!in) throw usage_error(fmt::format("{}={}: {}", flag, path, std::strerror(errno)));
  std::string text;
  for (char buffer[4096]; in.read(buffer, sizeof buffer) || in.gcount() > 0;) {
    text.append(buffer, std::size_t(in.gcount()));
    if (text.size() > 1u << 20) throw usage_error(fmt::format("{}={}: is larger than 1 MiB", flag, path));
  }
  return text;
}

void write_output(std::string const& flag, std::string const& path, std::string const& text, bool secret) {
  if (path == "-") {
    fmt::print("{}", text);
    return;
  }
  int const file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, secret ? 0600 : 0666);
  if (file < 0) throw usage_error(fmt::format("{}={}: {}", flag, path, std::strerror(errno)));
  std::FILE* out = ::fdopen(file, "w");
  std::fwrite(text.data(), 1, text.size(), out);
  if (std::fclose(out) != 0) throw error(fmt::format("{}={}: {}", flag, path, std::strerror(errno)));
}

}  // namespace edl::tool
