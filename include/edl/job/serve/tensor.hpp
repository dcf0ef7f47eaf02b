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
  std::vector<std::size_t> extents{};  ///< of one record's values; fewer than two: a flat list
  std::vector<std::size_t> starts{};   ///< where each record's begin, and the end; empty: all have as many
  std::vector<std::size_t> nulls{};    ///< places of values that are missing, which 0, NaN or "" stands for
  std::vector<bool> absent{};          ///< whether a record lacks the feature; empty: none does
  bool may_be_empty = true;            ///< an empty list is one; else a record that has it lacks the feature

  std::size_t size() const;

  /// Appends a number, a text (bytes may be {"b64": …}) or null, or all of nested lists, whose extents it
  /// returns. Throws http::failure (400) for what is of another kind, in lists of different lengths, or in
  /// lists within more than 8.
  std::vector<std::size_t> append(nlohmann::json const& values);

  /// The same of what one record has, the next one. null, or nulls alone, mean that it lacks the feature.
  /// Throws also where it has another shape than those before.
  void append_record(nlohmann::json const& values);
  void append_none();  ///< a record that lacks it

  /// Appends `count` values of a datatype of the Open Inference Protocol, as its binary extension has them.
  /// Throws http::failure (400) where `bytes` are more or fewer. Where they need no conversion they are not
  /// copied, and are to outlive this.
  void append(std::string_view datatype, std::string_view bytes, std::size_t count);
};

/// A tensor for the feature of that name, of the kind that the model asks for. Where that is not known, it is
/// of kind `otherwise`.
tensor tensor_for(std::string const& name, std::span<record_feature const> inputs,
                  example::kind otherwise = example::kind::floats);

/// Throws http::failure (400) for a `stray_feature`.
void check_names(std::span<tensor const> given, std::span<record_feature const> inputs);

/// Divides the values among so many records. One all of whose values are null lacks the feature. Throws
/// http::failure (400) where some are, or where the values cannot be divided.
void share_out(std::span<tensor> inputs, std::size_t rows);

/// What record `row` of `rows` is made of; `into` is emptied before. Where all numbers of a feature are NaN,
/// it lacks that one, as a cell of a table that is empty.
void to_record(std::span<tensor const> inputs, std::size_t rows, std::size_t row, example& into);

}  // namespace edl::serve

#ifdef EDL_HEADER_ONLY
#include "edl/job/serve/tensor.ipp"
#endif
