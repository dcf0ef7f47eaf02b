// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/author/prepare.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::author {

EDL_INLINE std::size_t feed_first(data::source const& from, std::size_t most, bool skip_damaged,
                                  std::function<void(example const& record, std::size_t i)> const& feed) {
  auto const reader = from.open();
  example record;
  std::size_t fed = 0;
  for (std::size_t shard = 0; shard < from.shards().size(); ++shard)
    for (std::uint64_t i = 0; i < from.shards()[shard].records; ++i) {
      if (fed == most) return fed;
      try {
        reader->read(shard, i, record);
        data::at_record(from, shard, i, [&] { feed(record, fed); });
        ++fed;
      } catch (changed_error const&) {
        throw;
      } catch (data_error const&) {
        if (!skip_damaged) throw;
      }
    }
  return fed;
}

}  // namespace edl::author
