// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

/// The name of a single-valued feature that is equal in neighbouring records throughout the source, but not
/// in all: for example the label of a file sorted by label. Checks 72 records, in 12 evenly spread runs of 6.
/// Empty: there is none, records cannot be read, there are fewer than 256, or the source is a folder of
/// pictures, which is shuffled.
std::string sorted_by(source const& of);

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/sorted_by.ipp"
#endif
