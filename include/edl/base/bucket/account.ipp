// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string_view>

#include "edl/base/bucket/account.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"

namespace edl::bucket {
namespace detail {

// Reads one profile from a file of profiles: a section `[default]`, `[name]`, or `[profile name]` with lines
// `key = value`.
inline void read_profile(std::string const& file, std::string const& profile,
                         std::map<std::string, std::string>& into) {
  std::ifstream in(file);
  bool ours = false;
  std::size_t bytes = 0;
  for (std::string line; std::getline(in, line);) {
    bytes += line.size();
    if (bytes > 1 << 20) throw error(fmt::format("{}: it is larger than 1 MiB", file));
    auto const text = trimmed(line);
    if (text.starts_with('[')) {
      auto name = trimmed(text.substr(1, text.find(']') - 1));
      if (name.starts_with("profile ")) name = trimmed(name.substr(8));
      ours = name == profile;
    } else if (auto const equals = text.find('='); ours && equals != text.npos && !text.starts_with('#')) {
      into.emplace(lower(trimmed(text.substr(0, equals))), trimmed(text.substr(equals + 1)));
    }
  }
}

}  // namespace detail

EDL_INLINE std::string process_environment(char const* name) {
  char const* const value = std::getenv(name);
  return value ? value : "";
}

EDL_INLINE account find_account(environment const& variable) {
  auto const first_of = [&](std::initializer_list<char const*> names, std::string otherwise) {
    for (char const* name : names)
      if (auto value = variable(name); !value.empty()) return value;
    return otherwise;
  };
  std::string const home = variable("HOME") + "/.aws/", profile = first_of({"AWS_PROFILE"}, "default");
  std::string const secrets = first_of({"AWS_SHARED_CREDENTIALS_FILE"}, home + "credentials");
  std::map<std::string, std::string> from;
  detail::read_profile(secrets, profile, from);
  detail::read_profile(first_of({"AWS_CONFIG_FILE"}, home + "config"), profile, from);
  account a;
  a.region =
      first_of({"AWS_REGION", "AWS_DEFAULT_REGION"}, from["region"].empty() ? a.region : from["region"]);
  a.endpoint = first_of({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}, from["endpoint_url"]);
  a.ca_file = variable("AWS_CA_BUNDLE");
  auto const take = [&](std::optional<role> const& found) {
    if (!found) return false;
    a.who = found->who, a.origin = found->origin, a.expires = found->expires;
    return true;
  };
  a.who = {variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"), variable("AWS_SESSION_TOKEN")};
  a.origin = "AWS_ACCESS_KEY_ID";
  if (a.who.key.empty() && !take(web_identity_role(variable, a.region))) {
    a.who = {from["aws_access_key_id"], from["aws_secret_access_key"], from["aws_session_token"]};
    a.origin = fmt::format("profile '{}' of {}", printable(profile, 100), secrets);
    if (a.who.key.empty()) take(machine_role(variable));
  }
  if (a.who.key.empty() || a.who.secret.empty())
    throw error(
        fmt::format("{}: no credentials for s3:// paths: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
                    "write aws_access_key_id and aws_secret_access_key there, or give the pod or the machine "
                    "a role",
                    a.origin));
  // These values become header fields of a request, where a line break would begin another field.
  for (std::string const* text : {&a.who.key, &a.who.secret, &a.who.session})
    for (char c : *text)
      if (c <= ' ' || c == 0x7f)
        throw error(a.origin + ": a credential contains a blank, a line break or a control character");
  return a;
}

}  // namespace edl::bucket
