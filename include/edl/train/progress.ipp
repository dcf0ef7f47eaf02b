// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "edl/core/inline.hpp"
#include "edl/train/progress.hpp"

namespace edl::train {

EDL_INLINE std::string describe(master::job_progress const& p, double records_per_second) {
  auto const of = [](std::uint64_t done, std::optional<std::uint64_t> total) {
    return total ? fmt::format("{}/{}", done, *total) : fmt::to_string(done);
  };
  std::string text =
      fmt::format("tasks {}, records {}, {:.0f} records/s", of(p.done.tasks_done, p.total_tasks),
                  of(p.done.records_done, p.total_records), records_per_second);
  if (p.loss != 0) text += fmt::format(", loss {:.4g}", p.loss);  // nobody tells one of an evaluation
  text += fmt::format(", version {}", p.version);
  if (p.total_records && records_per_second > 0 && *p.total_records > p.done.records_done) {
    auto const seconds = std::uint64_t(double(*p.total_records - p.done.records_done) / records_per_second);
    text += fmt::format(", {}:{:02} left", seconds / 60, seconds % 60);
  }
  return text;
}

EDL_INLINE std::string progress_view::update(master::job_progress const& p, time_point now) {
  using namespace std::chrono_literals;
  if (since_ == time_point{} || p.done.records_done < records_) {  // the first look, or rolled back
    since_ = now;
    records_ = p.done.records_done;
    return {};
  }
  if (now - last_ < (terminal_ ? 250ms : 10000ms)) return {};
  last_ = now;
  // Records are counted by whole tasks, so a rate is worth showing over seconds only.
  if (double const seconds = std::chrono::duration<double>(now - since_).count(); seconds >= 5) {
    double const rate = double(p.done.records_done - records_) / seconds;
    rate_ = rate_ > 0 && rate > 0 ? 0.5 * rate_ + 0.5 * rate : rate;
    since_ = now;
    records_ = p.done.records_done;
  }
  std::string line = describe(p, rate_);
  if (!terminal_) {
    log_.info(line);
    return line;
  }
  winsize size{};
  if (::ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 && line.size() >= size.ws_col)
    line.resize(size.ws_col - 1u);
  std::string const drawn = "\r\x1b[K" + line;
  shown_ = ::write(2, drawn.data(), drawn.size()) > 0;
  return line;
}

EDL_INLINE void progress_view::clear() {
  if (shown_) shown_ = ::write(2, "\r\x1b[K", 4) < 0;
}

}  // namespace edl::train
