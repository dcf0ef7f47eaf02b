// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "edl/compute/data/format/example.hpp"
#include "edl/core/error.hpp"

namespace edl {

/// A feature of a record that a model's `feed` asks for.
struct record_feature {
  std::string name;
  example::kind kind = example::kind::none;
  std::vector<std::size_t> extents;  ///< of its values; empty: one value
};

/// `feed` writes another number of values than an input of the network has.
struct count_error : data_error {
  count_error(std::string const& what, std::size_t needed) : data_error(what), wanted(needed) {}

  std::size_t wanted;
};

/// Finds out what `feed` asks for, by feeding records of zeros and empty strings: each error says what is
/// lacking. It ends where `feed` is content, or an error says nothing of that kind. Behind these stand those
/// that it looks for then, and does without. `values`: of the
/// network's input, which a list of unknown length may be, where a
/// count_error does not say more.
std::vector<record_feature> features_read_by(std::function<void(example const& record)> const& feed,
                                             std::size_t values);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/prediction/record_feature.ipp"
#endif
