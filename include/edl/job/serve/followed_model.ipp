// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <utility>

#include "edl/base/bucket/cache.hpp"
#include "edl/base/checkpoint/directory.hpp"
#include "edl/base/checkpoint/manifest.hpp"
#include "edl/base/checkpoint/safetensors.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/input_file.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/storage_error.hpp"
#include "edl/job/serve/followed_model.hpp"
#include "edl/job/train/setup/start.hpp"

namespace edl::serve {
namespace detail {

/// Identifies the content of a model's file, or of a checkpoint's manifest: device, inode, size, change time,
/// and a CRC of its first and last bytes, which include checksums of the content. Times alone may be equal,
/// because images, rsync and package managers set them.
inline std::string state_of(std::string const& model) {
  namespace fs = std::filesystem;
  std::string const path = fs::is_directory(model) ? model + "/manifest.json" : model;
  input_file const file(path);
  struct ::stat is{};
  if (::stat(path.c_str(), &is) != 0)
    throw storage_error(errno, fmt::format("cannot inspect {}: {}", path, edl::detail::file_reason(errno)));
  std::array<std::byte, 4096> piece;
  uLong crc = 0;
  for (std::uint64_t const at :
       {std::uint64_t(0), file.size() - std::min<std::uint64_t>(file.size(), piece.size())}) {
    auto const some =
        std::span(piece).first(std::size_t(std::min<std::uint64_t>(piece.size(), file.size() - at)));
    file.read(at, some);
    crc = ::crc32_z(crc, reinterpret_cast<Bytef const*>(some.data()), some.size());
  }
  return fmt::format("{}-{}-{}-{}.{:09}-{:08x}", is.st_dev, is.st_ino, is.st_size, is.st_ctim.tv_sec,
                     is.st_ctim.tv_nsec, crc);
}

/// The path in a result of `newest`.
inline std::string path_of(std::string const& found) { return found.substr(0, found.rfind('@')); }
/// The position of a checkpoint; empty if it is none, or cannot be read.
inline position position_of(std::string const& path) try {
  std::error_code unknown;
  return std::filesystem::is_directory(path, unknown) ? checkpoint::read_manifest(path).at() : position();
} catch (error const&) {
  return {};
}

}  // namespace detail

EDL_INLINE followed_model::followed_model(train::program const& p, options o, logger log,
                                          std::function<void()> changed)
    : program_(p), options_(std::move(o)), log_(std::move(log)), changed_(std::move(changed)) {
  if (options_.wait && !is_there()) {
    missing_ = fmt::format("no model in {} yet", options_.path);
    log_.warning(fmt::format("{}: waiting for one", missing_));
  } else {
    find_first();
  }
  // A missing model is polled for even if newer ones are not wanted later.
  if (options_.interval.count() > 0 || !missing_.empty()) thread_ = std::thread([this] { follow(); });
}

/// Whether there is anything to read: the directory may be missing, or have no checkpoint yet.
EDL_INLINE bool followed_model::is_there() const {
  if (bucket::names_objects(options_.path)) try {
      train::find_model(options_.path, checkpoint::check::sizes, {});
      return true;
    } catch (train::no_model const&) {
      return false;
    }
  namespace fs = std::filesystem;
  std::error_code code;
  auto const status = fs::status(options_.path, code);
  if (status.type() == fs::file_type::not_found) return false;
  if (!fs::is_directory(status) || fs::exists(options_.path + "/manifest.json", code) ||
      fs::exists(options_.path + "/model.safetensors", code) ||
      fs::exists(options_.path + "/" + checkpoint::model_index, code))
    return true;
  auto const found = checkpoint::find_checkpoint(options_.path, checkpoint::check::sizes);
  return found.newest || !found.passed_over.empty();
}

EDL_INLINE void followed_model::find_first() {
  tried_ = newest();  // the loader logs what this skips
  again_ = clock::time_point::max();
  loaded_model first{load(options_.path)};
  {
    std::lock_guard const lock(mutex_);
    invariant(all_.empty(), "the first model is found once");
    all_.push_back(std::move(first));
    missing_.clear();
  }
  at_ = detail::position_of(now()->path());
  if (detail::position_of(detail::path_of(tried_)) > at_) {  // its sizes were right, but it is damaged
    ++failed_;
    std::lock_guard const lock(mutex_);
    all_.front().newer_since = clock::now();
    again_ = clock::now() + options_.interval;
    pause_ = options_.interval;
  }
  load_older();
}

EDL_INLINE followed_model::~followed_model() {
  {
    std::lock_guard const lock(mutex_);
    over_ = true;
  }
  ending_.notify_all();
  if (thread_.joinable()) thread_.join();
}

EDL_INLINE followed_model::model followed_model::now() const {
  std::lock_guard const lock(mutex_);
  return all_.empty() ? model() : all_.front().of;
}

EDL_INLINE std::string followed_model::missing() const {
  std::lock_guard const lock(mutex_);
  return missing_;
}

EDL_INLINE std::vector<followed_model::model> followed_model::kept() const {
  std::lock_guard const lock(mutex_);
  std::vector<model> kept;
  for (loaded_model const& m : all_)
    if (m.kept) kept.push_back(m.of);
  return kept;
}

EDL_INLINE double followed_model::lag(prediction_session const* of) const {
  std::lock_guard const lock(mutex_);
  auto const it = std::ranges::find_if(all_, [&](loaded_model const& m) { return !of || m.of.get() == of; });
  return it == all_.end() || it->newer_since == never
             ? 0
             : std::chrono::duration<double>(clock::now() - it->newer_since).count();
}

/// Identifies the model and its content.
EDL_INLINE std::string followed_model::newest() {
  auto const found = train::find_model(options_.path, checkpoint::check::sizes, {});
  tell(found.warning);
  if (std::exchange(damaged_, found.damaged) != found.damaged && !damaged_.empty()) ++failed_;
  return fmt::format("{}@{}", found.path, detail::state_of(found.path));
}

/// Logs an obstacle once, although each look finds it again.
EDL_INLINE void followed_model::tell(std::string const& what) {
  if (what != told_ && !what.empty() && !all_.empty()) log_.warning(what);
  told_ = what;
}

EDL_INLINE followed_model::model followed_model::load(std::string const& path) const {
  auto made = std::make_shared<prediction_session>(program_, path, options_.predicting);
  made->warm_up(options_.max_batch);
  if (std::string const& why = made->inputs_unknown(); !why.empty())
    log_.warning(fmt::format(
        "{} does not list its inputs, and `feed` rejects zeros and empty strings ({}): inputs beyond those "
        "found may exist, so any are accepted; a model trained by this version lists them",
        made->path(), why));
  return made;
}

/// A restarted process serves the versions that the previous one did, as far as their files exist.
EDL_INLINE void followed_model::load_older() {
  namespace fs = std::filesystem;
  std::error_code unknown;
  if (options_.keep == 1 || !fs::is_directory(options_.path, unknown)) return;
  auto const paths = checkpoint::valid_checkpoints(options_.path, checkpoint::check::sizes);
  auto it = std::ranges::find(paths, fs::path(now()->path()).filename(),
                              [](std::string const& path) { return fs::path(path).filename(); });
  while (it != paths.end() && ++it != paths.end() && int(all_.size()) < options_.keep) try {
      auto const age = fs::file_time_type::clock::now() - fs::last_write_time(all_.back().of->path());
      loaded_model older{load(*it), clock::now() - std::chrono::duration_cast<clock::duration>(age)};
      {
        std::lock_guard const lock(mutex_);
        all_.push_back(std::move(older));
      }
      log_.info(fmt::format("keeps version {} of {}", all_.back().of->version(), *it));
    } catch (std::exception const& e) {  // the job may have removed it meanwhile
      log_.warning(fmt::format("{}; that version is discarded", e.what()));
    }
}

EDL_INLINE void followed_model::follow() {
  std::unique_lock lock(mutex_);
  auto const pause = [this] {
    // A model that waits to be freed must not wait for hours.
    bool const all_kept = std::ranges::all_of(all_, &loaded_model::kept);
    auto const wanted = options_.interval.count() > 0 ? options_.interval : std::chrono::milliseconds(250);
    return all_kept ? wanted : std::min(wanted, std::chrono::milliseconds(250));
  };
  while (!ending_.wait_for(lock, pause(), [this] { return over_; })) {
    lock.unlock();
    try {
      if (!missing().empty()) {
        if (clock::now() >= again_ && is_there()) find_first();
        if (!missing().empty()) {
          lock.lock();
          continue;
        }
        log_.info(fmt::format("serves version {} of {}", now()->version(), now()->path()));
        if (changed_) changed_();
        if (options_.interval.count() == 0) return;
      }
      let_go();
      look();
    } catch (std::exception const& e) {
      if (std::string const before = missing(); !before.empty()) {
        std::string const why = fmt::format("a model cannot be read yet: {}", e.what());
        if (why != before) log_.warning(why);
        pause_ = std::clamp<std::chrono::milliseconds>(2 * pause_, std::chrono::milliseconds(250),
                                                       std::chrono::minutes(1));
        again_ = clock::now() + pause_;
        std::lock_guard const guard(mutex_);
        missing_ = why;
      } else {
        try_later(fmt::format("{}; keeping the current model", e.what()));
      }
    }
    lock.lock();
  }
}

EDL_INLINE void followed_model::try_later(std::string const& what) {
  ++failed_;
  again_ = clock::now() + pause_;
  log_.warning(fmt::format("{}; retrying in {:.3g} s", what, std::chrono::duration<double>(pause_).count()));
  pause_ = std::min<std::chrono::milliseconds>(2 * pause_, std::chrono::minutes(1));
}

/// Drops models that no request uses any more. On this thread, because freeing a large model would delay
/// replies.
EDL_INLINE void followed_model::let_go() {
  std::vector<loaded_model> gone;  // freed without the mutex
  std::lock_guard const lock(mutex_);
  auto const unused = std::ranges::stable_partition(
      all_, [](loaded_model const& m) { return m.kept || m.of.use_count() > 1; });
  gone.assign(std::move_iterator(unused.begin()), std::move_iterator(unused.end()));
  all_.erase(unused.begin(), unused.end());
  invariant(!all_.empty() && all_.front().kept, "the current model is kept");
}

/// If a model has the right sizes but is damaged: loads the newest intact one, if it is newer than the
/// current one.
EDL_INLINE followed_model::model followed_model::load_whole() const {
  auto const found = train::find_model(options_.path, checkpoint::check::checksums, {});
  if (found.path == now()->path()) return {};
  auto next = load(found.path);
  return detail::position_of(found.path) > at_ ? next : model{};
}

EDL_INLINE void followed_model::look() {
  std::string found;
  bool older = false;
  try {
    found = newest();
    // If the current model's file is damaged by now, it is still intact in memory: do not take an older one.
    older = !damaged_.empty() && detail::position_of(detail::path_of(found)) < at_;
  } catch (std::exception const& e) {
    // A job that starts over has no model for a while.
    return tell(fmt::format("{}; keeping the current model", e.what()));
  }
  bool const is_newest = older ? damaged_ == now()->path()
                               : found == tried_ && again_ == clock::time_point::max() && damaged_.empty();
  {
    std::lock_guard const lock(mutex_);
    invariant(!all_.empty(), "only a server with a model looks for a newer one");
    clock::time_point& since = all_.front().newer_since;
    since = is_newest ? never : std::min(since, clock::now());
  }
  if (older || (found == tried_ && clock::now() < again_)) return;
  if (found != tried_) pause_ = options_.interval;
  tried_ = found;
  again_ = clock::time_point::max();
  model next;
  try {
    next = load(detail::path_of(found));
  } catch (error const& e) {
    next = load_whole();
    if (!next) throw;
    try_later(fmt::format("{}; using {} instead", e.what(), next->path()));
  }
  invariant(next != nullptr, "a served model has been read");
  at_ = detail::position_of(next->path());
  log_.info(fmt::format("serves version {} of {}", next->version(), next->path()));
  {
    std::lock_guard const lock(mutex_);
    int kept = 1;
    for (loaded_model& m : all_)
      m.kept = m.kept && m.of->version() != next->version() && kept++ < options_.keep;
    ++loaded_;  // before any other thread sees it
    all_.insert(all_.begin(), loaded_model{std::move(next)});
    invariant(std::ranges::count_if(all_, &loaded_model::kept) <= std::max(options_.keep, 1),
              "no more versions are kept than --keep_versions allows");
  }
  let_go();
  if (changed_) changed_();
}

}  // namespace edl::serve
