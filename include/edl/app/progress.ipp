// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "edl/app/progress.hpp"
#include "edl/core/inline.hpp"

namespace edl::app {

EDL_INLINE std::string describe(master::job_progress const& p, double records_per_second) {
  auto const of = [](std::uint64_t done, std::optional<std::uint64_t> total) {
    return total ? fmt::format("{}/{}", done, *total) : fmt::to_string(done);
  };
  std::string text = fmt::format(
      "tasks {}, records {}, {:.0f} records/s, loss {:.4g}, version {}", of(p.done.tasks_done, p.total_tasks),
      of(p.done.records_done, p.total_records), records_per_second, p.loss, p.version);
  if (p.total_records && records_per_second > 0 && *p.total_records > p.done.records_done) {
    auto const seconds = std::uint64_t(double(*p.total_records - p.done.records_done) / records_per_second);
    text += fmt::format(", {}:{:02} left", seconds / 60, seconds % 60);
  }
  return text;
}

EDL_INLINE void progress_view::update(master::job_progress const& p, time_point now) {
  using namespace std::chrono_literals;
  if (first_ == time_point{}) {
    first_ = last_ = now;
    records_at_first_ = p.done.records_done;
    return;
  }
  if (now - last_ < (terminal_ ? 250ms : 10000ms)) return;
  last_ = now;
  if (p.done.records_done < records_at_first_)
    records_at_first_ = p.done.records_done, first_ = now;  // rolled back
  double const seconds = std::chrono::duration<double>(now - first_).count();
  double const mean = seconds > 0 ? double(p.done.records_done - records_at_first_) / seconds : 0;
  std::string line = describe(p, p.rate > 0 ? p.rate : mean);
  if (!terminal_) {
    log_.info(line);
    return;
  }
  winsize size{};
  if (::ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 && line.size() >= size.ws_col)
    line.resize(size.ws_col - 1u);
  line = "\r\x1b[K" + line;
  shown_ = ::write(2, line.data(), line.size()) > 0;
}

EDL_INLINE void progress_view::clear() {
  if (shown_) shown_ = ::write(2, "\r\x1b[K", 4) < 0;
}

}  // namespace edl::app
