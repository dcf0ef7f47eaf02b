// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "edl/author/hyperparameters.hpp"
#include "edl/compute/device/any_device.hpp"
#include "edl/compute/nn/decoding.hpp"
#include "edl/job/train/prediction/decoder.hpp"

namespace edl::author {

/// A user's Model as a `decoder`.
template <class Model>
class model_decoder final : public train::decoder {
  using network = nn::decoding_model<Model::network, any_device>;

 public:
  model_decoder(train::decoder_options const& o, hyperparameters_of<Model> const& set)
      : train::decoder(network::vocabulary, network::places,
                       network::cache_size(o.sequences) * sizeof(float)),
        set_(set),
        network_(o.on, {.rows = o.rows, .sequences = o.sequences}, hyperparameter_view(set_), o.variables,
                 o.frozen) {}

  view<float> decode(std::span<std::int32_t const> ids, std::span<sequence_place const> rows) override {
    return network_(ids, rows);
  }

 private:
  hyperparameters_of<Model> set_;
  network network_;
};

/// Why the Model cannot generate, as the rest of a sentence about it; empty: it can.
template <class Model>
std::string why_no_decoder() {
  constexpr nn::decoding_fault fault = nn::fault_of_decoding(Model::network);
  switch (fault.what) {
    case nn::decoding_fault::none:
      return {};
    case nn::decoding_fault::not_of_ids:
      return "its network does not begin with `nn::ids`";
    case nn::decoding_fault::not_next_ids:
      return "its network does not output, for each place, a number for each id of its vocabulary";
    case nn::decoding_fault::looks_elsewhere:
      return "its layer '" + std::string(fault.layer) +
             "' needs more than a place and earlier ones: attention has to be `.causal`, and other layers to "
             "treat each place separately";
    case nn::decoding_fault::sizes_of_variables:
      return "the size of a variable depends on the number of places: give `nn::positions` its `.most`, the "
             "count of `nn::ids`";
  }
  return {};
}

}  // namespace edl::author
