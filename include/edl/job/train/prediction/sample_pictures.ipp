// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "edl/compute/data/format/example.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/train/prediction/hard_records.hpp"
#include "edl/job/train/prediction/sample_pictures.hpp"

namespace edl::train {

EDL_INLINE std::vector<std::pair<std::string, event_picture>> sample_pictures(job const& j, program const& p,
                                                                              records const& from,
                                                                              worker::trainer const& by) {
  data::source const& source = *(from.evaluation ? from.evaluation : from.training);
  data::batch b = by.make_batch();
  shape const of = p.input;
  if (of.height <= 1 || of.width <= 1 || (of.channels != 1 && of.channels != 3) ||
      of.size() != b.feature_size)
    throw usage_error(
        fmt::format("--tensorboard_pictures: the network takes no pictures of 1 or 3 channels, but {} "
                    "numbers: leave it out",
                    of.size()));
  std::vector<std::pair<std::string, event_picture>> all;
  auto const reader = source.open();
  example record;
  for (std::size_t shard = 0; shard < source.shards().size(); ++shard)
    for (std::uint64_t i = 0; i < source.shards()[shard].records; ++i) {
      if (all.size() == j.observe.tensorboard_pictures) return all;
      try {
        reader->read(shard, i, record);
        by.feed(record, b, 0, mode::evaluation);
      } catch (data_error const&) {
        if (!j.data.skip_damaged) throw;
        continue;  // training reports it
      }
      all.emplace_back(fmt::format("{}/record-{}", from.evaluation ? "validation" : "training", all.size()),
                       event_picture{of.height, of.width, of.channels,
                                     png_of(of, view<float>(b.features).first(of.size()))});
    }
  return all;
}

}  // namespace edl::train
