// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "edl/base/checkpoint/other_model.hpp"
#include "edl/base/checkpoint/weight_name.hpp"
#include "edl/core/layout.hpp"
#include "edl/core/span.hpp"

namespace edl::bucket {
class place;
}

namespace edl::checkpoint {

/// The values of a network's frozen variables, and the file that they are from.
struct base_model {
  std::string path;         ///< as it was given
  std::uint32_t crc32 = 0;  ///< zlib's of the values
  std::vector<float> values;
  other_model file;
};

/// A network with low-rank adapters (`nn::adapted`), for files of its parts. Its layout has the adapters
/// alone.
struct adapted_model {
  parameter_layout frozen;                ///< as parameters
  std::vector<weight_name> weight_names;  ///< of the frozen variables
  int rank = 0;
  float alpha = 0;
  /// Adds adapters to the frozen variables' values.
  std::function<void(view<float> adapters, std::span<float> frozen)> merge;
  std::shared_ptr<base_model const> base;  ///< null: not read

  /// Names of the adapters' variables (`name_adapters`).
  std::vector<weight_name> adapter_names{};
  std::shared_ptr<std::deque<std::string> const> texts{};  ///< that these names are views of

  /// Finds the names of adapters' variables in files of Hugging Face's PEFT, by `weight_names`: of the matrix
  /// "model.layers.0.self_attn.q_proj.weight" they are
  /// "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight" and "lora_B". A matrix of which no
  /// tensor is known has none.
  void name_adapters(parameter_layout const& adapters);

  view<float> values() const { return base ? view<float>(base->values) : view<float>(); }
};

/// Reads the frozen variables from a file or a checkpoint (`other_model`). Throws error if it lacks one.
/// `given`: the name of the file in errors and facts.
std::shared_ptr<base_model const> read_base(adapted_model const& of, std::string const& path,
                                            std::string const& given);

/// Writes a model's variables under the names, and in the order, of another model's file, which has all of
/// them. `version`: as in `export_model`.
void export_as(std::string const& path, other_model const& like, parameter_layout const& layout,
               std::span<weight_name const> names, view<float> variables, std::uint64_t version);

/// Writes, into a place, `model.safetensors`: the network that was adapted, with merged adapters, in the
/// names of its base; and `adapter_model.safetensors` with `adapter_config.json`, as PEFT does: the adapters
/// alone, in PEFT's names as far as they are known.
void export_adapted(bucket::place const& into, adapted_model const& of, parameter_layout const& adapters,
                    view<float> values, std::uint64_t version);

}  // namespace edl::checkpoint

#ifdef EDL_HEADER_ONLY
#include "edl/base/checkpoint/adapted_model.ipp"
#endif
