// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "edl/job/ps/frozen.hpp"
#include "edl/job/ps/snapshot.hpp"
#include "edl/job/ps/store_options.hpp"

namespace edl::ps {

/// The versions that a store has frozen for evaluations and checkpoints. They stay until they are released,
/// or are replaced by newer ones (`frozen`). Thread safety: unsafe.
class freezer {
 public:
  explicit freezer(store_options const& o);

  /// A store's interface for freezing its current version.
  class source {
   public:
    virtual ~source() = default;
    virtual ps::snapshot averaged() const = 0;
    virtual ps::full_snapshot full_snapshot() const = 0;
  };

  /// The frozen kinds of a version.
  struct kinds {
    bool evaluate = false, checkpoint = false;
  };

  /// A store has reached this version by a step: freezes what is due. True: frozen now.
  kinds advanced(std::uint64_t version, source const& now);

  /// The frozen kinds of this version, as returned by its step. With `store_options::rests_to_evaluate` it
  /// freezes a version for evaluation now, if it is not frozen yet.
  kinds due(std::uint64_t version, source const& now);

  /// Freezes a version for a checkpoint, if it is not frozen with all rows of these hash slots.
  void with_rows(std::uint64_t version, element_range slots, source const& now);

  /// A version for an evaluation, or for a checkpoint, in use until it is released. Throws if it is not kept:
  /// never frozen, released, or replaced by newer ones.
  ps::snapshot evaluation(std::uint64_t version);
  bool has_evaluation(std::uint64_t version) { return evaluations_.find(version).has_value(); }
  ps::full_snapshot checkpoint(std::uint64_t version);
  void release_evaluation(std::uint64_t version) { evaluations_.release(version); }
  void release_checkpoint(std::uint64_t version) { checkpoints_.release(version); }

  /// Whether steps freeze; those of a backup need not.
  void freeze(bool on) { freezes_ = on; }

  /// Drops all frozen versions, because their users are gone.
  void forget();

 private:
  static bool due_at(std::uint64_t version, std::uint64_t every) {
    return every != 0 && version % every == 0;
  }

  std::uint64_t evaluation_steps_, checkpoint_steps_;
  std::size_t most_;
  bool rests_to_evaluate_, freezes_ = true;
  frozen<ps::snapshot> evaluations_;
  frozen<ps::full_snapshot> checkpoints_;
};

}  // namespace edl::ps

#ifdef EDL_HEADER_ONLY
#include "edl/job/ps/freezer.ipp"
#endif
