// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "edl/base/checkpoint/model_reader.hpp"
#include "edl/compute/sparse/minibatch_rows.hpp"
#include "edl/compute/sparse/table.hpp"
#include "edl/core/log.hpp"
#include "edl/job/train/setup/program.hpp"

namespace edl::train {

/// The program with the hyperparameters with which the model at `path`, the result of `find_model`, was
/// trained, and of a network with adapters their base.
program trained_program(program const& p, std::string const& path, logger const& log);

/// The values of a trained model for prediction, from a checkpoint or an exported model. Variables are in
/// memory. Tables of an exported model are mapped, so they may be larger than memory. Those of a checkpoint
/// are in memory, with the optimiser's slots.
///
/// Thread safety: const, safe.
class saved_model {
 public:
  /// `path`: the result of `find_model`. The program must outlive this. Throws error, which names the path,
  /// if it is of another model, or damaged.
  saved_model(program const& p, std::string const& path);

  std::uint64_t version() const { return version_; }
  std::span<float> variables() { return variables_; }

  /// Fills in the weights of the rows that `begin` found: an id that was never trained gets its initial
  /// values. Allocates nothing.
  void pull(sparse::minibatch_rows& rows) const;

 private:
  std::uint64_t version_ = 0;
  std::vector<float> variables_;
  std::vector<std::shared_ptr<sparse::table>> tables_;  // for a checkpoint, or for a file without rows
  std::unique_ptr<checkpoint::model_reader> file_;
  std::vector<checkpoint::model_reader::table const*> mapped_;
};

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/prediction/saved_model.ipp"
#endif
