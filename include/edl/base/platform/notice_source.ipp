// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "edl/base/platform/cloud_notice.hpp"
#include "edl/base/platform/notice_source.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"
#include "edl/core/wall_time.hpp"

namespace edl::platform {
namespace detail {

class notice_file final : public notice_source {
 public:
  explicit notice_file(std::string path) : path_(std::move(path)) {}

  report look(std::function<bool()> const&) override {
    // Without O_NONBLOCK a pipe of that name would be waited for.
    int const file = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) {
      bool const absent = errno == ENOENT || errno == ENOTDIR;
      // A file that this process may not read is there all the same.
      return {.answered = absent || errno == EACCES, .notice = errno == EACCES ? exists() : ""};
    }
    std::array<char, 256> some{};
    auto const n = ::read(file, some.data(), some.size());
    ::close(file);
    std::string_view const text = trimmed({some.data(), std::size_t(n > 0 ? n : 0)});
    if (text.empty()) return {true, exists()};
    auto time = seconds_of(text);
    if (!time) time = number_from<double>(text);
    if (time && *time >= 0 && *time < 1e11)
      return {true, fmt::format("file {} says that its machine goes at {}", path_, stamp_of(*time))};
    return {true, fmt::format("file {} says '{}'", path_, printable(text, 160))};
  }

  std::chrono::milliseconds interval() const override { return std::chrono::seconds(1); }
  std::string name() const override { return "file " + path_; }

 private:
  std::string exists() const { return fmt::format("file {} exists", path_); }

  std::string path_;
};

}  // namespace detail

EDL_INLINE std::unique_ptr<notice_source> make_notice_source(std::string const& text,
                                                             variable_reader const& variable) {
  if (text == "off") return nullptr;
  if (text.starts_with("file:") && text.size() > 5)
    return std::make_unique<detail::notice_file>(text.substr(5));
  if (auto cloud = make_cloud_source(text, variable)) return cloud;
  throw usage_error(fmt::format("--preemption_notice={}: expected auto, aws, gcp, azure, file:PATH or off",
                                printable(text, 200)));
}

}  // namespace edl::platform
