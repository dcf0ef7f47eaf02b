// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "edl/base/checkpoint/directory.hpp"
#include "edl/base/checkpoint/directory_lock.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/generation.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/json.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/storage_error.hpp"

namespace edl::checkpoint {
namespace detail {

struct later_epoch : error {
  using error::error;
};

// In bytes. The text is padded, so that one write replaces it entirely.
inline constexpr std::size_t lock_text = 1024, longest_lock_name = 100;
inline constexpr int most_writes = 5;  // whose conditions fail, one after the other
// Locked bytes lie beyond the text: some file systems prevent all reads of a range that another process has
// locked.
inline constexpr ::off_t lock_of_command = 1 << 20, lock_of_master = lock_of_command + 1;

/// Identifies the kernel, and the mount of this file in it.
EDL_INLINE std::string machine_of(int fd) {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(in, boot);
  struct stat facts{};
  ::fstat(fd, &facts);
  return fmt::format("{} {}", boot, std::uint64_t(facts.st_dev));
}

EDL_INLINE std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

}  // namespace detail

EDL_INLINE directory_lock::directory_lock(lock_options options) : options_(std::move(options)) {
  std::string const path = options_.directory.path() + "/.edl-lock";
  if (options_.directory.in_bucket()) {
    options_.look *= 10;
    options_.directory.check_conditions(".edl-conditions");
  } else if (fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666); fd_ < 0) {
    throw storage_error(errno, fmt::format("cannot open {}: {}", path, edl::detail::file_reason(errno)));
  }
  try {
    acquire();
  } catch (...) {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    throw;
  }
  keeper_ = std::thread([this] { keep(); });
}

EDL_INLINE directory_lock::~directory_lock() {
  if (keeper_.joinable()) {
    {
      std::lock_guard const guard(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    keeper_.join();
    if (options_.holder != lock_options::part::master) try {
        // If this fails, the next holder finds out by the locks, or by the text that no longer changes.
        if (auto const now = read();
            now && now->owner == self_.owner && (fd_ < 0 || ::ftruncate(fd_, 0) != 0))
          write("");
      } catch (error const&) {
      }
  }
  if (fd_ >= 0) ::close(fd_);
}

EDL_INLINE directory_lock::grip directory_lock::seize(int which, int fd) const {
  if (fd < 0) return grip::unsupported;
  struct flock wanted{};
  wanted.l_type = F_WRLCK;
  wanted.l_whence = SEEK_SET;
  wanted.l_start = which == 0 ? detail::lock_of_command : detail::lock_of_master;
  wanted.l_len = 1;
  while (::fcntl(fd, F_OFD_SETLK, &wanted) != 0) {
    if (errno == EAGAIN || errno == EACCES) return grip::taken;
    if (errno != EINTR) return grip::unsupported;
  }
  return grip::held;
}

EDL_INLINE void directory_lock::acquire() {
  using part = lock_options::part;
  self_.machine = options_.machine.empty() && fd_ >= 0 ? detail::machine_of(fd_) : options_.machine;
  bool decides = true;
  if (options_.holder != part::master) {
    grip const got = seize(0, fd_);
    if (got == grip::taken) refuse(read());
    decides = got == grip::held;
  }
  if (options_.holder != part::command) {
    // The master of a killed command may need a moment to end.
    auto const until = clock::now() + options_.timeout;
    bool announced = false;
    for (grip got = seize(1, fd_); got == grip::taken; got = seize(1, fd_)) {
      if (clock::now() >= until) refuse(read());
      if (!std::exchange(announced, true) && options_.tell)
        options_.tell(
            fmt::format("waits for the master of an earlier start to end ({})", options_.description));
      std::this_thread::sleep_for(options_.look);
    }
  }
  self_.job = printable(options_.job, detail::longest_lock_name);
  self_.host = printable(detail::host_name(), detail::longest_lock_name);
  self_.process = std::uint64_t(::getpid());
  self_.since = fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::time(nullptr)));
  if (options_.holder == part::master) {
    auto const cut = options_.command.find(' ');
    self_.owner = options_.command.substr(0, cut);
    if ((unwritten_ = cut != std::string::npos)) found_ = options_.command.substr(cut + 1);
    return;
  }
  watch_foreign(decides);
  std::random_device device;
  self_.owner = fmt::format("{:016x}", std::uint64_t{device()} << 32 | device());
  try {
    write(text());
  } catch (storage_error const&) {
    if (!decides) throw;
    unwritten_ = true;  // a full disk: the locks hold without it
  }
}

// Returns when the text is not that of a live job.
EDL_INLINE void directory_lock::watch_foreign(bool decides) {
  std::string before, now;
  auto const first = read(&before, &tag_);
  if (first) found_ = first->owner;
  if (!first || (decides && first->machine == self_.machine)) return;
  if (options_.tell)
    options_.tell(fmt::format("{} waits up to {} s to see whether it still runs", describe(first),
                              std::chrono::ceil<std::chrono::seconds>(options_.timeout).count()));
  auto const until = clock::now() + options_.timeout;
  while (clock::now() < until) {
    std::this_thread::sleep_for(options_.look);
    auto const seen = read(&now, &tag_);
    if (!seen) return;  // the job has ended
    if (now != before) refuse(seen);
  }
}

EDL_INLINE std::string directory_lock::text() const {
  nlohmann::json const content{{"job", self_.job},        {"process", self_.process}, {"host", self_.host},
                               {"since", self_.since},    {"owner", self_.owner},     {"beat", self_.beat},
                               {"machine", self_.machine}};
  std::string const all = content.dump();
  invariant(all.size() < detail::lock_text, "names that are cut, and cannot be printed otherwise, fit in");
  return all;
}

EDL_INLINE std::string directory_lock::bytes_of(int fd) const {
  std::array<char, detail::lock_text> bytes{};
  ssize_t n = 0;
  do n = ::pread(fd, bytes.data(), bytes.size(), 0);
  while (n < 0 && errno == EINTR);
  if (n < 0)
    throw storage_error(errno, fmt::format("cannot read {}/.edl-lock: {}", options_.directory.path(),
                                           edl::detail::file_reason(errno)));
  return {bytes.data(), std::size_t(n)};
}

EDL_INLINE std::optional<directory_lock::holder> directory_lock::read(std::string* raw,
                                                                      std::string* tag) const {
  if (fd_ >= 0) return read_text(bytes_of(fd_), raw);
  auto const found = options_.directory.read(".edl-lock", detail::lock_text);
  if (tag) *tag = found ? found->tag : "";
  return read_text(found ? found->content : "", raw);
}

EDL_INLINE std::optional<directory_lock::holder> directory_lock::read_text(std::string const& all,
                                                                           std::string* raw) {
  if (raw) *raw = all;
  if (all.find_first_not_of(" \n") == all.npos) return std::nullopt;
  holder h;
  auto const j = parse_json(all);
  auto const take = [&](char const* name, auto& into) {
    using T = std::remove_reference_t<decltype(into)>;
    if (auto const it = j.find(name); it == j.end())
      return;
    else if constexpr (std::is_same_v<T, std::string>) {
      if (it->is_string()) into = it->template get<std::string>();
    } else if (it->is_number_unsigned()) {
      into = it->template get<T>();
    }
  };
  if (j.is_object()) {
    take("job", h.job), take("process", h.process), take("host", h.host), take("since", h.since);
    take("owner", h.owner), take("beat", h.beat), take("machine", h.machine);
  }
  return h;  // any other text gives empty fields, which belong to no process on this machine
}

EDL_INLINE void directory_lock::write(std::string const& content) const {
  if (fd_ < 0) {
    for (int tries = 1;; ++tries) {
      auto const made = options_.directory.replace(".edl-lock", content, tag_);
      if (made) return void(tag_ = *made);
      auto const now = read(nullptr, &tag_);
      if (tries == detail::most_writes || (now && now->owner != self_.owner)) refuse(now);
    }
  }
  std::string padded = content;
  padded.resize(detail::lock_text - 1, ' ');
  padded += '\n';
  auto const n = ::pwrite(fd_, padded.data(), padded.size(), 0);
  if (n < ssize_t(content.size()))
    throw storage_error(n < 0 ? errno : EIO,
                        fmt::format("cannot write {}/.edl-lock: {}", options_.directory.path(),
                                    edl::detail::file_reason(n < 0 ? errno : EIO)));
}

EDL_INLINE std::string directory_lock::describe(std::optional<holder> const& by) const {
  if (!by || by->job.empty()) return fmt::format("{} is in use by another process;", options_.description);
  return fmt::format("{} is in use by job '{}' (process {} on {}, since {});", options_.description, by->job,
                     by->process, by->host, by->since);
}

EDL_INLINE void directory_lock::refuse(std::optional<holder> const& by) const {
  throw directory_taken(fmt::format("{} wait for its end, stop it, or name another directory", describe(by)));
}

EDL_INLINE std::uint64_t directory_lock::claim() {
  check_text();  // a process that was suspended since it took the directory claims nothing
  {
    std::lock_guard const guard(mutex_);
    lost_.reset();
  }
  epoch_ = newest_epoch(options_.directory) + 1;
  try {
    check_epoch();
  } catch (storage_error const& e) {
    if (options_.tell)
      options_.tell(fmt::format("{}; nothing is written into {} before that can be", e.what(),
                                options_.directory.path()));
    return epoch_;
  }
  check_text();
  return epoch_;
}

EDL_INLINE void directory_lock::check_epoch() const {
  for (int tries = 0; !has_epoch();)
    if (++tries == detail::most_writes)
      throw storage_error(EAGAIN,
                          fmt::format("{}: others write .edl-epoch at the same time", options_.description));
}

/// Whether the claimed epoch is this one's; false: somebody has written while this was to be.
EDL_INLINE bool directory_lock::has_epoch() const {
  if (epoch_ == 0) return true;
  auto const claimed = read_epoch(options_.directory);
  // If the file is lost, the checkpoints show the epochs of other masters.
  std::uint64_t const newest = claimed.epoch < epoch_ ? newest_epoch(options_.directory) : claimed.epoch;
  if (newest > epoch_)
    throw detail::later_epoch(fmt::format(
        "{} belongs to a later master of the job (epoch {}, this one has {}); nothing more is written there",
        options_.description, newest, epoch_.load()));
  // Two processes may claim one number at once, if locks do not work or one was suspended just before it
  // wrote. The holder of the directory gets it, and no other process claims it again.
  if (claimed.epoch < epoch_ || claimed.owner != self_.owner) {
    check_text();
    return write_epoch(options_.directory, {epoch_, self_.owner, claimed.tag});
  }
  return true;
}

// A lock on a file that was removed from the directory keeps no other process away.
EDL_INLINE void directory_lock::hold_again(std::optional<holder>& taken_by) const {
  using part = lock_options::part;
  std::lock_guard const one(text_mutex_);
  if (fd_ < 0) return;
  std::string const path = options_.directory.path() + "/.edl-lock";
  struct stat ours{}, there{};
  bool const gone = ::stat(path.c_str(), &there) != 0 && errno == ENOENT;
  if (::fstat(fd_, &ours) != 0 && errno != ESTALE) return;
  if (!gone && ours.st_ino == there.st_ino && ours.st_dev == there.st_dev) return;
  std::error_code told_below;
  std::filesystem::create_directories(options_.directory.path(), told_below);
  int const fresh = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fresh < 0)
    throw storage_error(errno, fmt::format("cannot open {}: {}", path, edl::detail::file_reason(errno)));
  std::optional<holder> other;
  bool ours_too = false, taken = false;
  try {
    other = read_text(bytes_of(fresh));
    ours_too = other && other->owner == self_.owner;
    taken = (other && !ours_too) || (options_.holder != part::master && seize(0, fresh) == grip::taken) ||
            (options_.holder != part::command && seize(1, fresh) == grip::taken);
  } catch (error const&) {
    ::close(fresh);
    throw;
  }
  int moved = 0;
  while (!taken && (moved = ::dup3(fresh, fd_, O_CLOEXEC)) < 0 && errno == EINTR) {
  }
  int const why = errno;
  ::close(fresh);
  if (moved < 0)
    throw storage_error(why, fmt::format("cannot lock {} again: {}", path, edl::detail::file_reason(why)));
  if (taken && ours_too) return;  // the same file, on a file system whose inode numbers change
  if (taken) taken_by = other;
  if (taken)
    throw error(fmt::format("{} its lock was removed while this job ran, and nothing more is written there",
                            describe(other)));
  // A command and its master may both be first; either text names this job.
  if (!self_.owner.empty()) write(text());
  if (options_.tell && options_.holder != part::master)
    options_.tell(
        fmt::format("{}: the directory or its .edl-lock was removed while this job runs; taking its lock "
                    "again; earlier checkpoints are gone, later ones are written as before",
                    options_.description));
}

EDL_INLINE void directory_lock::check() const {
  if (auto const before = lost()) throw error(*before);
  std::optional<holder> other;  // of the new lock file; we still hold the old one
  try {
    hold_again(other);
    check_epoch();
    check_text();
  } catch (storage_error const&) {
    throw;  // the error may be transient, and another process that wants the directory meets it, too
  } catch (std::exception const& e) {
    try {
      if (!other) other = read();
    } catch (error const&) {
    }
    // If the text cannot be read, or names no holder any more, a later epoch belongs to a successor.
    bool const ours =
        other ? other->job == self_.job : dynamic_cast<detail::later_epoch const*>(&e) != nullptr;
    // A command's master has no successors except those that the command starts.
    bool const same = ours && options_.holder != lock_options::part::master;
    std::lock_guard const guard(mutex_);
    superseded_ = same;
    if (!lost_) lost_ = e.what();
    throw;
  }
}

EDL_INLINE void directory_lock::check_text() const {
  std::string tag;
  auto now = read(nullptr, &tag);
  if (fd_ < 0 && tag.empty() && !self_.owner.empty()) {  // somebody has removed the object
    std::lock_guard const one(text_mutex_);
    tag_.clear();
    return write(text());
  }
  // A text that the holder is still writing reads as no holder's.
  for (int again = 0; again < 10 && now && now->owner.empty(); ++again) {
    std::this_thread::sleep_for(options_.look);
    now = read();
  }
  // The old text, if it could not be overwritten yet, is not news.
  if (self_.owner.empty() || (unwritten_ && (!now || now->owner == found_)) ||
      (now && (now->owner.empty() || now->owner == self_.owner)))
    return;
  throw error(
      fmt::format("{} this job was suspended and has lost it; nothing more is written there", describe(now)));
}

EDL_INLINE std::string directory_lock::name() const {
  return unwritten_ ? self_.owner + " " + found_ : self_.owner;
}

EDL_INLINE std::optional<std::string> directory_lock::lost() const {
  std::lock_guard const guard(mutex_);
  return lost_;
}

EDL_INLINE void directory_lock::keep() {
  std::unique_lock guard(mutex_);
  while (!changed_.wait_for(guard, options_.beat, [&] { return ending_; })) {
    // Storage may be slow, and `lost` must not wait for it.
    guard.unlock();
    try {
      check();
      if (options_.holder != lock_options::part::master) {
        std::lock_guard const one(text_mutex_);
        ++self_.beat;
        write(text());
        unwritten_ = false;
      }
    } catch (std::exception const&) {
      // An error of storage may be transient; otherwise `lost` reports it.
    }
    guard.lock();  // a lost lock may be claimed again, and then needs its heartbeats
  }
}

}  // namespace edl::checkpoint
