// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "edl/cluster/kubernetes/backoff.hpp"
#include "edl/cluster/kubernetes/client.hpp"
#include "edl/cluster/kubernetes/connection.hpp"
#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/cluster/kubernetes/http.hpp"
#include "edl/cluster/kubernetes/trust.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/json.hpp"
#include "edl/core/text.hpp"

namespace edl::kubernetes {
namespace detail {

inline constexpr std::size_t longest_answer = 64 << 20, longest_refusal = 1 << 20, most_idle = 32;
// Less than any server or balancer in between keeps an idle connection.
inline constexpr std::chrono::seconds longest_rest{30};
inline constexpr std::chrono::milliseconds first_pause{100}, longest_pause{5'000}, last_words{200};

struct request {
  std::string method, path, target, type, body;
  bool harmless = true;  // to carry out twice
};

struct answer {
  int code = 0;
  std::string body;
  std::chrono::seconds retry_after{};
};

// Who reads an answer while it comes, and how long it may be silent.
struct reader {
  std::function<bool(std::string_view)> const& take;
  std::chrono::milliseconds idle;
};

inline request make_request(endpoint const& to, std::string method, std::string const& path, query const& q) {
  // A name that was not checked must not become another request.
  for (char c : path)
    if (c <= ' ' || c == 0x7f || c == '?' || c == '#')
      throw error(fmt::format("'{}' is no path of an API: it has a character that does not belong there",
                              one_line(path, 200)));
  request r{std::move(method), path, to.prefix + path, {}, {}};
  char separator = '?';
  for (auto const& [key, value] : q) {
    r.target += std::exchange(separator, '&') + percent_encoded(key) + "=" + percent_encoded(value);
  }
  return r;
}

inline std::string patch_type(std::string const& kind) {
  if (kind == "merge") return "application/merge-patch+json";
  if (kind == "strategic") return "application/strategic-merge-patch+json";
  if (kind == "json") return "application/json-patch+json";
  if (kind == "apply") return "application/apply-patch+yaml";  // JSON is YAML
  throw error(fmt::format("there is no patch of kind '{}': merge, strategic, json or apply", kind));
}

// Of a Retry-After field. API servers write seconds, never a date.
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
  endpoint const to;
  std::atomic<bool> stopped{false};

  std::mutex identity_mutex;
  access now;  // `given` with the certificates of the moment

  std::mutex mutex;
  std::condition_variable stopping;
  std::shared_ptr<ssl_ctx_st> certificates;
  struct resting {
    std::unique_ptr<connection> line;
    time_point since;
  };
  std::vector<resting> pool;

  implementation(access a, options o)
      : given(std::move(a)), set(std::move(o)), to(parse_server(given.server)), now(given) {}

  std::string name(detail::request const& r) const {
    return fmt::format("{} {}://{}{}", r.method, to.tls ? "https" : "http", to.authority, to.prefix + r.path);
  }

  // The token to ask with; `refused` is the one that a server has just refused.
  std::string identify(std::string const* refused) {
    std::lock_guard const lock(identity_mutex);
    std::string token;
    if (given.token) {
      token = given.token(false);
      // Another call may have had it renewed already.
      if (refused && token == *refused) token = given.token(true);
    }
    bool const changed = given.renew && given.renew(now);
    if (!to.tls || (certificates && !changed)) return token;
    std::shared_ptr<ssl_ctx_st> fresh;
    try {
      fresh = load_certificates(now);
    } catch (untrusted const&) {
      // Files are replaced one by one: until all fit together, the old ones serve.
      if (certificates) return token;
      throw;
    }
    std::vector<resting> old;  // closed when nobody waits for the mutex
    std::lock_guard const pool_lock(mutex);
    old.swap(pool);
    certificates = std::move(fresh);
    return token;
  }

  // A connection that has served before, or nothing.
  std::unique_ptr<connection> reuse() {
    auto const now_ = clock::now();
    for (;;) {
      resting r;
      {
        std::lock_guard const lock(mutex);
        if (pool.empty()) return nullptr;
        r = std::move(pool.back());
        pool.pop_back();
      }
      if (now_ - r.since < detail::longest_rest && r.line->idle()) return std::move(r.line);
    }
  }

  void keep(std::unique_ptr<connection> line, std::shared_ptr<ssl_ctx_st> const& made_with) {
    std::lock_guard const lock(mutex);
    invariant(line != nullptr, "a connection that is kept is there");
    // One that was made with earlier certificates is closed: it may be of an identity that is no more.
    if (made_with == certificates && pool.size() < detail::most_idle)
      pool.push_back({std::move(line), clock::now()});
    invariant(pool.size() <= detail::most_idle, "no more connections are kept than are allowed");
  }

  std::string text(detail::request const& r, std::string const& token) const {
    std::string out =
        fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {}\r\nAccept: application/json\r\n", r.method,
                    r.target, to.authority, set.agent);
    if (!token.empty()) out += fmt::format("Authorization: Bearer {}\r\n", token);
    if (!r.type.empty())
      out += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", r.type, r.body.size());
    return out + "\r\n" + r.body;
  }

  void read(connection& line, limit const& within, detail::reader const* to_reader, response& head,
            response::sink const& sink) {
    std::array<char, 16 << 10> buffer;
    while (!head.done()) {
      bool const streaming = to_reader && head.headed() && head.code() < 300;
      auto const n = line.receive(buffer, streaming ? limit::of(to_reader->idle, within.stopped) : within);
      if (n > 0)
        head.feed({buffer.data(), n}, sink);
      else if (!head.end())
        throw unreachable(fmt::format("the API server {}://{} ({}) broke off its answer",
                                      to.tls ? "https" : "http", to.authority, given.origin));
    }
  }

  // Sends and reads on one connection. `sent`: the request may have reached the server.
  detail::answer exchange(connection& line, detail::request const& r, std::string const& token,
                          limit const& within, detail::reader const* to_reader, response& head, bool& sent) {
    detail::answer a;
    sent = true;
    // A server that refuses what it is being told, and goes, may have said why.
    std::exception_ptr broken;
    try {
      line.send(text(r, token), within);
    } catch (unreachable const&) {
      broken = std::current_exception();
    }
    response::sink const sink = [&](std::string_view part) {
      bool const good = head.code() < 300;
      if (to_reader && good) return to_reader->take(part);
      auto const longest = good ? detail::longest_answer : detail::longest_refusal;
      if (a.body.size() + part.size() > longest)
        throw error(fmt::format("{}: the answer is longer than {} MiB", name(r), longest >> 20));
      a.body.append(part);
      return true;
    };
    try {
      read(line, broken ? limit::of(detail::last_words, within.stopped) : within, to_reader, head, sink);
    } catch (unreachable const&) {
      if (broken && !head.started()) std::rethrow_exception(broken);
      throw;
    }
    a.code = head.code();
    a.retry_after = detail::seconds_of(head.field("retry-after"));
    return a;
  }

  detail::answer ask(detail::request const& r, std::string const& token, limit const& within,
                     detail::reader const* to_reader, bool& sent) {
    std::shared_ptr<ssl_ctx_st> with;
    {
      std::lock_guard const lock(mutex);
      with = certificates;
    }
    response head;
    if (auto line = reuse()) {
      try {
        auto a = exchange(*line, r, token, within, to_reader, head, sent);
        if (head.reusable()) keep(std::move(line), with);
        return a;
      } catch (unreachable const&) {
        // Most likely the server closed it just then. An answer that has begun is another matter.
        if (head.started() || !r.harmless || clock::now() >= within.until) throw;
      }
      head = {};
      sent = false;
    }
    auto line = std::make_unique<connection>(to, given, with, within);
    auto a = exchange(*line, r, token, within, to_reader, head, sent);
    if (head.reusable()) keep(std::move(line), with);
    return a;
  }

  // One answer that is no refusal.
  detail::answer once(detail::request const& r, limit const& within, detail::reader const* to_reader,
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

  // Waits, unless that would take longer than there is time.
  bool pause(std::chrono::milliseconds time, time_point end) {
    auto const until = clock::now() + time;
    if (until > end) return false;
    std::unique_lock lock(mutex);
    return !stopping.wait_until(lock, until, [&] { return stopped.load(); });
  }

  nlohmann::json call(detail::request const& r) {
    std::function<bool()> const is_stopped = [this] { return stopped.load(); };
    auto const end = clock::now() + set.retry_timeout;
    backoff pauses(detail::first_pause, detail::longest_pause, std::random_device()());
    for (int times = 1;; ++times) {
      bool sent = false;
      auto const tried = [&] {
        return times == 1
                   ? std::string()
                   : fmt::format("; asked {} times in {} s", times, double(set.retry_timeout.count()) / 1000);
      };
      try {
        auto within = limit::of(set.timeout, &is_stopped);
        if (times > 1) within.until = std::min(within.until, end);
        auto const a = once(r, within, nullptr, sent);
        if (a.body.empty()) return nullptr;
        auto object = parse_json(a.body);
        if (object.is_discarded())
          throw error(fmt::format("{}: the answer is {}: '{}'", name(r), no_json, one_line(a.body, 200)));
        return object;
      } catch (stopped_error const&) {
        throw unreachable(fmt::format("{}: stopped", name(r)));
      } catch (api_error const& e) {
        bool const again = detail::worth_repeating(e.code()) && (r.harmless || e.code() == 429);
        if (!again) throw;
        if (!pause(std::max<std::chrono::milliseconds>(pauses.next(), e.retry_after()), end))
          throw api_error(e.code(), e.reason(), e.message(), e.what() + tried(), e.retry_after());
      } catch (unreachable const& e) {
        if (sent && !r.harmless) throw;
        if (!pause(pauses.next(), end)) throw unreachable(e.what() + tried());
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
  std::lock_guard const lock(self_->mutex);
  self_->stopped = true;
  self_->stopping.notify_all();
}

EDL_INLINE nlohmann::json client::get(std::string const& path, query const& q) {
  return self_->call(detail::make_request(self_->to, "GET", path, q));
}

EDL_INLINE nlohmann::json client::create(std::string const& path, nlohmann::json const& object,
                                         query const& q) {
  auto r = detail::make_request(self_->to, "POST", path, q);
  r.type = "application/json";
  r.body = detail::to_body(object);
  auto const metadata = object.find("metadata");
  r.harmless = metadata != object.end() && metadata->contains("name");
  return self_->call(r);
}

EDL_INLINE nlohmann::json client::patch(std::string const& path, nlohmann::json const& change,
                                        std::string const& kind, query const& q) {
  auto r = detail::make_request(self_->to, "PATCH", path, q);
  r.type = detail::patch_type(kind);
  r.body = detail::to_body(change);
  r.harmless = kind != "json";
  return self_->call(r);
}

EDL_INLINE nlohmann::json client::replace(std::string const& path, nlohmann::json const& object,
                                          query const& q) {
  auto r = detail::make_request(self_->to, "PUT", path, q);
  r.type = "application/json";
  r.body = detail::to_body(object);
  r.harmless = false;
  return self_->call(r);
}

EDL_INLINE nlohmann::json client::remove(std::string const& path, nlohmann::json const& how, query const& q) {
  auto r = detail::make_request(self_->to, "DELETE", path, q);
  if (!how.empty()) {
    r.type = "application/json";
    r.body = detail::to_body(how);
  }
  return self_->call(r);
}

EDL_INLINE void client::stream(std::string const& path, query const& q,
                               std::function<bool(std::string_view)> const& take,
                               std::chrono::milliseconds idle, std::function<bool()> const& stopped) {
  auto const r = detail::make_request(self_->to, "GET", path, q);
  std::function<bool()> const enough = [&] { return self_->stopped || (stopped && stopped()); };
  bool sent = false;
  try {
    detail::reader const to{take, idle};
    self_->once(r, limit::of(self_->set.timeout, &enough), &to, sent);
  } catch (stopped_error const&) {
    if (self_->stopped) throw unreachable(fmt::format("{}: stopped", self_->name(r)));
  }
}

EDL_INLINE std::optional<server_version> ask_version(client& of) {
  auto const told = of.get("/version");
  auto const read = [&](char const* name) {
    std::string const all = text(field(told, {name}));  // providers write "36+"
    return number(all.substr(0, all.find_first_not_of("0123456789")));
  };
  auto const major = read("major"), minor = read("minor");
  return major && minor ? std::optional(server_version{*major, *minor}) : std::nullopt;
}

EDL_INLINE bool refuses_restart_rules(api_error const& e) {
  return (e.code() == 422 || e.code() == 400) && e.message().find("restartPolicy") != std::string::npos;
}

}  // namespace edl::kubernetes
