// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/text.hpp"
#include "edl/job/checkpoint/directory.hpp"
#include "edl/job/serve/followed_model.hpp"
#include "edl/job/serve/tensor.hpp"
#include "edl/job/train/start.hpp"

namespace edl::serve {
namespace detail {

inline example zeros(std::vector<record_feature> const& inputs) {
  std::vector<tensor> all;
  for (record_feature const& f : inputs) {
    tensor& t = all.emplace_back(tensor_for(f.name, inputs));
    std::size_t n = 1;
    for (std::size_t const e : f.extents) n *= e;
    if (t.kind == example::kind::floats) t.floats.resize(n);
    if (t.kind == example::kind::integers) t.integers.resize(n);
    if (t.kind == example::kind::strings) t.strings.resize(n);
  }
  example record;
  to_record(all, 1, 0, record);
  return record;
}

/// Of what `newest` has found.
inline std::string path_of(std::string const& found) { return found.substr(0, found.rfind('@')); }
inline std::uint64_t version_of(std::string const& found) {
  std::string const name = std::filesystem::path(path_of(found)).filename();
  constexpr std::string_view begin = "version-";
  return name.starts_with(begin)
             ? number_from<std::uint64_t>(std::string_view(name).substr(begin.size())).value_or(0)
             : 0;
}

}  // namespace detail

EDL_INLINE followed_model::followed_model(train::program const& p, options o, logger log,
                                          std::function<void()> changed)
    : program_(p), options_(std::move(o)), log_(std::move(log)), changed_(std::move(changed)) {
  tried_ = newest();  // what it passes over, the loader tells
  again_ = clock::time_point::max();
  all_.push_back({load(options_.path)});
  if (detail::version_of(tried_) > now()->version()) {  // its sizes were right, and nothing else
    ++failed_;
    all_.front().newer_since = clock::now();
    again_ = clock::now() + options_.interval;
    pause_ = options_.interval;
  }
  load_older();
  if (options_.interval.count() > 0) thread_ = std::thread([this] { follow(); });
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
  return all_.front().of;
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

/// Which one it is, and when it was written.
EDL_INLINE std::string followed_model::newest() {
  auto const found = train::find_model(options_.path, checkpoint::check::sizes, {});
  tell(found.warning);
  if (std::exchange(damaged_, found.damaged) != found.damaged && !damaged_.empty()) ++failed_;
  return fmt::format("{}@{}", found.path,
                     std::filesystem::last_write_time(found.path).time_since_epoch().count());
}

/// What hinders it, which each look finds again, is told once.
EDL_INLINE void followed_model::tell(std::string const& what) {
  if (what != told_ && !what.empty() && !all_.empty()) log_.warning(what);
  told_ = what;
}

EDL_INLINE followed_model::model followed_model::load(std::string const& path) const {
  auto made = std::make_shared<prediction_session>(program_, path, options_.predicting);
  example const zeros = detail::zeros(made->inputs());
  for (int rows = 1;; rows = std::min(2 * rows, options_.max_batch)) {
    auto batch = made->take(rows);
    try {
      for (int i = 0; i < rows; ++i) batch.add(zeros);
    } catch (data_error const&) {
      break;  // a feed that asks for more than can be found out is warm after its first records
    }
    batch.run();
    if (rows == options_.max_batch) break;
  }
  return made;
}

/// A process that is started again answers what the one before it did, as far as the files are there.
EDL_INLINE void followed_model::load_older() {
  namespace fs = std::filesystem;
  if (options_.keep == 1 || !fs::is_directory(options_.path)) return;
  auto const paths = checkpoint::valid_checkpoints(options_.path, checkpoint::check::sizes);
  auto it = std::ranges::find(paths, fs::path(now()->path()).filename(),
                              [](std::string const& path) { return fs::path(path).filename(); });
  while (it != paths.end() && ++it != paths.end() && int(all_.size()) < options_.keep) try {
      auto const age = fs::file_time_type::clock::now() - fs::last_write_time(all_.back().of->path());
      all_.push_back({load(*it), clock::now() - std::chrono::duration_cast<clock::duration>(age)});
      log_.info(fmt::format("keeps version {} of {}", all_.back().of->version(), *it));
    } catch (std::exception const& e) {  // a job may have removed it meanwhile
      log_.warning(fmt::format("{}; that version is not kept", e.what()));
    }
}

EDL_INLINE void followed_model::follow() {
  std::unique_lock lock(mutex_);
  auto const pause = [this] {
    // What waits to be freed does not wait for hours.
    bool const all_kept = std::ranges::all_of(all_, &loaded_model::kept);
    return all_kept ? options_.interval : std::min(options_.interval, std::chrono::milliseconds(250));
  };
  while (!ending_.wait_for(lock, pause(), [this] { return over_; })) {
    lock.unlock();
    try {
      let_go();
      look();
    } catch (std::exception const& e) {
      try_later(fmt::format("{}; the model at work stays", e.what()));
    }
    lock.lock();
  }
}

EDL_INLINE void followed_model::try_later(std::string const& what) {
  ++failed_;
  again_ = clock::now() + pause_;
  log_.warning(fmt::format("{}, and it is tried again in {:.3g} s", what,
                           std::chrono::duration<double>(pause_).count()));
  pause_ = std::min<std::chrono::milliseconds>(2 * pause_, std::chrono::minutes(1));
}

/// Drops what no request uses any more: here, as to free a large model would hold up who answers.
EDL_INLINE void followed_model::let_go() {
  std::vector<loaded_model> gone;  // freed without the mutex
  std::lock_guard const lock(mutex_);
  auto const unused = std::ranges::stable_partition(
      all_, [](loaded_model const& m) { return m.kept || m.of.use_count() > 1; });
  gone.assign(std::move_iterator(unused.begin()), std::move_iterator(unused.end()));
  all_.erase(unused.begin(), unused.end());
}

/// Beside one whose sizes alone were right: the newest that is whole, if it is newer than the one at work.
EDL_INLINE followed_model::model followed_model::load_whole() const {
  auto const found = train::find_model(options_.path, checkpoint::check::checksums, {});
  if (found.path == now()->path()) return {};
  auto next = load(found.path);
  return next->version() > now()->version() ? next : model{};
}

EDL_INLINE void followed_model::look() {
  std::string found;
  bool older = false;
  try {
    found = newest();
    // What is damaged by now is whole in memory: an older one is no better.
    older = !damaged_.empty() && detail::version_of(found) < now()->version();
  } catch (std::exception const& e) {
    // A job that begins anew has no model for a while.
    return tell(fmt::format("{}; the model at work stays", e.what()));
  }
  bool const is_newest = older ? damaged_ == now()->path()
                               : found == tried_ && again_ == clock::time_point::max() && damaged_.empty();
  {
    std::lock_guard const lock(mutex_);
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
    try_later(fmt::format("{}; {} is taken instead", e.what(), next->path()));
  }
  log_.info(fmt::format("serves version {} of {}", next->version(), next->path()));
  {
    std::lock_guard const lock(mutex_);
    int kept = 1;
    for (loaded_model& m : all_)
      m.kept = m.kept && m.of->version() != next->version() && kept++ < options_.keep;
    all_.insert(all_.begin(), loaded_model{std::move(next)});
  }
  let_go();
  ++loaded_;
  if (changed_) changed_();
}

}  // namespace edl::serve
