// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/ps/freezer.hpp"

namespace edl::ps {
namespace detail {

inline error not_frozen(std::uint64_t version, std::string_view what, std::size_t most) {
  return error(
      fmt::format("version {} is not frozen for {}: it never was, was released, or was superseded by a newer "
                  "one (at most {} are kept)",
                  version, what, most));
}

/// A version frozen under a number must not change.
template <class Version>
Version of_version(Version what, std::uint64_t version) {
  invariant(what.version() == version, "a frozen version is the one that it is kept as");
  return what;
}

}  // namespace detail

EDL_INLINE freezer::freezer(store_options const& o)
    : evaluation_steps_(o.evaluation_steps),
      checkpoint_steps_(o.checkpoint_steps),
      most_(o.most_frozen),
      rests_to_evaluate_(o.rests_to_evaluate),
      evaluations_(o.most_frozen),
      checkpoints_(o.most_frozen) {}

EDL_INLINE freezer::kinds freezer::advanced(std::uint64_t version, source const& now) {
  kinds done;
  if (rests_to_evaluate_) evaluations_.clear();
  if (freezes_ && due_at(version, evaluation_steps_))
    done.evaluate = evaluations_.keep(version, detail::of_version(now.averaged(), version));
  if (freezes_ && due_at(version, checkpoint_steps_))
    done.checkpoint = checkpoints_.keep(version, detail::of_version(now.full_snapshot(), version));
  return done;
}

EDL_INLINE freezer::kinds freezer::due(std::uint64_t version, source const& now) {
  // A worker that copied a version that is yet to be evaluated may be the last one to have it.
  bool const evaluated = rests_to_evaluate_ && version > 0 && due_at(version, evaluation_steps_);
  if (evaluated && !evaluations_.keeps(version))
    evaluations_.keep(version, detail::of_version(now.averaged(), version));
  return {evaluations_.keeps(version), checkpoints_.keeps(version)};
}

EDL_INLINE void freezer::with_rows(std::uint64_t version, element_range slots, source const& now) {
  if (version == 0 || !due_at(version, checkpoint_steps_)) return;
  ps::full_snapshot const* const kept = checkpoints_.look(version);
  if (kept && overlap(kept->hash_slots, slots) == slots) return;
  checkpoints_.release(version);
  checkpoints_.keep(version, detail::of_version(now.full_snapshot(), version));
}

EDL_INLINE ps::snapshot freezer::evaluation(std::uint64_t version) {
  if (auto found = evaluations_.find(version)) return detail::of_version(*found, version);
  throw detail::not_frozen(version, "an evaluation", most_);
}

EDL_INLINE ps::full_snapshot freezer::checkpoint(std::uint64_t version) {
  if (auto found = checkpoints_.find(version)) return detail::of_version(*found, version);
  throw detail::not_frozen(version, "a checkpoint", most_);
}

EDL_INLINE void freezer::forget() {
  evaluations_.clear();
  checkpoints_.clear();
}

}  // namespace edl::ps
