// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "edl/base/bucket/place.hpp"
#include "edl/base/checkpoint/adapted_model.hpp"
#include "edl/base/checkpoint/model_file.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::checkpoint {
namespace detail {

/// The variable that an adapter's variable is for, and where its columns are.
struct adapted_variable {
  std::string name;
  std::size_t tensor = 0, tensors = 1;  ///< of those that make the variable
  bool up = false;
};

inline std::optional<adapted_variable> adapted_variable_of(std::string_view adapter) {
  struct kind {
    std::string_view prefix, kernel;
    std::size_t tensor, tensors;
  };
  static constexpr std::array<kind, 5> kinds{{{"query_", "query_key_value_kernel", 0, 3},
                                              {"key_", "query_key_value_kernel", 1, 3},
                                              {"value_", "query_key_value_kernel", 2, 3},
                                              {"output_", "output_kernel", 0, 1},
                                              {"", "kernel", 0, 1}}};
  auto const slash = adapter.rfind('/') + 1;  // 0 if there is none
  std::string_view const own = adapter.substr(slash);
  for (kind const& k : kinds)
    for (bool const up : {false, true})
      if (own == fmt::format("{}{}", k.prefix, up ? "lora_b" : "lora_a"))
        return adapted_variable{fmt::format("{}{}", adapter.substr(0, slash), k.kernel), k.tensor, k.tensors,
                                up};
  return std::nullopt;
}

}  // namespace detail

EDL_INLINE std::shared_ptr<base_model const> read_base(adapted_model const& of, std::string const& path,
                                                       std::string const& given) {
  auto made = std::make_shared<base_model>(base_model{given, 0, {}, other_model(path)});
  if (auto const match = made->file.match(of.frozen, of.weight_names); !match.whole())
    throw error(fmt::format("{} is not a base of this model: {}", given, match.describe()));
  made->values.resize(of.frozen.size());
  made->file.read(of.frozen, of.weight_names, 0, made->values);
  made->crc32 = std::uint32_t(
      crc32_z(0, reinterpret_cast<Bytef const*>(made->values.data()), made->values.size() * sizeof(float)));
  return made;
}

EDL_INLINE void adapted_model::name_adapters(parameter_layout const& adapters) {
  auto const made = std::make_shared<std::deque<std::string>>();
  adapter_names.clear();
  for (variable const& v : adapters.variables) {
    auto const of = detail::adapted_variable_of(v.name);
    if (!of) continue;
    auto const tensors = tensors_of(weight_names, of->name);
    constexpr std::string_view weight = ".weight";
    if (tensors.size() != of->tensors || !tensors[of->tensor].ends_with(weight)) continue;
    std::string_view stem = tensors[of->tensor];
    stem.remove_suffix(weight.size());
    std::string_view const theirs =
        made->emplace_back(fmt::format("base_model.model.{}.lora_{}.weight", stem, of->up ? "B" : "A"));
    adapter_names.push_back({theirs, made->emplace_back(v.name), weight_order::pytorch});
  }
  texts = made;
}

EDL_INLINE void export_as(std::string const& path, other_model const& like, parameter_layout const& layout,
                          std::span<weight_name const> names, view<float> variables, std::uint64_t version) {
  std::vector<tensor_source> tensors;
  for (variable const& v : layout.variables)
    for (auto& t : like.as_theirs(v, names, variables.subspan(v.offset, v.dims.size())))
      tensors.push_back(std::move(t));
  write_model(path, tensors, {{"edl", "model 1"}, {"version", std::to_string(version)}, {"format", "pt"}});
}

EDL_INLINE void export_adapted(bucket::place const& into, adapted_model const& of,
                               parameter_layout const& adapters, view<float> values, std::uint64_t version) {
  if (!of.base) throw error("the base of the adapters is not read");
  std::vector<float> merged = of.base->values;
  of.merge(values, merged);
  into.write("model.safetensors", [&](std::string const& path) {
    export_as(path, of.base->file, of.frozen, of.weight_names, merged, version);
  });
  auto const& names = of.adapter_names;
  std::vector<tensor_source> tensors;
  std::vector<std::vector<float>> turned;  // (outputs, inputs), as PyTorch's
  std::set<std::string> targets;
  for (variable const& v : adapters.variables) {
    auto const known = std::ranges::find(names, v.name, &weight_name::ours);
    bool const theirs = known != names.end();
    auto const rows = std::size_t(v.dims.sizes[0]), columns = std::size_t(v.dims.sizes[1]);
    view<float> const from = values.subspan(v.offset, v.dims.size());
    std::vector<float> to(from.begin(), from.end());
    if (theirs)
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
    turned.push_back(std::move(to));
    tensors.push_back({.name = theirs ? std::string(known->theirs) : v.name,
                       .dims = theirs ? std::vector<std::uint64_t>{columns, rows}
                                      : std::vector<std::uint64_t>{rows, columns},
                       .data = std::as_bytes(std::span(turned.back()))});
    std::string_view module = tensors.back().name;  // without ".lora_A.weight"
    module = module.substr(0, module.rfind(".lora_"));
    if (theirs) targets.emplace(module.substr(module.rfind('.') + 1));
  }
  into.write("adapter_model.safetensors", [&](std::string const& path) {
    write_model(path, tensors,
                {{"edl", "adapters 1"},
                 {"version", std::to_string(version)},
                 {"format", "pt"},
                 {"lora_base", of.base->path},
                 {"lora_base_crc32", std::to_string(of.base->crc32)}});
  });
  nlohmann::json const config{
      {"peft_type", "LORA"},   {"task_type", "CAUSAL_LM"}, {"base_model_name_or_path", of.base->path},
      {"r", of.rank},          {"lora_alpha", of.alpha},   {"target_modules", targets},
      {"lora_dropout", 0.0},   {"bias", "none"},           {"fan_in_fan_out", false},
      {"inference_mode", true}};
  into.write("adapter_config.json", [&](std::string const& path) {
    durable_file file(path);
    file.write(config.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    file.commit();
  });
}

}  // namespace edl::checkpoint
