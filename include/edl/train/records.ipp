// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "edl/core/inline.hpp"
#include "edl/data/first_records.hpp"
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
  records all{open(j.training_data), open(j.validation_data), open(j.prediction_data)};
  auto const keep = [&](std::unique_ptr<data::source>& of, std::uint64_t minibatches) {
    if (of && minibatches > 0)
      of =
          std::make_unique<data::first_records>(std::move(of), minibatches * std::uint64_t(j.minibatch_size));
  };
  keep(all.training, std::uint64_t(j.overfit_batches));
  keep(all.evaluation, j.dry_run ? 1 : 0);
  return all;
}

}  // namespace edl::train
