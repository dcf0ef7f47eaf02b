// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "edl/core/random.hpp"
#include "edl/job/train/prediction/decoder.hpp"
#include "edl/job/train/prediction/sampling.hpp"

namespace edl::train {

/// Sequences of ids that a model continues, side by side: each pass has a row of each, and rows of prompts
/// that have yet to be read. A sequence begins and ends at any time, and its ids do not depend on the others.
///
/// When a sequence is as long as the model's places, the model goes on with the last half of it.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class generation_batch {
 public:
  /// `rows`, `sequences`: what `with` was made for. It makes only ids below `ids`.
  generation_batch(std::unique_ptr<decoder> with, int rows, int sequences, int ids = 1 << 30);

  int sequences() const { return int(all_.size()); }
  bool idle() const;  ///< no sequence goes on

  /// Begins a sequence with this text, and returns its number; empty if there is no room for one. Throws
  /// usage_error if the text is empty or longer than the model's places, error for an id that is out of
  /// range.
  std::optional<int> begin(std::vector<std::int32_t> text, sampling_options const& by);

  /// Ends a sequence: its number is free.
  void end(int sequence);

  /// Whether the model has yet to see only a part of the sequence's text.
  bool forgot(int sequence) const { return all_[std::size_t(sequence)].forgot; }

  /// Computes a pass, and calls hear(sequence, id) for each sequence whose next id is known. It may end
  /// sequences, and begin none. Not for an idle batch.
  void step(std::function<void(int sequence, std::int32_t id)> const& hear);

 private:
  struct sequence {
    bool goes_on = false, forgot = false;
    std::vector<std::int32_t> text;
    std::size_t first = 0;  // of the text, the id at place 0
    std::size_t read = 0;   // ids of the text before this one are in the cache
    sampling_options by;
    std::uint64_t drawn = 0;
  };
  std::unique_ptr<decoder> decoder_;
  int rows_, ids_below_;
  std::vector<sequence> all_;
  std::size_t turn_ = 0;  // who reads first of those with several ids to read
  sampler choose_;
  std::vector<std::int32_t> ids_;
  std::vector<sequence_place> places_;
  std::vector<int> asked_;  // for each row, the sequence whose next id it gives; −1: none
};

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/prediction/generation_batch.ipp"
#endif
