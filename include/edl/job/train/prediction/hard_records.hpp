// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "edl/compute/data/batch.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/log.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/train/program.hpp"
#include "edl/job/worker/trainer.hpp"

namespace edl::train {

/// Records that a model has trouble with, for a person to look at. Those with the highest loss are told
/// (--worst). Those of which it says a wrong class are written (--wrong): a line of `wrong.jsonl` each, and,
/// where the network takes pictures, a PNG as the network sees it, from its least value to its largest. At
/// most `most_wrong` are. Thread safety: unsafe.
class hard_records {
 public:
  static constexpr std::uint64_t most_wrong = 10'000;

  static bool wanted(job const& j) { return j.worst > 0 || !j.wrong.empty(); }

  /// References outlive this. Throws usage_error where --wrong is asked for and the loss says no class.
  hard_records(job const& j, program const& p, data::source const& from);

  /// Looks at a minibatch that was evaluated.
  void look(worker::trainer& by, data::batch const& b);

  /// The worst as one line of JSON, which are forgotten then.
  std::string take_worst();

  /// The end: writes a line for each of the worst, or with --output_format=json one for all, and says where
  /// the wrong ones are.
  void tell(std::ostream& to, logger const& log);

 private:
  struct seen {
    double loss = 0;
    std::uint64_t record = 0;  ///< among all
    std::string file;
    std::uint64_t in_file = 0;
    std::optional<std::int64_t> label, said;
    float probability = 0;  ///< of what is said
  };

  void sort();
  static std::string as_json(seen const& s);
  seen see(data::batch const& b, int row, double loss, view<float> outputs) const;
  void write(data::batch const& b, int row, seen const& what);

  job const& job_;
  program const& program_;
  data::source const& from_;
  std::vector<seen> worst_;  // a heap, the least loss first
  std::unique_ptr<data::reader> reader_;
  std::unique_ptr<durable_file> lines_;
  std::uint64_t wrong_ = 0;
};

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/prediction/hard_records.ipp"
#endif
