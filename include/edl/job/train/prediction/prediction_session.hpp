// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/data/format/example.hpp"
#include "edl/compute/device/cpu/options.hpp"
#include "edl/core/log.hpp"
#include "edl/core/span.hpp"
#include "edl/job/train/prediction/model_output.hpp"
#include "edl/job/train/prediction/record_feature.hpp"
#include "edl/job/train/setup/hyperparameters.hpp"
#include "edl/job/train/setup/program.hpp"

namespace edl {

struct prediction_options {
  int threads = 1;                        ///< that compute a batch, the caller among them
  edl::kernels kernels = kernels::fixed;  ///< equal batches give equal bits
  edl::precision precision = precision::float32;
  bool verify = true;                      ///< read all of the model once, and compare it with its checksums
  logger log = logger(severity::warning);  ///< is told what is passed over of the model
};

class prediction_session;

/// Some records, and what a model says of them. It is memory of its session, and goes back to it in the end.
/// Movable. Thread safety: distinct objects: safe. Shared objects: unsafe.
class prediction_batch {
 public:
  prediction_batch(prediction_batch&&) noexcept;
  prediction_batch& operator=(prediction_batch&&) noexcept;
  ~prediction_batch();

  /// Takes one more record, by the model's `feed`. Throws data_error, which names the feature, where the
  /// record cannot be used, as where values came in other extents than the model takes, and leaves the batch
  /// as it was. Throws error where the batch is full.
  void add(example const& record);

  int rows() const;

  /// Computes. From then on there are outputs, until `add` or `clear`.
  void run();

  view<float> outputs() const;         ///< rows × outputs of one
  view<float> outputs(int row) const;  ///< Throws error where there is no such row.

  /// Of the output of that name. Throws error, which lists the names, where there is none.
  view<float> output(std::string_view name, int row = 0) const;

  void clear();  ///< no record is left

 private:
  friend class prediction_session;
  struct workspace;
  struct core;
  prediction_batch(std::shared_ptr<core> of, std::unique_ptr<workspace> memory);
  void fill_with_zeros();

  std::shared_ptr<core> core_;
  std::unique_ptr<workspace> memory_;
};

/// A trained model that predicts in this process, on the processor. It is found and read as `predict` does,
/// with the hyperparameters that it was trained with. Variables are shared. Each batch at work has a
/// workspace of its own, of a pool: as many are made as were ever at work at once. Once a batch of as many
/// records has been done, another allocates nothing, if the model's `feed` does not.
///
/// Errors are edl::error. Thread safety: safe. What `take` returns may outlive the session.
class prediction_session {
 public:
  /// `path`: a checkpoint's directory, one that holds checkpoints, or an exported model. Throws error, which
  /// names it, where there is none, or it is damaged or of another model.
  prediction_session(train::program const& p, std::string const& path, prediction_options const& o = {});
  ~prediction_session();
  prediction_session(prediction_session const&) = delete;

  std::string const& path() const;          ///< of the checkpoint or file that was read
  std::uint64_t version() const;            ///< steps that it was trained for; 0 in others' files
  train::settings hyperparameters() const;  ///< names and values

  std::vector<model_output> const& outputs() const;
  std::size_t output_size() const;  ///< numbers that it says of one record

  /// The features of a record that `feed` asks for, as the training's records showed them. A model that says
  /// nothing of these is asked for a prediction of records of zeros. Features that `feed` does without stand
  /// behind the others.
  std::vector<record_feature> const& inputs() const;

  /// Why `feed` may ask for more than `inputs`, which could not be found out; empty: for no more.
  std::string const& inputs_unknown() const;

  /// Names of the classes of the training's labels, from label 0 on; empty: they had none.
  std::vector<std::string> const& classes() const;

  /// Computes batches of zeros of up to so many records, so that the first ones of records take no longer
  /// than others.
  void warm_up(int most) const;

  /// What it says of these records, 1 or more. Throws data_error where one cannot be used; of several, the
  /// error says which, counted from 0.
  prediction_batch predict(std::span<example const> records) const;

  /// An empty batch of at most so many records, 1 or more.
  prediction_batch take(int most) const;

 private:
  std::shared_ptr<prediction_batch::core> core_;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/prediction/prediction_session.ipp"
#endif
