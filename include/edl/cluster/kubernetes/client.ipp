// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "edl/base/http/client/backoff.hpp"
#include "edl/base/http/client/client.hpp"
#include "edl/base/net/security/certificates.hpp"
#include "edl/cluster/kubernetes/client.hpp"
#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"
#include "edl/core/text.hpp"

namespace edl::kubernetes {
namespace detail {

inline constexpr std::size_t longest_answer = 64 << 20, longest_refusal = 1 << 20;
inline constexpr std::chrono::milliseconds first_pause{100}, longest_pause{5'000};

struct request : http::question {
  std::string path;  // without prefix and query, for messages

  void carry(std::string const& type, std::string text) {
    headers.emplace_back("Content-Type", type);
    body = std::move(text);
  }
};

struct answer {
  int code = 0;
  std::string body;
  std::chrono::seconds retry_after{};
};

// A consumer of a reply as it arrives, and how long the server may be silent.
struct reader {
  std::function<bool(std::string_view)> const& take;
  std::chrono::milliseconds idle;
};

inline request make_request(http::endpoint const& to, std::string method, std::string const& path,
                            query const& q) {
  // An unchecked name must not turn into another request.
  for (char c : path)
    if (c <= ' ' || c == 0x7f || c == '?' || c == '#')
      throw error(
          fmt::format("'{}' is not a path of an API: it has an invalid character", one_line(path, 200)));
  request r{{std::move(method), to.prefix + path}, path};
  char separator = '?';
  for (auto const& [key, value] : q) {
    r.target +=
        std::exchange(separator, '&') + http::percent_encoded(key) + "=" + http::percent_encoded(value);
  }
  return r;
}

inline std::string patch_type(std::string const& kind) {
  if (kind == "merge") return "application/merge-patch+json";
  if (kind == "strategic") return "application/strategic-merge-patch+json";
  if (kind == "json") return "application/json-patch+json";
  if (kind == "apply") return "application/apply-patch+yaml";  // JSON is YAML
  throw error(fmt::format("unknown kind of patch '{}': expected merge, strategic, json or apply", kind));
}

// Parses a Retry-After field. API servers write seconds, never a date.
inline std::chrono::seconds seconds_of(std::string_view text) {
  return std::chrono::seconds(std::min(number_from<unsigned>(text).value_or(0), 3600u));
}

inline std::string to_body(nlohmann::json const& object) {
  try {
    return object.dump();
  } catch (nlohmann::json::exception const&) {
    throw error("the object cannot be sent: a name or a value in it is not valid UTF-8");
  }
}

inline bool worth_repeating(int code) { return code == 429 || code == 500 || (code >= 502 && code <= 504); }

}  // namespace detail

struct client::implementation {
  access const given;
  options const set;
  http::client line;
  std::atomic<bool> stopped{false};

  std::mutex identity_mutex;
  access now;  // `given` with the current certificates

  implementation(access a, options o)
      : given(std::move(a)),
        set(std::move(o)),
        line({.at = http::parse_endpoint(given.server, "an API server"),
              .name = "the API server",
              .origin = given.origin,
              .certified = given.server_name,
              .other_name = ", or name it as tls-server-name",
              .other_authority = ", and the certificate-authority that of this cluster"}),
        now(given) {}

  http::endpoint const& to() const { return line.server().at; }

  std::string name(detail::request const& r) const {
    return fmt::format("{} {}{}{}", r.method, to().url(), to().prefix, r.path);
  }

  // The token for a request; `refused`: the one that the server has just refused.
  std::string identify(std::string const* refused) {
    std::lock_guard const lock(identity_mutex);
    std::string token;
    if (given.token) {
      token = given.token(false);
      // Another call may have renewed it already.
      if (refused && token == *refused) token = given.token(true);
    }
    bool const changed = given.renew && given.renew(now);
    bool const present = line.has_certificates();
    if (!to().tls || (present && !changed)) return token;
    try {
      line.use(load_certificates());
    } catch (error const& e) {
      // Files are replaced one by one: keep the old ones until all match.
      if (!present) throw untrusted(e.what());
    }
    return token;
  }

  std::shared_ptr<ssl_ctx_st> load_certificates() const {
    if (now.certificate.empty() != now.key.empty())
      throw error(fmt::format("{}: it has a client-{}, but no client-{}", now.origin,
                              now.key.empty() ? "certificate" : "key",
                              now.key.empty() ? "key" : "certificate"));
    auto const pem = [&](std::string const& text, char const* what) {
      return net::pem{text, fmt::format("{}: {}", now.origin, what)};
    };
    return net::load_trust({.authorities = pem(now.ca, "certificate-authority"),
                            .insecure = now.insecure,
                            .certificate = pem(now.certificate, "client-certificate"),
                            .key = pem(now.key, "client-key")});
  }

  detail::answer ask(detail::request const& r, std::string const& token, http::limit const& within,
                     detail::reader const* to_reader, bool& sent) {
    detail::answer a;
    http::question q = r;
    q.headers.insert(q.headers.end(), {{"User-Agent", set.agent}, {"Accept", "application/json"}});
    if (!token.empty()) q.headers.emplace_back("Authorization", "Bearer " + token);
    auto const take = [&](http::response_parser const& head, std::string_view part) {
      bool const good = head.code() < 300;
      if (to_reader && good) return to_reader->take(part);
      auto const longest = good ? detail::longest_answer : detail::longest_refusal;
      if (a.body.size() + part.size() > longest)
        throw error(fmt::format("{}: the reply is longer than {} MiB", name(r), longest >> 20));
      a.body.append(part);
      return true;
    };
    auto const head =
        line.ask(q, within, take, sent, to_reader ? std::optional(to_reader->idle) : std::nullopt);
    a.code = head.code();
    a.retry_after = detail::seconds_of(head.field("retry-after"));
    return a;
  }

  // One successful reply.
  detail::answer once(detail::request const& r, http::limit const& within, detail::reader const* to_reader,
                      bool& sent) {
    detail::answer a;
    try {
      auto token = identify(nullptr);
      a = ask(r, token, within, to_reader, sent);
      if (a.code == 401 && given.token) {
        token = identify(&token);
        a = ask(r, token, within, to_reader, sent);
      }
    } catch (unreachable const& e) {
      throw unreachable(fmt::format("{} {}: {}", r.method, r.path, e.what()));
    } catch (untrusted const& e) {
      throw untrusted(fmt::format("{} {}: {}", r.method, r.path, e.what()));
    }
    if (a.code >= 300) throw refusal(a.code, a.body, name(r), given.origin, a.retry_after);
    return a;
  }

  nlohmann::json call(detail::request const& r) {
    std::function<bool()> const is_stopped = [this] { return stopped.load(); };
    auto const end = clock::now() + set.retry_timeout;
    http::backoff pauses(detail::first_pause, detail::longest_pause, std::random_device()());
    for (int times = 1;; ++times) {
      bool sent = false;
      auto const tried = [&] {
        return times == 1 ? std::string()
                          : fmt::format("; requested {} times in {} s", times,
                                        double(set.retry_timeout.count()) / 1000);
      };
      try {
        auto within = http::limit::of(set.timeout, &is_stopped);
        if (times > 1) within.until = std::min(within.until, end);
        auto const a = once(r, within, nullptr, sent);
        if (a.body.empty()) return nullptr;
        auto object = parse_json(a.body);
        if (object.is_discarded())
          throw error(
              fmt::format("{}: the reply is {}: '{}'", name(r), why_no_json(a.body), one_line(a.body, 200)));
        return object;
      } catch (stopped_error const&) {
        throw unreachable(fmt::format("{}: stopped", name(r)));
      } catch (api_error const& e) {
        bool const again = detail::worth_repeating(e.code()) && (r.harmless || e.code() == 429);
        if (!again) throw;
        if (!line.pause(std::max<std::chrono::milliseconds>(pauses.next(), e.retry_after()), end))
          throw api_error(e.code(), e.reason(), e.message(), e.what() + tried(), e.retry_after());
      } catch (unreachable const& e) {
        if (sent && !r.harmless) throw;
        if (!line.pause(pauses.next(), end)) throw unreachable(e.what() + tried());
      }
    }
  }
};

EDL_INLINE client::client(access a) : client(std::move(a), options{}) {}

EDL_INLINE client::client(access a, options o)
    : self_(std::make_unique<implementation>(std::move(a), std::move(o))) {}

EDL_INLINE client::~client() = default;

EDL_INLINE access const& client::via() const { return self_->given; }

EDL_INLINE void client::stop() {
  self_->stopped = true;
  self_->line.stop();
}

EDL_INLINE nlohmann::json client::get(std::string const& path, query const& q) {
  return self_->call(detail::make_request(self_->to(), "GET", path, q));
}

EDL_INLINE nlohmann::json client::create(std::string const& path, nlohmann::json const& object,
                                         query const& q) {
  auto r = detail::make_request(self_->to(), "POST", path, q);
  r.carry("application/json", detail::to_body(object));
  auto const metadata = object.find("metadata");
  r.harmless = metadata != object.end() && metadata->contains("name");
  return self_->call(r);
}

EDL_INLINE nlohmann::json client::patch(std::string const& path, nlohmann::json const& change,
                                        std::string const& kind, query const& q) {
  auto r = detail::make_request(self_->to(), "PATCH", path, q);
  r.carry(detail::patch_type(kind), detail::to_body(change));
  r.harmless = kind != "json";
  return self_->call(r);
}

EDL_INLINE nlohmann::json client::replace(std::string const& path, nlohmann::json const& object,
                                          query const& q) {
  auto r = detail::make_request(self_->to(), "PUT", path, q);
  r.carry("application/json", detail::to_body(object));
  r.harmless = false;
  return self_->call(r);
}

EDL_INLINE nlohmann::json client::remove(std::string const& path, nlohmann::json const& how, query const& q) {
  auto r = detail::make_request(self_->to(), "DELETE", path, q);
  if (!how.empty()) r.carry("application/json", detail::to_body(how));
  return self_->call(r);
}

EDL_INLINE void client::stream(std::string const& path, query const& q,
                               std::function<bool(std::string_view)> const& take,
                               std::chrono::milliseconds idle, std::function<bool()> const& stopped) {
  auto const r = detail::make_request(self_->to(), "GET", path, q);
  std::function<bool()> const enough = [&] { return self_->stopped || (stopped && stopped()); };
  bool sent = false;
  try {
    detail::reader const to{take, idle};
    self_->once(r, http::limit::of(self_->set.timeout, &enough), &to, sent);
  } catch (stopped_error const&) {
    if (self_->stopped) throw unreachable(fmt::format("{}: stopped", self_->name(r)));
  }
}

EDL_INLINE std::optional<server_version> ask_version(client& of) {
  auto const reply = of.get("/version");
  auto const read = [&](char const* name) {
    std::string const all = text(field(reply, {name}));  // cloud providers write "36+"
    return number(all.substr(0, all.find_first_not_of("0123456789")));
  };
  auto const major = read("major"), minor = read("minor");
  return major && minor ? std::optional(server_version{*major, *minor}) : std::nullopt;
}

EDL_INLINE bool refuses_restart_rules(api_error const& e) {
  return (e.code() == 422 || e.code() == 400) && e.message().find("restartPolicy") != std::string::npos;
}

}  // namespace edl::kubernetes
