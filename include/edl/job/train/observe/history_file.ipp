// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "edl/core/counted.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"
#include "edl/core/storage_error.hpp"
#include "edl/job/train/observe/history_file.hpp"

namespace edl::train {
namespace detail {

inline constexpr std::uint64_t longest_history_file = 256u << 20;  // bytes
inline constexpr std::chrono::seconds after_failure{10};           // of a store, without new lines

struct history_line {
  history_file::kind series;
  std::uint64_t step;
};

/// Parses a line of a history; nothing if it is not one.
inline std::optional<history_line> read_history_line(std::string_view text) {
  nlohmann::json const line = parse_json(text);
  if (!line.is_object() || !line.contains("step") || !line["step"].is_number_unsigned()) return std::nullopt;
  return history_line{
      line.contains("metrics") ? history_file::kind::evaluation : history_file::kind::training,
      line["step"].get<std::uint64_t>()};
}

}  // namespace detail

EDL_INLINE history_file::history_file(std::string path, logger log, bucket::place const& like,
                                      history_pace how)
    : path_(std::move(path)), log_(std::move(log)), pace_(std::move(how)) {
  auto const slash = path_.rfind('/');
  place_ = like.at(slash == path_.npos ? "." : path_.substr(0, slash));
  name_ = path_.substr(slash + 1);  // or all
  if (!path_.empty()) thread_ = std::thread([this] { run(); });
}

EDL_INLINE history_file::~history_file() {
  if (path_.empty()) return;
  {
    std::lock_guard const lock(mutex_);
    over_ = true;
    ++added_;
  }
  work_added_.notify_one();
  thread_.join();
  for (work const& w : waiting_) lost_ += !w.drops_later;
  lost_ += unsaved_ + dropped_;
  if (lost_ > 0) log_.warning(fmt::format("{} lacks {}", path_, counted(lost_, "line")));
  if (fd_ >= 0) ::close(fd_);
}

EDL_INLINE void history_file::put(work w) {
  if (path_.empty()) return;
  {
    std::lock_guard const lock(mutex_);
    if (!w.drops_later && waiting_.size() >= most_waiting) {
      ++lost_;
      return;
    }
    waiting_.push_back(std::move(w));
    ++added_;
  }
  work_added_.notify_one();
}

EDL_INLINE void history_file::go_on_from(std::uint64_t step) { put({.drops_later = true, .step = step}); }

EDL_INLINE void history_file::append(kind of, std::uint64_t step, std::string line) {
  put({.series = of, .step = step, .line = std::move(line)});
}

EDL_INLINE void history_file::flush() {
  if (path_.empty()) return;
  std::unique_lock lock(mutex_);
  std::uint64_t const number = ++added_;
  at_once_ = true;
  work_added_.notify_one();
  tried_for_.wait(lock, [&] { return tried_ >= number; });
}

EDL_INLINE void history_file::run() {
  std::unique_lock lock(mutex_);
  for (bool last = false; !last;) {
    auto const more = [this] { return tried_ < added_ || over_; };
    unsaved_ > 0 ? void(work_added_.wait_until(lock, due_, more)) : work_added_.wait(lock, more);
    last = over_;
    bool const at_once = std::exchange(at_once_, false) || last;
    std::uint64_t const number = added_;
    std::deque<work> now = std::exchange(waiting_, {});
    lock.unlock();
    try {
      while (!now.empty()) {
        perform(now.front());
        now.pop_front();
        if (is_part()) try_to_save(false);
      }
      if (unsaved_ > 0) try_to_save(at_once);
      if (unsaved_ == 0 && std::exchange(warned_, false))
        log_.info(fmt::format("{} can be written again", path_));
    } catch (std::exception const& e) {
      if (!std::exchange(warned_, true))
        log_.warning(fmt::format("cannot write the job's history for now: {}", e.what()));
    }
    lock.lock();
    waiting_.insert(waiting_.begin(), std::make_move_iterator(now.begin()),
                    std::make_move_iterator(now.end()));
    tried_ = number;
    tried_for_.notify_all();
  }
}

EDL_INLINE void history_file::perform(work const& w) { w.drops_later ? drop_after(w.step) : write(w); }

EDL_INLINE void history_file::drop_after(std::uint64_t step) {
  any_[0] = any_[1] = false;
  if (!pace_.head.empty()) {  // no line of several objects is taken back
    any_[2] = any_[3] = false;
    return;
  }
  auto const found = unsaved_ > 0 ? std::optional(bucket::place::text{text_, tag_})
                                  : place_.read(name_, detail::longest_history_file);
  if (unsaved_ == 0) saved_ = found ? found->content.size() : 0;
  text_ = found ? found->content : "";
  tag_ = found ? found->tag : "";
  if (!found) return;
  std::string const& text = found->content;
  std::string kept;
  std::uint64_t later = 0, none = 0;
  std::size_t at = 0;
  for (std::size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    std::string_view const line = std::string_view(text).substr(at, end - at);
    auto const read = detail::read_history_line(line);
    if (!read || read->step > step) {
      ++(read ? later : none);
      continue;
    }
    auto const k = std::size_t(read->series);
    last_[k] = any_[k] ? std::max(last_[k], read->step) : read->step;
    any_[k] = true;
    kept.append(line).push_back('\n');
  }
  if (kept == text) return;
  if (place_.in_bucket())
    text_ = kept, unsaved_ = 1;
  else
    place_.put(name_, kept, forced::nothing);
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  if (at < text.size()) log_.info(fmt::format("{}: dropping its truncated last line", path_));
  if (none > 0)
    log_.warning(fmt::format("{}: {} that cannot be read {} dropped", path_, counted(none, "line"),
                             none == 1 ? "is" : "are"));
  if (later > 0)
    log_.info(fmt::format("{}: {} of steps after {} {} dropped, the job goes on from there", path_,
                          counted(later, "line"), step, later == 1 ? "is" : "are"));
}

EDL_INLINE void history_file::write(work const& w) {
  auto const k = std::size_t(w.series);
  if (any_[k] && w.step <= last_[k]) return;
  if (place_.in_bucket()) {
    if (!pace_.head.empty() && text_.size() + w.line.size() > pace_.most_unsaved) return void(++dropped_);
    text_ += w.line;
    ++unsaved_;
    last_[k] = w.step;
    any_[k] = true;
    return;
  }
  // Others may write to the directory, too: do not follow a link, or block on a FIFO.
  if (fd_ < 0)
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
  struct stat facts{};
  if (fd_ < 0 || ::fstat(fd_, &facts) != 0)
    throw storage_error(errno, fmt::format("cannot open {}: {}", path_, edl::detail::file_reason(errno)));
  if (!S_ISREG(facts.st_mode)) {
    ::close(std::exchange(fd_, -1));
    throw error(fmt::format("cannot write {}: it is not a regular file; move it away", path_));
  }
  ssize_t n;
  do n = ::write(fd_, w.line.data(), w.line.size());
  while (n < 0 && errno == EINTR);
  if (n != ssize_t(w.line.size())) {
    int const code = n < 0 ? errno : ENOSPC;
    if (n > 0 && ::ftruncate(fd_, facts.st_size) != 0) ::close(std::exchange(fd_, -1));
    throw storage_error(code, fmt::format("cannot write {}: {}", path_, edl::detail::file_reason(code)));
  }
  last_[k] = w.step;
  any_[k] = true;
}

/// Whether there are enough lines for an object of their own.
EDL_INLINE bool history_file::is_part() const { return !pace_.head.empty() && text_.size() >= pace_.part; }

/// Writes what is kept back, if it is time for that.
EDL_INLINE void history_file::try_to_save(bool now) {
  bool const parts = !pace_.head.empty();
  if (!now && (!is_part() || warned_) && clock::now() < due_) return;
  due_ = clock::now() + detail::after_failure;
  parts ? save_part() : save();
  due_ = clock::now() + (parts ? std::chrono::milliseconds(pace_.pause)
                               : std::chrono::milliseconds(1000 * saved_ / pace_.bytes_per_second));
}

EDL_INLINE void history_file::save_part() {
  place_.put(fmt::format("{}.{:06}", name_, parts_), pace_.head + text_);
  ++parts_;
  text_.clear();
  unsaved_ = 0;
}

EDL_INLINE void history_file::save() {
  auto made = place_.replace(name_, text_, tag_);
  if (!made) {
    // It may have been removed, or be a text of ours whose write was believed to have failed. A successor
    // that goes back leaves a shorter one.
    auto const now = place_.read(name_, detail::longest_history_file);
    if (!now || (now->content.size() > saved_ && text_.starts_with(now->content)))
      made = place_.replace(name_, text_, now ? now->tag : "");
  }
  if (!made) throw error(fmt::format("{}: another process has written it", path_));
  tag_ = *made;
  saved_ = text_.size();
  unsaved_ = 0;
}

}  // namespace edl::train
