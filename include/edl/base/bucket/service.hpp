// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "edl/base/http/client/client.hpp"

/// What the services of AWS have in common.
namespace edl::bucket::detail {

/// The text of the first element with this name. AWS writes the elements that we read without attributes and
/// comments.
std::string_view element(std::string_view xml, std::string_view name);

/// Decodes XML's entities.
std::string plain(std::string_view text);

/// A client of a service. `ca_file`: certificates of its authorities (PEM); empty: the system's.
std::unique_ptr<http::client> make_line(http::peer to, std::string const& ca_file);

}  // namespace edl::bucket::detail

#ifdef EDL_HEADER_ONLY
#include "edl/base/bucket/service.ipp"
#endif
