// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>
#include <utility>

#include "edl/base/bucket/role.hpp"
#include "edl/base/bucket/service.hpp"
#include "edl/base/http/client/backoff.hpp"
#include "edl/base/http/client/metadata_service.hpp"
#include "edl/base/http/message.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"
#include "edl/core/wall_time.hpp"

namespace edl::bucket {
namespace detail {

inline constexpr std::size_t longest_token = 64 << 10;
inline constexpr std::chrono::milliseconds longest_exchange{10'000}, exchange_tries{20'000};

inline std::string token_of(char const* name, std::string const& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text(longest_token + 1, '\0');
  in.read(text.data(), std::streamsize(text.size()));
  text.resize(std::size_t(in.gcount()));
  std::string token(trimmed(text));
  if (token.empty() || text.size() > longest_token)
    throw error(fmt::format("{}={}: no such file, or it is empty or larger than 64 KiB", name, file));
  return token;
}

inline std::time_t time_of(std::string const& text) {
  auto const seconds = seconds_of(text);
  return seconds && *seconds > 0 ? std::time_t(*seconds) : 0;
}

// Of ECS, of EKS Pod Identity (as an IPv4 and an IPv6 address), and of the same container. A token must not
// go to another host in the clear.
inline bool serves_containers(http::endpoint const& at) {
  static constexpr std::array hosts{"169.254.170.2", "169.254.170.23", "fd00:ec2::23",
                                    "127.0.0.1",     "localhost",      "::1"};
  return std::ranges::find(hosts, at.host) != hosts.end();
}

inline role container_role(environment const& variable, std::string const& url) {
  std::string const origin = "AWS_CONTAINER_CREDENTIALS_FULL_URI=" + printable(url, 200);
  auto const slash =
      std::min(url.find('/', url.find("://") == url.npos ? 0 : url.find("://") + 3), url.size());
  std::string const address = url.substr(0, slash), path = slash < url.size() ? url.substr(slash) : "/";
  if (!serves_containers(http::parse_endpoint(address, "a container's service of credentials")))
    throw error(origin +
                ": credentials are only fetched from this machine: http://169.254.170.23 and the like");
  http::fields headers;
  std::string token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  constexpr char const* in_file = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
  if (auto const file = variable(in_file); !file.empty()) token = token_of(in_file, file);
  if (token.find_first_of("\r\n") != token.npos) throw error(origin + ": its token has several lines");
  if (!token.empty()) headers.emplace_back("Authorization", token);
  http::metadata_service service(address);
  http::metadata_service::reply r;
  for (int tries = 0; tries < 3 && r.code != 200; ++tries) r = service.ask("GET", path, headers);
  if (r.code == 200)
    if (auto found = role_in(r.body, origin)) return *std::move(found);
  throw error(fmt::format(
      "{}: no credentials of a role: the service {}; is the pod's service account associated "
      "with a role?",
      origin,
      r.code == 0 ? "does not answer" : fmt::format("replies {}: {}", r.code, printable(r.body, 200))));
}

}  // namespace detail

EDL_INLINE std::optional<role> role_in(std::string_view json, std::string origin) {
  auto const all = parse_json(json);
  auto const text = [&](char const* name) {
    auto const it = all.find(name);
    return it != all.end() && it->is_string() ? it->get<std::string>() : std::string();
  };
  if (!all.is_object() || text("AccessKeyId").empty() || text("SecretAccessKey").empty()) return std::nullopt;
  return role{{text("AccessKeyId"), text("SecretAccessKey"), text("Token")},
              detail::time_of(text("Expiration")),
              std::move(origin)};
}

EDL_INLINE std::optional<role> web_identity_role(environment const& variable, std::string const& region) {
  constexpr char const* in_file = "AWS_WEB_IDENTITY_TOKEN_FILE";
  std::string const file = variable(in_file), arn = variable("AWS_ROLE_ARN");
  if (file.empty() || arn.empty()) return std::nullopt;
  std::string address = variable("AWS_ENDPOINT_URL_STS");
  if (address.empty()) address = variable("AWS_ENDPOINT_URL");
  if (address.empty()) address = fmt::format("https://sts.{}.amazonaws.com", region);
  std::string session = variable("AWS_ROLE_SESSION_NAME");
  if (session.empty()) session = "edl";
  std::string const origin = fmt::format("{}={}", in_file, printable(file, 200));
  http::peer to{.at = http::parse_endpoint(address, "AWS's token service (AWS_ENDPOINT_URL_STS)"),
                .name = "AWS's token service",
                .other_name = ", or another AWS_ENDPOINT_URL_STS",
                .other_authority = ", and AWS_CA_BUNDLE the file of its authority"};
  http::question const q{
      "POST",
      to.at.prefix + "/",
      {{"Content-Type", "application/x-www-form-urlencoded"}},
      fmt::format("Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn={}&RoleSessionName={}"
                  "&WebIdentityToken={}",
                  http::percent_encoded(arn), http::percent_encoded(session),
                  http::percent_encoded(detail::token_of(in_file, file)))};
  auto const line = detail::make_line(std::move(to), variable("AWS_CA_BUNDLE"));
  http::backoff pauses(std::chrono::milliseconds(100), std::chrono::milliseconds(2'000),
                       std::random_device()());
  for (auto const end = clock::now() + detail::exchange_tries;;) {
    std::string body, why;
    int code = 0;
    bool sent = false;
    http::client::sink const take = [&](auto&, std::string_view part) {
      body.append(part);
      return body.size() <= detail::longest_token;
    };
    try {
      code = line->ask(q, http::limit::of(detail::longest_exchange), take, sent).code();
    } catch (http::unreachable const& e) {
      why = e.what();
    }
    using detail::element, detail::plain;
    role r{{plain(element(body, "AccessKeyId")), plain(element(body, "SecretAccessKey")),
            plain(element(body, "SessionToken"))},
           detail::time_of(plain(element(body, "Expiration"))),
           fmt::format("{} and AWS_ROLE_ARN={}", origin, printable(arn, 200))};
    if (code == 200 && !r.who.key.empty() && !r.who.secret.empty() && !r.who.session.empty()) return r;
    std::string const failure = plain(element(body, "Code"));
    if (code != 0)
      why = fmt::format("{} replies {} {}: {}", line->server().describe(), code, printable(failure, 100),
                        printable(plain(element(body, "Message")), 300));
    bool const passes = code == 0 || code == 429 || code >= 500 || failure == "IDPCommunicationError" ||
                        failure == "Throttling";
    if (passes && line->pause(pauses.next(), end)) continue;
    throw error(
        fmt::format("{}: no credentials of the role {}: {}{}", origin, printable(arn, 200), why,
                    passes ? ""
                    : failure == "ExpiredTokenException"
                        ? "; the token in the file is old: is it still projected into the pod?"
                        : "; does the role trust the pod's service account, and is AWS_ROLE_ARN its name?"));
  }
}

EDL_INLINE std::optional<role> machine_role(environment const& variable) {
  if (auto const url = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI"); !url.empty())
    return detail::container_role(variable, url);
  if (auto const path = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); !path.empty())
    return detail::container_role(variable, "http://169.254.170.2" + path);
  if (lower(variable("AWS_EC2_METADATA_DISABLED")) == "true") return std::nullopt;
  http::aws_metadata machine(variable);
  std::string const all = "iam/security-credentials/";
  auto const names = machine.get(all);
  std::string const name(trimmed(names.body.substr(0, names.body.find('\n'))));
  if (names.code != 200 || name.empty() || name.size() > 256) return std::nullopt;
  auto const reply = machine.get(all + http::percent_encoded(name));
  if (reply.code != 200) return std::nullopt;
  return role_in(reply.body, fmt::format("the machine's role {}", printable(name, 100)));
}

}  // namespace edl::bucket
