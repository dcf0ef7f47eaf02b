// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "edl/base/bucket/place.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/core/span.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/train/setup/program.hpp"

namespace edl::train {

/// The numbers of a shard's records in the source, from 0.
std::vector<std::uint64_t> numbers_among_all(data::source const& from, std::size_t shard,
                                             view<std::uint64_t> records);

/// The values of a feature as JSON: a value, a list of several, or null if the record lacks it.
std::string json_of(example const& record, std::string const& name);

/// The data for the predictions of one record.
struct predicted_record {
  std::uint64_t number = 0;  ///< among all records
  example const* record;     ///< the record; null without --prediction_columns
  view<float> outputs;
};

/// Writes predictions to --prediction_outputs, a part `part-NNNNN` for each task, atomically. A part is a
/// file of --prediction_format by itself: the number of each record among all, the features that
/// --prediction_columns names, and for each output its class and probability, if its loss defines them, and
/// its values. Thread safety: unsafe.
class prediction_parts {
 public:
  /// References must outlive this. Throws usage_error if the records lack one of the columns.
  prediction_parts(job const& j, program const& p, data::source const& from);

  /// `records`: of the shard, one for each row of the outputs.
  void write(std::uint32_t task, std::size_t shard, view<std::uint64_t> records, view<float> outputs);

 private:
  job const& job_;
  program const& program_;
  data::source const& from_;
  bucket::place place_;
  std::vector<std::string> columns_;
  std::unique_ptr<data::reader> reader_;
};

/// Joins the parts of this many tasks into one file `predictions`, in their order, removes them, and returns
/// a log line with the path. If this process does not see all parts, it leaves them, and the line says so.
/// Memory is bounded. Throws error if the file cannot be written; the parts then stay.
std::string join_predictions(job const& j, std::uint32_t tasks);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/prediction/predictions.ipp"
#endif
