// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "edl/core/log.hpp"
#include "edl/data/source.hpp"
#include "edl/job/job.hpp"
#include "edl/worker/session.hpp"

namespace edl::train {

/// The records that a command line names, opened: what a job does not use is null.
struct records {
  std::unique_ptr<data::source> training, evaluation, prediction;

  worker::sources view() const { return {training.get(), evaluation.get(), prediction.get()}; }
};

/// Throws data_error when they are missing or damaged; with --skip_damaged what is left out is logged
/// instead.
records open_records(job const& j, logger const& log);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/train/records.ipp"
#endif
