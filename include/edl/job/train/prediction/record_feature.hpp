// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/core/error.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// A feature of a record that a model's `feed` reads.
struct record_feature {
  std::string name;
  example::kind kind = example::kind::none;
  std::vector<std::size_t> extents;  ///< of its values; empty: one value; 0: any number
  bool needed = true;                ///< `feed` requires it
  std::size_t usual = 1;             ///< number of values of one record, if it may vary; 0: unknown
  std::string text = {};             ///< for texts: one that `feed` accepts; empty: unknown
};

/// Whether an empty list is a value of the feature, as far as known; otherwise a record with an empty list
/// lacks the feature.
inline bool may_be_empty(record_feature const& f) {
  return f.usual == 0 || f.extents == std::vector<std::size_t>{0};
}

/// The features that a model takes, found from its training records.
struct record_facts {
  std::vector<record_feature> inputs;
  std::vector<std::string> classes;  ///< names of labels 0, 1, …, if the training data have any
  std::string missing{};             ///< --missing of the training; empty: unknown
};

/// Determines what `feed` reads by feeding it some of the first records, for at most about a second. Does not
/// throw: if no record can be fed, there are no inputs. Of texts it keeps only the pattern: "1111-11-11" for
/// a date.
record_facts facts_of(std::function<void(example const& record)> const& feed, data::source const& from);

/// Converts to JSON; empty: nothing is known, or a name is not UTF-8.
std::string to_text(record_facts const& of);

/// Parses the text of `to_text`; empty for any other text.
record_facts read_facts(std::string_view text);

/// Throws data_error, with both shapes, if a record's `given` extents differ from the feature's. A flat list
/// is accepted.
void check_extents(record_feature const& f, view<std::size_t> given);

/// Throws data_error, with both shapes, if the first record of a file has a feature with other extents than
/// the training records, even if `feed` reads it as a list, because its values then have another order. Flat
/// lists on either side are not checked.
void check_records(record_facts const& known, data::source const& of);

/// For records with a fixed set of features, like a table's rows: a warning, which begins with `given`, that
/// lists the model's features that they lack; empty: none. Throws data_error if the model needs one, or if an
/// unused feature has nearly its name.
std::string missing_features(record_facts const& known, data::source const& of, std::string_view given);

/// Features that the model does not take are ignored, like columns of a table. But if one that it takes is
/// missing, the other may be misspelt: returns a sentence that lists the inputs; otherwise empty.
std::string stray_feature(std::span<std::string_view const> given, std::span<record_feature const> inputs);

/// `feed` writes a number of values that differs from the network's input.
struct count_error : data_error {
  count_error(std::string const& what, std::size_t needed) : data_error(what), wanted(needed) {}

  std::size_t wanted;
};

struct found_features {
  std::vector<record_feature> all;
  std::string unknown = {};  ///< why there may be more; empty: the list is complete
};

/// Determines what `feed` reads without a record, by feeding zeros and empty strings: each error names a
/// missing feature. It ends when `feed` succeeds, or an error names none. Optional features that `feed` looks
/// for follow the others. `values`: number of values of the network's input, the assumed length of a list if
/// no count_error gives it. `known`: the result of facts_of, to which it only adds.
found_features features_read_by(std::function<void(example const& record)> const& feed, std::size_t values,
                                std::vector<record_feature> known = {});

namespace detail {

/// A copy of the record with one feature replaced by `put`.
void copy_but(example const& from, std::string_view but, example& into,
              std::function<void(example_builder&)> const& put);

}  // namespace detail
}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/prediction/record_feature.ipp"
#endif
