// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "edl/compute/data/batch.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/ledger.hpp"
#include "edl/core/log.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/train/setup/program.hpp"
#include "edl/job/worker/trainer.hpp"

namespace edl::train {

/// Features as a picture of 1 or 3 channels: the least value is black, and the largest is white.
std::string png_of(shape of, view<float> features);

/// The records that a model predicts worst, for inspection. It reports those with the highest loss (--worst),
/// and writes wrongly classified ones (--wrong): a line of `wrong.jsonl` each, and, if the network takes
/// pictures, a PNG as the network sees it, scaled from its least to its largest value. It writes at most
/// `most_wrong`. In a job of several processes each task writes a part in --wrong, which the master joins.
/// Thread safety: unsafe.
class hard_records {
 public:
  static constexpr std::uint64_t most_wrong = 10'000;

  static bool wanted(job const& j) { return j.evaluation.worst > 0 || !j.evaluation.wrong.empty(); }

  /// Throws usage_error if --wrong is given and the loss has no classes.
  static void check(job const& j, program const& p);

  /// References must outlive this. Throws as `check`.
  hard_records(job const& j, program const& p, data::source const& from);

  /// Processes an evaluated minibatch.
  void look(worker::trainer& by, data::batch const& b);

  /// In one process: returns the worst as one line of JSON, and clears them.
  std::string take_worst();

  /// In several processes: call when all minibatches of this task have been evaluated, before reporting it.
  /// Returns the text for the master, for `worst_of_tasks`.
  std::string end_task(task_key const& task);

  /// At the end, in one process: writes a line for each of the worst, or with --output_format=json one for
  /// all, and logs the path of the wrong ones.
  void tell(std::ostream& to, logger const& log);

  /// The same for the parts of several processes, which it then removes; `records`: number of evaluated
  /// records. If this process does not see all parts, it leaves them and logs that.
  static void join(job const& j, std::uint64_t records, std::ostream& to, logger const& log);

  class worst_of_tasks;

 private:
  struct seen {
    double loss = 0;
    std::uint64_t record = 0;  ///< among all
    std::string file;
    std::optional<std::uint64_t> in_file;  ///< its number there; empty: it is the whole file
    std::uint64_t line = 0;                // there, from 1; 0: it has none
    std::optional<std::int64_t> label, said;
    std::optional<float> number, predicted;  // instead, of a model of one number
    std::string label_name, said_name;       // empty: classes have no names
    float probability = 0;                   ///< as in predictions: of the predicted class, or of a yes

    std::string json() const;
    static std::string json(std::vector<seen> const& all);
    static seen of_json(nlohmann::json const& all);
    static bool harder(seen const& a, seen const& b);
  };

  struct found {
    std::vector<seen> worst;  // a heap, the least loss first
    std::vector<std::string> lines;
    std::uint64_t first = 0, records = 0, wrong = 0;

    void keep(seen s, std::uint64_t most);
    std::string take_worst();
    void tell(job const& j, std::ostream& to, logger const& log);
  };

  seen see(data::batch const& b, int row, double loss, view<float> outputs) const;
  std::string write(data::batch const& b, int row, seen const& what);

  job const& job_;
  program const& program_;
  data::source const& from_;
  found all_;                          // in one process
  std::map<task_key, found> by_task_;  // in several
  std::unique_ptr<data::reader> reader_;
  std::unique_ptr<durable_file> lines_;
};

/// Collects the workers' texts about an evaluation's tasks. Thread safety: unsafe.
class hard_records::worst_of_tasks {
 public:
  explicit worst_of_tasks(std::uint64_t most) : most_(most) {}

  /// Replaces an earlier text of this task. Ignores invalid text.
  void add(std::uint32_t task, std::string const& told);

  /// As `take_worst`.
  std::string take();

 private:
  void keep_worst();
  std::uint64_t most_;
  std::vector<std::pair<std::uint32_t, seen>> all_;  // by task
};

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/prediction/hard_records.ipp"
#endif
