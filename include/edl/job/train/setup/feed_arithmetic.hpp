// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "edl/compute/onnx/preprocessing.hpp"
#include "edl/job/train/prediction/record_feature.hpp"
#include "edl/job/train/setup/program.hpp"

namespace edl::train {

/// The arithmetic of a model's `feed` on a record's numbers, for each input of numbers by its name ("input"
/// for the only one). It is determined by feeding artificial records that identify each number, and verified
/// with records of other numbers and texts. Throws usage_error, which names --export_preprocess, if part of
/// an input is not a multiple of one number of the record plus a constant.
std::map<std::string, onnx::preprocessing> arithmetic_of_feed(program const& p,
                                                              record_facts const& known = {});

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/setup/feed_arithmetic.ipp"
#endif
