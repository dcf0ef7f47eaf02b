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
  int threads = 1;                        ///< that compute a batch, including the caller
  edl::kernels kernels = kernels::fixed;  ///< equal batches give equal bits
  edl::precision precision = precision::float32;
  bool verify = true;                      ///< read the whole model once, and verify its checksums
  logger log = logger(severity::warning);  ///< logs parts of the model that are skipped
};

class prediction_session;

/// Some records and their predictions. Its memory belongs to its session, and is returned to it at the end.
/// Movable. Thread safety: distinct objects: safe. Shared objects: unsafe.
class prediction_batch {
 public:
  prediction_batch(prediction_batch&&) noexcept;
  prediction_batch& operator=(prediction_batch&&) noexcept;
  ~prediction_batch();

  /// Adds a record with the model's `feed`. Throws data_error, which names the feature, if the record cannot
  /// be used, e.g. because its extents differ from the model's; the batch is then unchanged. Throws error if
  /// the batch is full.
  void add(example const& record);

  int rows() const;

  /// Computes the outputs, which stay valid until `add` or `clear`.
  void run();

  view<float> outputs() const;         ///< rows × outputs of one
  view<float> outputs(int row) const;  ///< Throws error for a row beyond the last.

  /// The output with this name. Throws error, which lists the names, if there is none.
  view<float> output(std::string_view name, int row = 0) const;

  void clear();  ///< removes all records

 private:
  friend class prediction_session;
  struct workspace;
  struct core;
  prediction_batch(std::shared_ptr<core> of, std::unique_ptr<workspace> memory);
  void fill_with_zeros();

  std::shared_ptr<core> core_;
  std::unique_ptr<workspace> memory_;
};

/// A trained model that predicts in this process, on the processor. It finds and reads the model as `predict`
/// does, with the hyperparameters of its training. Variables are shared. Each batch in use has its own
/// workspace from a pool, which grows to the largest number used concurrently. After a batch of some size,
/// another of at most that size allocates nothing, if the model's `feed` does not.
///
/// Errors are edl::error. Thread safety: safe. What `take` returns may outlive the session.
class prediction_session {
 public:
  /// `path`: a checkpoint, a directory of checkpoints, or an exported model. Throws error, which names it, if
  /// there is none, or it is damaged or of another model.
  prediction_session(train::program const& p, std::string const& path, prediction_options const& o = {});
  ~prediction_session();
  prediction_session(prediction_session const&) = delete;

  std::string const& path() const;          ///< of the checkpoint or file read
  std::uint64_t version() const;            ///< steps of its training; 0 in other programs' files
  train::settings hyperparameters() const;  ///< names and values

  std::vector<model_output> const& outputs() const;
  std::size_t output_size() const;  ///< numbers that it predicts for one record

  /// The features of a record that `feed` reads, as recorded by the training. For a model that does not
  /// record them, they are found by predicting records of zeros. Optional features are last.
  std::vector<record_feature> const& inputs() const;

  /// Why `feed` may read more than `inputs`, which could not be determined; empty: it does not.
  std::string const& inputs_unknown() const;

  /// Names of the classes of the training's labels, from label 0 on; empty: they had none.
  std::vector<std::string> const& classes() const;

  /// Computes batches of zeros with up to this many records, so that the first real ones take no longer than
  /// others.
  void warm_up(int most) const;

  /// Predicts these records, at least 1. Throws data_error if one cannot be used; with several, the error
  /// gives its number, counted from 0.
  prediction_batch predict(std::span<example const> records) const;

  /// An empty batch for up to this many records, at least 1.
  prediction_batch take(int most) const;

 private:
  std::shared_ptr<prediction_batch::core> core_;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/prediction/prediction_session.ipp"
#endif
