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
  std::string_view float_bytes{};  ///< instead of `floats`: as they came, in what was given to `append`
  std::vector<float> floats{};
  std::vector<std::int64_t> integers{};
  std::vector<std::string> strings{};

  std::size_t size() const;

  /// Appends a number or a text (bytes may be {"b64": …}), or all of nested lists. Throws http::failure (400)
  /// for what is of another kind, or in lists within more than 8.
  void append(nlohmann::json const& values, int depth = 0);

  /// Appends `count` values of a datatype of the Open Inference Protocol, as its binary extension has them.
  /// Throws http::failure (400) where `bytes` are more or fewer. Where they need no conversion they are not
  /// copied, and are to outlive this.
  void append(std::string_view datatype, std::string_view bytes, std::size_t count);
};

/// A tensor for the feature of that name, of the kind that the model asks for. Throws http::failure (400)
/// that lists the inputs where it takes none of that name.
tensor tensor_for(std::string const& name, std::span<record_feature const> inputs);

/// Throws http::failure (400) where the values cannot be divided among so many records.
void check_shares(std::span<tensor const> inputs, std::size_t rows);

/// What record `row` of `rows` is made of; `into` is emptied before.
void to_record(std::span<tensor const> inputs, std::size_t rows, std::size_t row, example& into);

}  // namespace edl::serve

#ifdef EDL_HEADER_ONLY
#include "edl/job/serve/tensor.ipp"
#endif
