// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "edl/compute/data/reader.hpp"
#include "edl/core/span.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/train/setup/program.hpp"

namespace edl::train {

/// The numbers of a shard's records among all of a source, from 0 on.
std::vector<std::uint64_t> numbers_among_all(data::source const& from, std::size_t shard,
                                             view<std::uint64_t> records);

/// The values of a feature as JSON: a value, a list of several, or null where the record has none.
std::string json_of(example const& record, std::string const& name);

/// What one record's predictions are written from.
struct predicted_record {
  std::uint64_t number = 0;  ///< among all records
  example const* record;     ///< what it was made of; null where no columns are wanted
  view<float> outputs;
};

/// Writes predictions in --prediction_outputs, a part `part-NNNNN` for each task, each whole or not there. A
/// part is a file of --prediction_format by itself: the number of each record among all, the features that
/// --prediction_columns names, and for each output its class and probability, where its loss says what they
/// are, and its values. Thread safety: unsafe.
class prediction_parts {
 public:
  /// References outlive this. Throws usage_error where the records lack one of the columns.
  prediction_parts(job const& j, program const& p, data::source const& from);

  /// `records`: of the shard, one for each row of the outputs.
  void write(std::uint32_t task, std::size_t shard, view<std::uint64_t> records, view<float> outputs);

 private:
  job const& job_;
  program const& program_;
  data::source const& from_;
  std::vector<std::string> columns_;
  std::unique_ptr<data::reader> reader_;
};

/// Makes one file `predictions` of the parts of so many tasks, in their order, and removes them; a line for a
/// log that says where it is. Where this process does not see all of the parts they stay, and the line says
/// so. Memory is bounded. Throws error where it cannot be written: the parts stay.
std::string join_predictions(job const& j, std::uint32_t tasks);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/prediction/predictions.ipp"
#endif
