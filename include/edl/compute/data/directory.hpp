// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "edl/core/inline.hpp"

namespace edl::data::detail {

/// The entries of a directory, sorted by name in byte order, without names that begin with a point.
struct listing {
  std::vector<std::string> files, folders;
};

/// Throws error, which names the directory, if it cannot be listed.
listing list_directory(std::string const& directory);

/// Whether a name ends with `ending`, in lower or upper case. `ending` is lower case.
bool ends_as(std::string_view name, std::string_view ending);

/// Whether a name marks a file as no data: it begins with `_`, README or LICENSE, or ends like texts,
/// checksums, unfinished files and Windows's own files.
bool clearly_no_data(std::string_view name);

/// The paths that match a shell pattern (`*`, `?`, `[…]`), in byte order. Empty: there are none.
std::vector<std::string> matching_paths(std::string const& pattern);

/// Whether a path has characters of a shell pattern.
bool is_pattern(std::string_view path);

}  // namespace edl::data::detail

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/directory.ipp"
#endif
