// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace edl::bucket {

struct object {
  std::string key;
  std::uint64_t size = 0;  ///< bytes
  std::string etag;        ///< as sent, with quotation marks
};

/// A page of a list of objects (ListObjectsV2).
struct list_page {
  std::vector<object> objects;       ///< without "folders"
  std::vector<std::string> folders;  ///< keys up to a delimiter, if the list has one
  std::size_t entries = 0;           ///< all of these
  std::string next;                  ///< the token of the next page; empty: there is none
};

/// Reads a page, of objects whose keys begin with `prefix`. Throws error, which begins with `what`, for
/// anything else.
list_page read_page(std::string_view xml, std::string_view prefix, std::string const& what);

}  // namespace edl::bucket

#ifdef EDL_HEADER_ONLY
#include "edl/base/bucket/list_page.ipp"
#endif
