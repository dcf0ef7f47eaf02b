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

/// A feature of a record that a model's `feed` asks for.
struct record_feature {
  std::string name;
  example::kind kind = example::kind::none;
  std::vector<std::size_t> extents;  ///< of its values; empty: one value; 0: any number
  bool needed = true;                ///< `feed` does not do without
  std::size_t usual = 1;             ///< values of one record, where it may have any number; 0: not known
  std::string text = {};             ///< of texts: one that `feed` takes; empty: not known
};

/// Whether an empty list is one of the feature's, as far as that is known; else a record with it lacks it.
inline bool may_be_empty(record_feature const& f) {
  return f.usual == 0 || f.extents == std::vector<std::size_t>{0};
}

/// What a model takes of a record, as the records that it was trained with show it.
struct record_facts {
  std::vector<record_feature> inputs;
  std::vector<std::string> classes;  ///< names of labels 0, 1, …, where the training data have any
};

/// Finds out what `feed` asks for by feeding it some of the first records, for at most about a second. It
/// throws nothing: where no record can be fed there are no inputs. Texts are not kept, but for their pattern:
/// "1111-11-11" of a date.
record_facts facts_of(std::function<void(example const& record)> const& feed, data::source const& from);

/// As JSON; empty: nothing is known, or a name is no UTF-8.
std::string to_text(record_facts const& of);

/// What `to_text` has made; nothing of any other text.
record_facts read_facts(std::string_view text);

/// Throws data_error, with both shapes, where values of a record that came in `given` extents are not in
/// those of the feature. A flat list may be.
void check_extents(record_feature const& f, view<std::size_t> given);

/// Throws data_error, with both shapes, where the first record of a file has a feature in other extents than
/// the records of the training had, also where `feed` reads it as a list: its values are in another order
/// then. Lists on either side say nothing of their order.
void check_records(record_facts const& known, data::source const& of);

/// Of records that can have certain features only, as a table's rows: which of those that a model takes they
/// cannot have, as a warning that begins with `given`; empty: none. Throws data_error where the model needs
/// one, or where a feature that the model does not take has nearly its name.
std::string missing_features(record_facts const& known, data::source const& of, std::string_view given);

/// A feature that the model does not take is ignored, as a column of a table is. Where one that it takes is
/// not given, it may be a misspelt name: a sentence that lists the inputs; empty otherwise.
std::string stray_feature(std::span<std::string_view const> given, std::span<record_feature const> inputs);

/// `feed` writes another number of values than an input of the network has.
struct count_error : data_error {
  count_error(std::string const& what, std::size_t needed) : data_error(what), wanted(needed) {}

  std::size_t wanted;
};

struct found_features {
  std::vector<record_feature> all;
  std::string unknown = {};  ///< why there may be more; empty: these are all
};

/// Finds out what `feed` asks for without a record, by feeding zeros and empty strings: each error says what
/// is missing. It ends where `feed` is content, or an error says nothing of that kind. Behind these stand
/// those that it looks for then, and does without. `values`: of the network's input, which a list of unknown
/// length may be, where a count_error does not say more. `known`: what facts_of has found; it is only added
/// to.
found_features features_read_by(std::function<void(example const& record)> const& feed, std::size_t values,
                                std::vector<record_feature> known = {});

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/prediction/record_feature.ipp"
#endif
