// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "edl/compute/data/format/record_file.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

struct convert_options {
  std::uint64_t records_per_shard = 16'384;
  recordio_options recordio;
  std::string prefix = "data-";  ///< then five digits: data-00000
  double fraction = 1;           ///< of the records, from the first; more than 0, at most 1
  std::function<void(std::uint64_t done, std::uint64_t of)>
      progress;  ///< every thousand records and at the end
};

struct converted {
  std::uint64_t records = 0, files = 0;
};

/// Writes a source's records as RecordIO files of tf.train.Examples into a new directory, with its parents.
/// The directory appears when it is complete; a failure removes partial files. Throws error if it exists and
/// is not empty.
converted convert(source const& from, std::string const& directory, convert_options const& options = {});

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/convert.ipp"
#endif
