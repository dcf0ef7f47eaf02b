// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "edl/base/bucket/service.hpp"
#include "edl/base/net/security/certificates.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::bucket::detail {

EDL_INLINE std::string_view element(std::string_view xml, std::string_view name) {
  auto const open = fmt::format("<{}>", name), close = fmt::format("</{}>", name);
  auto const begin = xml.find(open);
  if (begin == xml.npos) return {};
  auto const end = xml.find(close, begin);
  return end == xml.npos ? std::string_view() : xml.substr(begin + open.size(), end - begin - open.size());
}

EDL_INLINE std::string plain(std::string_view text) {
  static constexpr std::pair<std::string_view, char> entities[] = {
      {"&amp;", '&'},   {"&lt;", '<'},  {"&gt;", '>'},  {"&quot;", '"'},
      {"&apos;", '\''}, {"&#34;", '"'}, {"&#39;", '\''}};
  std::string out;
  while (!text.empty()) {
    auto const* const found =
        std::ranges::find_if(entities, [&](auto const& e) { return text.starts_with(e.first); });
    bool const one = found != std::end(entities);
    out.push_back(one ? found->second : text.front());
    text.remove_prefix(one ? found->first.size() : 1);
  }
  return out;
}

EDL_INLINE std::unique_ptr<http::client> make_line(http::peer to, std::string const& ca_file) {
  bool const tls = to.at.tls;
  auto line = std::make_unique<http::client>(std::move(to));
  if (!tls) return line;
  net::pem ca{{}, "AWS_CA_BUNDLE=" + ca_file};
  if (!ca_file.empty()) {
    std::ifstream in(ca_file);
    ca.text.assign(std::istreambuf_iterator<char>(in), {});
    if (ca.text.empty()) throw error(ca.name + ": no such file, or it is empty");
  }
  line->use(net::load_trust({.authorities = std::move(ca)}));
  return line;
}

}  // namespace edl::bucket::detail
