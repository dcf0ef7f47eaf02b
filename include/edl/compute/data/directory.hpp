// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "edl/core/inline.hpp"

namespace edl::data::detail {

/// What stands in a directory, by name in byte order. Names that begin with a point are left out.
struct listing {
  std::vector<std::string> files, folders;
};

/// An error names the directory if it cannot be listed.
listing list_directory(std::string const& directory);

/// Whether a name ends so, in small or capital letters. `ending` is small.
bool ends_as(std::string_view name, std::string_view ending);

/// Whether a name says that the file is no data. It begins with `_`, README or LICENSE then, or ends as
/// texts, checksums, unfinished files and what Windows puts into folders do.
bool clearly_no_data(std::string_view name);

/// The paths that a pattern of the shell matches (`*`, `?`, `[…]`), in byte order. Empty: there are none.
std::vector<std::string> matching_paths(std::string const& pattern);

/// Whether a path has characters of such a pattern.
bool is_pattern(std::string_view path);

}  // namespace edl::data::detail

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/directory.ipp"
#endif
