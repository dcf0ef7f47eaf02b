// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "edl/base/bucket/list_page.hpp"
#include "edl/base/bucket/service.hpp"
#include "edl/base/http/message.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"

namespace edl::bucket {

EDL_INLINE list_page read_page(std::string_view xml, std::string_view prefix, std::string const& what) {
  std::string_view rest = xml;
  if (detail::element(rest, "Name").empty() && detail::element(rest, "KeyCount").empty() &&
      detail::element(rest, "IsTruncated").empty())
    throw error(fmt::format("{}: the reply is not a list of objects: '{}'", what, printable(xml, 200)));
  bool const coded = detail::element(rest, "EncodingType") == "url";
  list_page page;
  for (std::string_view one; !(one = detail::element(rest, "Contents")).empty(); ++page.entries) {
    rest = rest.substr(std::size_t(one.data() + one.size() - rest.data()));
    auto const invalid = [&] {
      return error(fmt::format("{}: the list has an invalid entry: '{}'", what, printable(one, 200)));
    };
    object o{detail::plain(detail::element(one, "Key")), 0, detail::plain(detail::element(one, "ETag"))};
    try {
      if (coded) o.key = http::decoded(o.key, true);
    } catch (http::failure const&) {
      throw invalid();
    }
    auto const size = number_from<std::uint64_t>(detail::element(one, "Size"));
    if (o.key.empty() || !o.key.starts_with(prefix) || !size || o.etag.empty()) throw invalid();
    o.size = *size;
    if (!o.key.ends_with('/')) page.objects.push_back(std::move(o));
  }
  if (auto const begun = rest.find("<Contents"); begun != rest.npos)
    throw error(
        fmt::format("{}: the list has an invalid entry: '{}'", what, printable(rest.substr(begun), 200)));
  auto const truncated = detail::element(xml, "IsTruncated");
  if (!truncated.empty() && truncated != "true" && truncated != "false")
    throw error(fmt::format("{}: the list has the IsTruncated '{}'", what, printable(truncated, 100)));
  if (truncated == "true") {
    page.next = detail::plain(detail::element(xml, "NextContinuationToken"));
    if (page.next.empty())
      throw error(what + ": the list is truncated, but the store does not say where it continues");
  }
  return page;
}

}  // namespace edl::bucket
