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
  auto const invalid = [&](std::string_view one) {
    return error(fmt::format("{}: the list has an invalid entry: '{}'", what, printable(one, 200)));
  };
  auto const key_of = [&](std::string_view text, std::string_view one) {
    std::string key = detail::plain(text);
    try {
      return coded ? http::decoded(key, true) : key;
    } catch (http::failure const&) {
      throw invalid(one);
    }
  };
  list_page page;
  for (std::string_view one; !(one = detail::element(rest, "Contents")).empty(); ++page.entries) {
    rest = rest.substr(std::size_t(one.data() + one.size() - rest.data()));
    object o{key_of(detail::element(one, "Key"), one), 0, detail::plain(detail::element(one, "ETag"))};
    auto const size = number_from<std::uint64_t>(detail::element(one, "Size"));
    if (o.key.empty() || !o.key.starts_with(prefix) || !size || o.etag.empty()) throw invalid(one);
    o.size = *size;
    if (!o.key.ends_with('/')) page.objects.push_back(std::move(o));
  }
  if (auto const begun = rest.find("<Contents"); begun != rest.npos) throw invalid(rest.substr(begun));
  rest = xml;
  for (std::string_view one; !(one = detail::element(rest, "CommonPrefixes")).empty(); ++page.entries) {
    rest = rest.substr(std::size_t(one.data() + one.size() - rest.data()));
    std::string key = key_of(detail::element(one, "Prefix"), one);
    if (!key.starts_with(prefix) || !key.ends_with('/')) throw invalid(one);
    page.folders.push_back(std::move(key));
  }
  if (auto const begun = rest.find("<CommonPrefixes"); begun != rest.npos) throw invalid(rest.substr(begun));
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
