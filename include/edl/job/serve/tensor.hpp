// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/data/format/example.hpp"
#include "edl/job/train/prediction/record_feature.hpp"

namespace edl::serve {

/// An input of some records: their values, one record after the other.
struct tensor {
  std::string name;
  example::kind kind = example::kind::floats;
  std::vector<float> floats{};
  std::vector<std::int64_t> integers{};
  std::vector<std::string> strings{};

  std::size_t size() const;

  /// Appends a number or a text, or all of nested lists. Throws http::failure (400) for what is of another
  /// kind, or in lists within more than 8.
  void append(nlohmann::json const& values, int depth = 0);

  /// Appends `count` values of a datatype of the Open Inference Protocol, as its binary extension has them.
  /// Throws http::failure (400) where `bytes` are more or fewer.
  void append(std::string_view datatype, std::string_view bytes, std::size_t count);
};

/// A tensor for the feature of that name, of the kind that the model asks for. Throws http::failure (400)
/// that lists the inputs where it takes none of that name.
tensor tensor_for(std::string const& name, std::span<record_feature const> inputs);

/// What `rows` records are made of. Throws http::failure (400) where the values cannot be divided among them.
std::vector<example> to_records(std::span<tensor const> inputs, std::size_t rows);

}  // namespace edl::serve

#ifdef EDL_HEADER_ONLY
#include "edl/job/serve/tensor.ipp"
#endif
