// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/base/bucket/place.hpp"

namespace edl::train {

/// The runs below a directory: every directory with a `history.jsonl`, and the trials of a `sweep.json`
/// beside them. It detects changes by a file's size and time, and then reads only its end. Of a bucket it
/// lists the objects, but passes over most of what lies in a run's folder, and reads those whose tags have
/// changed. Thread safety: unsafe.
class run_list {
 public:
  static constexpr std::size_t most = 100'000;  ///< runs; more of them are left out
  static constexpr std::size_t most_listed =
      200'000;  ///< objects of a bucket that a search lists; more: an error

  /// `depth`: levels of directories to search below the first one.
  explicit run_list(bucket::place directory, int depth = 5)
      : place_(std::move(directory)), directory_(place_.path()), depth_(depth) {}

  /// The runs by name, a one-line JSON object each. A name is the path without a final "/checkpoints", made
  /// printable, and numbered if two print alike. The object has `id`, `step`, `loss`, `metrics`, `time` and
  /// other fields of the last lines; the `hyperparameters` of a trial, and of a run whose newest checkpoint
  /// has them; and why a trial failed. Skips directories that cannot be read. Throws error if a bucket
  /// cannot be listed, or the store does not reply.
  std::map<std::string, std::string> const& look();

  /// All lines of a run's history as a JSON array; beyond some thousand every second one is dropped. Empty:
  /// there is no run with this name, even after a new search. Throws error if an object cannot be read.
  std::string lines_of(std::string const& id);

  /// Of the last search: why an object in a bucket cannot be read, the first one; empty: all can. Its run has
  /// the facts of earlier searches.
  std::string const& problem() const { return problem_; }

  bool complete() const { return files_.size() < most; }

 private:
  struct file {
    std::string id, path, text;  // `text`: what its end tells, without the last '}'
    std::string tag;             // of an object
    std::string manifest;        // in a bucket, that the hyperparameters are of
    std::optional<std::string> hyperparameters;
    std::uint64_t size = 0;
    std::int64_t time = 0;
    bool seen = false;
  };

  struct sweep {
    std::string text, tag;            // of its file
    std::vector<std::string> trials;  // fields of an object, without braces
    bool seen = false;
  };

  void search(std::string const& below, int depth);
  bool take(std::string_view below, std::string const& path);  // whether it is a history
  file* named(std::string_view below, std::string const& path);
  static void fill(file& one, std::string_view end);
  void search_bucket();
  void add_trials(std::string const& below, std::string text);

  bucket::place place_;
  std::string directory_;
  int depth_;
  std::map<std::string, file> files_;    // by id
  std::map<std::string, sweep> sweeps_;  // by the directory
  std::map<std::string, std::string> rows_;
  std::string problem_;
};

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/observe/run_list.ipp"
#endif
