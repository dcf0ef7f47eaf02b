// SPDX-License-Identifier: Apache-2.0
#include "cluster/log_lines.hpp"

#include "cluster/pods.hpp"

namespace edl::tool {

std::string log_place::since() const {
  return text_.empty() ? "" : text_.substr(0, text_.find_first_of(".Z")) + "Z";
}

void log_place::reread() { skip_ = at_last_; }

std::optional<std::string> log_place::next(std::string_view line) {
  auto const space = line.find(' ');
  std::string const stamp(line.substr(0, space));
  auto const when = parse_time(stamp);
  if (!when) return std::string(line);
  if (!text_.empty()) {
    if (*when < last_) return std::nullopt;
    if (*when == last_ && skip_ > 0) {
      --skip_;
      return std::nullopt;
    }
  }
  at_last_ = *when == last_ && !text_.empty() ? at_last_ + 1 : 1;
  if (*when != last_) skip_ = 0;
  last_ = *when;
  text_ = stamp;
  return std::string(space == line.npos ? "" : line.substr(space + 1));
}

}  // namespace edl::tool
