// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "edl/app/model_learner.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/device/geometry.hpp"

namespace edl::app::detail {

EDL_INLINE void refuse_label(std::int64_t label, std::size_t outputs) {
  throw data_error(
      fmt::format("label {} is out of range: the network has outputs 0 to {}", label, outputs - 1));
}

EDL_INLINE void refuse_label(float label) {
  throw data_error(fmt::format("label {} is out of range for the model's loss", label));
}

EDL_INLINE void refuse_features(std::size_t got, std::size_t wanted) {
  throw data_error(
      fmt::format("the model's feed made {} features of a record, the network takes {}", got, wanted));
}

EDL_INLINE void check_ids(view<float> features, int vocabulary) {
  embedding_geometry const g{.vocabulary = vocabulary};
  for (std::size_t i = 0; i < features.size(); ++i)
    if (!g.has(features[i]))
      throw data_error(
          fmt::format("number {} of the record, {}, is no id: the network's embedding takes whole numbers "
                      "from 0 to {}",
                      i, features[i], vocabulary - 1));
}

}  // namespace edl::app::detail
