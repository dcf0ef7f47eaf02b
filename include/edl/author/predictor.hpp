// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "edl/author/run.hpp"
#include "edl/job/train/prediction/prediction_session.hpp"

namespace edl {

/// A trained model that predicts in your own program:
///
///     edl::predictor<mnist> const p("checkpoints");
///     auto const y = p(record);  // y.outputs(0), y.output("output")
///
/// See its base, `prediction_session`. Thread safety: safe.
template <class Model>
class predictor : public prediction_session {
 public:
  explicit predictor(std::string const& path, prediction_options const& o = {})
      : prediction_session(author::make_program<Model>(), path, o) {}

  /// The prediction for a record. Throws data_error, which names the feature, if the record cannot be used.
  prediction_batch operator()(example const& record) const { return (*this)(std::span(&record, 1)); }

  /// The same for several records at once, at least 1; the error gives the record's number, counted from 0.
  prediction_batch operator()(std::span<example const> records) const { return predict(records); }
};

}  // namespace edl
