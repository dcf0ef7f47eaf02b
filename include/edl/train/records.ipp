// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/inline.hpp"
#include "edl/train/records.hpp"

namespace edl::train {

EDL_INLINE records open_records(job const& j, logger const& log) {
  data::source_options const options{.skip_damaged = j.skip_damaged};
  auto const open = [&](std::string const& path) {
    auto from = path.empty() ? nullptr : data::open_source(path, options);
    if (from)
      for (std::string const& line : from->damage()) log.warning(line);
    return from;
  };
  return {open(j.training_data), open(j.validation_data), open(j.prediction_data)};
}

}  // namespace edl::train
