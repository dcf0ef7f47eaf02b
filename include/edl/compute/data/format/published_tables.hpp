// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/data/format/csv.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

/// UCI's census income ("Adult", doi 10.24432/C5XW20): 14 columns and `label`, without a header row. Texts
/// begin with a blank; those of adult.test end with a point, and its first row is a comment.
csv_options census_options();

/// The click logs of Criteo's display advertising challenge (2014): `label`, 13 counts `i1` to `i13`, and 26
/// texts `c1` to `c26`, with tabs. A count may be missing.
csv_options criteo_options();

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/published_tables.ipp"
#endif
