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
  std::string_view float_bytes{};  ///< instead of `floats`: a view of the bytes given to `append`
  std::vector<float> floats{};
  std::vector<std::int64_t> integers{};
  std::vector<std::string> strings{};
  std::vector<std::size_t> extents{};  ///< of one record's values; fewer than two: a flat list
  std::vector<std::size_t> starts{};   ///< where each record's begin, and the end; empty: all have as many
  std::vector<std::size_t> nulls{};    ///< indices of missing values, stored as 0, NaN or ""
  std::vector<bool> absent{};          ///< whether a record lacks the feature; empty: none does
  bool may_be_empty = true;            ///< an empty list is one; else a record that has it lacks the feature

  std::size_t size() const;

  /// Appends a number, a text (bytes may be {"b64": …}) or null, or all values of nested lists, whose extents
  /// it returns. Throws http::failure (400) for other kinds, lists of different lengths, or more than 8
  /// nested lists.
  std::vector<std::size_t> append(nlohmann::json const& values);

  /// The same for the values of the next record. null, or only nulls, mean that it lacks the feature. Also
  /// throws if its shape differs from earlier ones.
  void append_record(nlohmann::json const& values);
  void append_none();  ///< appends a record that lacks it

  /// Appends `count` values of an Open Inference Protocol datatype, in the format of its binary extension.
  /// Throws http::failure (400) if the size of `bytes` differs. Values that need no conversion are not
  /// copied, and must outlive this.
  void append(std::string_view datatype, std::string_view bytes, std::size_t count);
};

/// A tensor for the feature with this name, of the kind that the model takes, or, if that is unknown, of kind
/// `otherwise`.
tensor tensor_for(std::string const& name, std::span<record_feature const> inputs,
                  example::kind otherwise = example::kind::floats);

/// Throws http::failure (400) for a `stray_feature`.
void check_names(std::span<tensor const> given, std::span<record_feature const> inputs);

/// Divides the values among this many records. A record with only nulls lacks the feature. Throws
/// http::failure (400) if only some values are null, or if they cannot be divided.
void share_out(std::span<tensor> inputs, std::size_t rows);

/// Writes record `row` of `rows` into `into`, which is cleared first. If all numbers of a feature are NaN,
/// the record lacks it, like an empty cell of a table.
void to_record(std::span<tensor const> inputs, std::size_t rows, std::size_t row, example& into);

}  // namespace edl::serve

#ifdef EDL_HEADER_ONLY
#include "edl/job/serve/tensor.ipp"
#endif
