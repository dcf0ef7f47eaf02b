// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/master/job_state.hpp"

namespace edl::master {

EDL_INLINE void job_state::enter(job_phase next) {
  invariant(!over(), "a job that is over enters no other phase");
  phase_ = next;
}

EDL_INLINE void job_state::raise_generation(std::uint64_t to) {
  invariant(to >= generation_, "a generation's number never decreases");
  generation_ = to;
}

EDL_INLINE void job_state::finish() {
  enter(job_phase::finished);
  add(finish_job{});
}

EDL_INLINE void job_state::end_suspended(std::string const& missing) {
  if (!missing.empty())
    say(severity::error, fmt::format("{}: the training since the newest checkpoint is lost", missing));
  enter(job_phase::suspended);
  add(suspend_job{});
}

EDL_INLINE void job_state::fail(std::string const& reason) {
  if (over()) return;
  enter(job_phase::failed);
  reason_ = reason;
  add(fail_job{reason});
}

}  // namespace edl::master
