// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "edl/job/ps/frozen.hpp"
#include "edl/job/ps/snapshot.hpp"
#include "edl/job/ps/store_options.hpp"

namespace edl::ps {

/// Versions that a store has frozen, to be evaluated and to be written. They stay until they are released,
/// or give way to newer ones (`frozen`). What is frozen is told by the store. Thread safety: unsafe.
class freezer {
 public:
  explicit freezer(store_options const& o);

  /// What a store can be asked for at its version.
  class source {
   public:
    virtual ~source() = default;
    virtual ps::snapshot averaged() const = 0;
    virtual ps::full_snapshot full_snapshot() const = 0;
  };

  /// What of a version is frozen.
  struct kinds {
    bool evaluate = false, checkpoint = false;
  };

  /// A store has come to this version, by a step: freezes what is due at it. True: frozen now.
  kinds advanced(std::uint64_t version, source const& now);

  /// What is frozen of this version, as the step that made it has said. With
  /// `store_options::rests_to_evaluate` what is to be evaluated is frozen now, if it is not.
  kinds due(std::uint64_t version, source const& now);

  /// Freezes a version that is to be written, if it is not, or not with all rows of these hash slots.
  void with_rows(std::uint64_t version, element_range slots, source const& now);

  /// A version for an evaluation, or for a checkpoint, in use until it is released. Throws when it is not
  /// kept: never frozen, released, or given up for newer ones.
  ps::snapshot evaluation(std::uint64_t version);
  bool has_evaluation(std::uint64_t version) { return evaluations_.find(version).has_value(); }
  ps::full_snapshot checkpoint(std::uint64_t version);
  void release_evaluation(std::uint64_t version) { evaluations_.release(version); }
  void release_checkpoint(std::uint64_t version) { checkpoints_.release(version); }

  /// Whether steps freeze; those of a backup need not.
  void freeze(bool on) { freezes_ = on; }

  /// Drops all frozen versions: who wanted them is gone.
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
