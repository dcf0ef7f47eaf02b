// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <edl/core/error.hpp>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

/// How long a server may take, and how often it is asked.
struct http_limits {
  std::chrono::milliseconds silence{10'000};  ///< until a connection stands, and from one byte to the next
  std::chrono::milliseconds answer{300'000};  ///< for all of an answer, however slowly it comes
  int tries = 5;                              ///< of one `read`
  std::chrono::milliseconds pause{200};       ///< before the second try; twice as long before each later one
};

/// A file on a web server, of which any bytes are read by range requests (RFC 9110, section 14). What may
/// pass is tried again from the byte that it broke off at: lost connections, silence, and the answers 408,
/// 429 and 5xx. Anything else is an edl::error at once: a server without ranges, a redirection, a file that
/// is not there, or has changed. Errors name URL and byte. Thread safety: distinct objects: safe. Shared
/// objects: unsafe.
class http_file {
 public:
  /// `url`: http:// or https://, whose certificate must be one that the machine trusts. Asks for the size.
  explicit http_file(std::string const& url, http_limits limits = {})
      : limits_(limits),
        name_(url.substr(0, url.find('?'))),
        client_(origin_of(url)),
        target_(target_of(url)) {
    client_.set_keep_alive(true);
    client_.set_connection_timeout(limits_.silence);
    client_.set_read_timeout(limits_.silence);
    client_.set_write_timeout(limits_.silence);
    char first = 0;
    read(0, std::span(&first, 1));
  }

  /// The URL without what stands behind `?`, which may be a signature.
  std::string const& name() const { return name_; }
  std::uint64_t size() const { return *size_; }  ///< bytes

  /// Bytes [offset, offset + into.size()).
  void read(std::uint64_t offset, std::span<char> into) {
    auto pause = limits_.pause;
    for (int tried = 0; !into.empty(); pause *= 2) {
      if (size_ && into.size() > *size_ - std::min(offset, *size_))
        throw edl::error(
            fmt::format("{}: ends at byte {}, before byte {}", name_, *size_, offset + into.size()));
      auto const [got, why] = ask(offset, into);
      offset += got;
      into = into.subspan(got);
      if (into.empty() || size_ == 0u) return;
      if (++tried >= limits_.tries)
        throw edl::error(fmt::format("{}: byte {}: {}; tried {} times", name_, offset, why, tried));
      std::this_thread::sleep_for(pause);
    }
  }

 private:
  struct outcome {
    std::size_t got = 0;  // bytes, from the first on
    std::string why;      // there are no more
  };

  static std::string origin_of(std::string const& url) {
    return url.substr(0, url.find_first_of("/?", url.find("//") + 2));
  }
  static std::string target_of(std::string const& url) {
    auto const at = url.find_first_of("/?", url.find("//") + 2);
    if (at == url.npos) return "/";
    return url[at] == '/' ? url.substr(at) : "/" + url.substr(at);
  }

  outcome ask(std::uint64_t offset, std::span<char> into) {
    outcome o;
    std::string refusal;
    bool late = false;
    std::mutex mutex;
    httplib::Headers const headers{{"Range", fmt::format("bytes={}-{}", offset, offset + into.size() - 1)},
                                   {"Accept-Encoding", "identity"}};
    // The library bounds each wait alone: a byte now and then would keep it for ever.
    std::jthread watch([&](std::stop_token const& done) {
      std::condition_variable_any ended;
      std::unique_lock lock(mutex);
      ended.wait_for(lock, done, limits_.answer, [] { return false; });
      late = !done.stop_requested();
      if (late) client_.stop();
    });
    auto const result = client_.Get(
        target_, headers,
        [&](httplib::Response const& r) {
          if (r.status == 408 || r.status == 429 || r.status >= 500)
            o.why = fmt::format("the server answers {}", r.status);
          else
            refusal = objection(r, offset, into.size());
          return o.why.empty() && refusal.empty();
        },
        [&](char const* bytes, std::size_t n) {
          std::lock_guard const lock(mutex);
          if (late || n > into.size() - o.got) return false;
          std::copy_n(bytes, n, into.begin() + std::ptrdiff_t(o.got));
          o.got += n;
          return true;
        });
    watch.request_stop();
    watch.join();
    if (!refusal.empty()) throw edl::error(fmt::format("{}: byte {}: {}", name_, offset, refusal));
    if (late)
      o.why = fmt::format("the answer is not complete after {} ms", limits_.answer.count());
    else if (o.why.empty())
      o.why = failure(result.error());
    return o;
  }

  std::string failure(httplib::Error e) const {
    switch (e) {
      case httplib::Error::Success:
      case httplib::Error::Read:
        return fmt::format("the answer ends too early, or nothing comes for {} ms", limits_.silence.count());
      case httplib::Error::Canceled:
        return "the server sends more than was asked for";
      default:
        return "no connection: " + httplib::to_string(e);
    }
  }

  // Why an answer is not the range that was asked for, and will not be when it is asked for again.
  std::string objection(httplib::Response const& r, std::uint64_t offset, std::size_t count) {
    if (r.status >= 300 && r.status < 400)
      return fmt::format("the server redirects to {}; name that URL", r.get_header_value("Location"));
    if (r.status == 416 && r.get_header_value("Content-Range") == "bytes */0") {
      size_ = 0;
      return {};
    }
    if (r.status == 200) return "the server answers with the whole file: it knows no range requests";
    if (r.status != 206) return fmt::format("the server answers {}", r.status);
    auto const range = r.get_header_value("Content-Range");
    auto const wanted = fmt::format("bytes {}-{}/", offset, offset + count - 1);
    std::uint64_t size = 0;
    for (char const c : range.substr(std::min(wanted.size(), range.size()))) {
      if (c < '0' || c > '9' || size > std::uint64_t{1} << 58) return "the size in `" + range + "` is none";
      size = 10 * size + std::uint64_t(c - '0');
    }
    if (!range.starts_with(wanted) || size < offset + count)
      return fmt::format("the server answers `{}` where `{}…` was asked for", range, wanted);
    auto const tag = r.get_header_value("ETag");
    if (size_ && (*size_ != size || tag_ != tag))
      return "the file has changed since it was opened; start again";
    size_ = size;
    tag_ = tag;
    return {};
  }

  http_limits limits_;
  std::string name_;
  httplib::Client client_;
  std::string target_;
  std::optional<std::uint64_t> size_;
  std::string tag_;
};
