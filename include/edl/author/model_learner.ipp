// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "edl/author/model_learner.hpp"
#include "edl/compute/device/geometry.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::author::detail {

EDL_INLINE void refuse_label(std::int64_t label, std::size_t outputs) {
  std::string const out =
      label < 0 ? "number the classes from 0 on"
                : fmt::format("give it an output for each class, {} or more", std::uint64_t(label) + 1);
  throw misfit_error(
      fmt::format("label {} is out of range: the network has outputs 0 to {}; {}, or mend the record", label,
                  outputs - 1, out));
}

EDL_INLINE void refuse_label(std::int64_t label, std::size_t outputs, std::size_t place) {
  throw data_error(fmt::format(
      "label {} of place {} is out of range: the network has outputs 0 to {} at each place, and a "
      "place that does not count is labelled -1",
      label, place, outputs - 1));
}

EDL_INLINE void refuse_label(float label) {
  throw data_error(fmt::format("label {} is out of range for the model's loss", label));
}

EDL_INLINE void refuse_padding_label(std::int64_t label, std::size_t place) {
  throw data_error(
      fmt::format("label {} of place {}, which is padding: a place behind a sample's last id is labelled -1",
                  label, place));
}

EDL_INLINE void refuse_weight(float weight) {
  throw data_error(fmt::format("weight {} of a sample is not a number of 0 or more", weight));
}

EDL_INLINE void refuse_options(char const* member) {
  throw usage_error(
      fmt::format("--set: with these values an option of the model's {} is out of range", member));
}

EDL_INLINE void refuse_memory(model_memory const& of_one, model_memory const& of_all, int most) {
  throw error(
      fmt::format("--minibatch_size={} needs {} bytes of memory for the network ({} for activations), more "
                  "than this machine gives; one record needs {}: lower --minibatch_size, or keep less with "
                  "--activations=recomputed or bfloat16, or --memory_budget (--explain_plan lists the memory "
                  "of each layer)",
                  most, of_all.total(), of_all.activations, of_one.total()));
}

EDL_INLINE void check_ids(view<float> features, nn::id_range ids, int vocabulary, bool none) {
  embedding_geometry const g{.vocabulary = vocabulary};
  for (std::size_t i = std::size_t(ids.first); i < std::size_t(ids.first + ids.count); ++i)
    if (!g.has(features[i]) && !(none && features[i] == -1))
      throw data_error(fmt::format(
          "number {} of the record, {}, is no {} takes whole numbers from 0 to {}", i, features[i],
          ids.length ? "length: the network's mask" : "id: the network's embedding", vocabulary - 1));
}

}  // namespace edl::author::detail
