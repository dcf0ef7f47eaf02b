// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "edl/author/run.hpp"
#include "edl/job/train/prediction/prediction_session.hpp"

namespace edl {

/// A trained model that predicts in a program of one's own:
///
///     edl::predictor<mnist> const p("checkpoints");
///     auto const y = p(record);  // y.outputs(0), y.output("output")
///
/// See `prediction_session`, which it is. Thread safety: safe.
template <class Model>
class predictor : public prediction_session {
 public:
  explicit predictor(std::string const& path, prediction_options const& o = {})
      : prediction_session(author::make_program<Model>(), path, o) {}

  /// What the model says of a record. Throws data_error, which names the feature, where it cannot be used.
  prediction_batch operator()(example const& record) const { return (*this)(std::span(&record, 1)); }

  /// The same of several at once, 1 or more: the error says which of them it is, counted from 0.
  prediction_batch operator()(std::span<example const> records) const { return predict(records); }
};

}  // namespace edl
