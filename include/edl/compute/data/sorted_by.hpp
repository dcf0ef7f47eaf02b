// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

/// The name of a feature of one value that neighbouring records share all over the source, though it has
/// several values. The label of a file that is sorted by it is such a one. Empty: there is none, as far as 72
/// records tell, in runs of 6 that are evenly spread. Nothing is said of records that cannot be read, of
/// fewer than 256, and of pictures in folders, which are mixed.
std::string sorted_by(source const& of);

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/sorted_by.ipp"
#endif
