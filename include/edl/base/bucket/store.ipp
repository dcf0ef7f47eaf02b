// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <iterator>
#include <mutex>
#include <random>
#include <set>
#include <span>
#include <thread>
#include <utility>

#include "edl/base/bucket/list_page.hpp"
#include "edl/base/bucket/service.hpp"
#include "edl/base/bucket/store.hpp"
#include "edl/base/bucket/sum_check.hpp"
#include "edl/base/http/client/backoff.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/storage_error.hpp"
#include "edl/core/text.hpp"

namespace edl::bucket {
namespace detail {

inline constexpr std::size_t longest_page = 16 << 20, longest_refusal = 64 << 10, most_objects = 1'000'000,
                             most_empty_pages = 100;
inline constexpr std::uint64_t copied_parts = 32, most_parts = 10'000,
                               largest_object = std::uint64_t{5} << 40;  // S3's
// Bytes of a request that are sent within a millisecond at least.
inline constexpr std::size_t slowest_line = 128;
// For removing an upload that has failed.
inline constexpr std::chrono::milliseconds last_tries{5'000};
// Seconds before the end of credentials, and between two tries.
inline constexpr std::time_t renew_before = 300, renew_again = 20;
// Metadata of an object: a number that its write has drawn.
inline constexpr char const* write_mark = "x-amz-meta-edl-write";

// S3's error message, with a remedy.
struct refusal {
  int status = 0;
  std::string code, message, request, region;
  std::time_t date = 0;  // of the store's clock; 0: unknown

  // 409: another writer is at it at the same time.
  bool passes() const {
    return status == 429 || status == 500 || (status >= 502 && status <= 504) ||
           (status == 409 && (code == "ConditionalRequestConflict" || code == "OperationAborted")) ||
           code == "RequestTimeout";
  }
  bool expired() const {
    return code == "ExpiredToken" || code == "InvalidToken" || code == "TokenRefreshRequired";
  }
  std::string way_out(account const& a, bool writes) const {
    if (expired()) return fmt::format("the credentials of {} have expired: renew them", a.origin);
    if (code == "RequestTimeTooSkewed") return "this machine's clock is wrong: set it";
    if (code == "NoSuchBucket") return "is its name right, and is AWS_ENDPOINT_URL its store?";
    if (status == 301 || status == 307 || code == "AuthorizationHeaderMalformed")
      return region.empty() ? "the bucket lies in another region: set AWS_REGION"
                            : fmt::format("the bucket lies in another region: set AWS_REGION={}", region);
    if (code == "InvalidAccessKeyId" || code == "SignatureDoesNotMatch")
      return fmt::format("the credentials of {} do not belong to a user of this store", a.origin);
    if (status == 403 && writes)
      return fmt::format(
          "the user of {} needs s3:PutObject, s3:GetObject, s3:DeleteObject and s3:AbortMultipartUpload of "
          "the bucket's objects",
          a.origin);
    if (status == 507 || code == "QuotaExceeded") return "make room in the bucket, or name another one";
    if (status == 501 && writes)
      return "this store does not support this kind of write, which edl needs: use a bucket of another store";
    if (status == 412)
      return "it has changed since the job found it: start again, with objects that do not change";
    if (status == 403)
      return fmt::format("the user of {} needs s3:ListBucket of the bucket and s3:GetObject of its objects",
                         a.origin);
    return passes() ? "the store is overloaded, or fails: try again later" : "";
  }
};

// A transient failure.
struct passing : error {
  using error::error;
};

// What a request may meet.
struct manner {
  std::vector<int> known = {};  // statuses that are returned: 404, 412, 416
  bool writes = false;
  std::optional<std::chrono::milliseconds> retries = {};  // instead of `store_options::retry_timeout`
};

inline std::string new_mark() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

}  // namespace detail

struct store::implementation {
  std::string const bucket;
  store_options const set;
  mutable std::mutex mutex;
  mutable account now;
  mutable std::time_t look_again = 0;           // seconds since 1970, for credentials
  mutable std::atomic<std::time_t> behind = 0;  // seconds of this machine's clock behind the store's
  mutable std::atomic<int> failed_copies = 0;   // one after the other
  std::string path;                             // before a key
  std::string endpoint;
  std::unique_ptr<http::client> line;

  implementation(std::string name, store_options o)
      : bucket(std::move(name)), set(std::move(o)), now(set.find()) {
    bool const valid = bucket.size() >= 3 && bucket.size() <= 63 && std::ranges::all_of(bucket, [](char c) {
                         return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
                       });
    if (!valid)
      throw error(fmt::format("s3://{}: this is not the name of a bucket: write s3://BUCKET/KEY",
                              printable(bucket, 100)));
    bool const own = !now.endpoint.empty(), host = !own && bucket.find('.') == bucket.npos;
    endpoint = own    ? now.endpoint
               : host ? fmt::format("https://{}.s3.{}.amazonaws.com", bucket, now.region)
                      : fmt::format("https://s3.{}.amazonaws.com", now.region);
    http::peer to{.at = http::parse_endpoint(endpoint, "an object store (AWS_ENDPOINT_URL)"),
                  .name = "the object store",
                  .other_name = ", or another AWS_ENDPOINT_URL",
                  .other_authority = ", and AWS_CA_BUNDLE the file of its authority"};
    path = to.at.prefix + (host ? "/" : "/" + bucket + "/");
    line = detail::make_line(std::move(to), now.ca_file);
  }

  std::string name(std::string const& key) const {
    return fmt::format("s3://{}/{}", bucket, printable(key, 300));
  }

  void find_again() const try { now = set.find(); } catch (error const& e) {
    throw storage_error(EACCES, fmt::format("s3://{}: {}", bucket, e.what()));
  }

  // Credentials that end soon are renewed. If that fails, the old ones serve until they end.
  account known() const {
    std::lock_guard const lock(mutex);
    auto const time = set.now();
    if (now.expires > 0 && time >= std::max(now.expires - detail::renew_before, look_again)) try {
        look_again = time + detail::renew_again;
        find_again();
      } catch (error const&) {
        if (time >= now.expires) throw;
      }
    return now;
  }

  // Whether there are credentials other than the refused ones.
  bool renewed(account const& refused) const {
    std::lock_guard const lock(mutex);
    if (now.who.key == refused.who.key && now.who.session == refused.who.session) find_again();
    return now.who.key != refused.who.key || now.who.session != refused.who.session;
  }

  // Sends one request. A reply that is not 2xx fills `refused`. Throws `passing` if there is none.
  http::response_parser once(http::question q, std::string const& what, account const& with,
                             http::client::sink const& take, detail::refusal& refused) const {
    sign(q, line->server().at.authority, with.who, with.region, set.now() + behind);
    std::string body;
    bool sent = false;
    http::client::sink const sink = [&](http::response_parser const& head, std::string_view part) {
      if (head.code() < 300) return take(head, part);
      body.append(part.substr(0, detail::longest_refusal - std::min(body.size(), detail::longest_refusal)));
      return true;
    };
    auto head = [&] {
      try {
        auto const time = set.timeout + std::chrono::milliseconds(q.body.size() / detail::slowest_line);
        return line->ask(q, http::limit::of(time), sink, sent, set.timeout);
      } catch (http::unreachable const& e) {
        throw detail::passing(fmt::format("{}: {}", what, e.what()));
      }
    }();
    if (head.code() < 300) return head;
    refused = {head.code(), detail::plain(detail::element(body, "Code")),
               detail::plain(detail::element(body, "Message")), std::string(head.field("x-amz-request-id")),
               std::string(head.field("x-amz-bucket-region"))};
    std::tm date{};
    if (::strptime(std::string(head.field("date")).c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date))
      refused.date = ::timegm(&date);
    return head;
  }

  // Retries until a reply is not a transient failure. Any other reply that is not 2xx is thrown, unless it is
  // known and about a key. `progress`: bytes received so far, over all tries.
  template <class Make>
  http::response_parser ask(Make&& make, std::string const& what, http::client::sink const& take,
                            std::uint64_t const& progress, detail::manner const& how = {}) const {
    http::backoff pauses(set.first_pause, set.longest_pause, std::random_device()());
    auto const time = how.retries.value_or(set.retry_timeout);
    auto end = clock::now() + time;
    std::uint64_t before = progress;
    bool renewed_once = false, clock_set = false;
    for (int tries = 1;; ++tries) {
      account const with = known();
      detail::refusal refused;
      std::string why;
      try {
        auto head = once(make(), what, with, take, refused);
        if (refused.status == 0) return head;
        bool const known = std::ranges::find(how.known, refused.status) != how.known.end();
        if (known && refused.code != "NoSuchBucket") return head;
        auto const out = refused.way_out(with, how.writes);
        why = fmt::format(
            "{}: the object store {} replies {}{}{}{}{}{}", what, line->server().at.url(), refused.status,
            refused.code.empty() ? "" : " " + printable(refused.code, 100),
            refused.message.empty() ? "" : ": " + printable(refused.message, 300),
            refused.request.empty() ? "" : fmt::format(" (request {})", printable(refused.request, 100)),
            out.empty() ? "" : "; ", out);
        if (refused.expired() && !std::exchange(renewed_once, true) && renewed(with)) continue;
        if (refused.code == "RequestTimeTooSkewed" && refused.date > 0 && !std::exchange(clock_set, true)) {
          behind = refused.date - set.now();
          continue;
        }
        if (refused.expired() || refused.status == 401 || refused.status == 403)
          throw storage_error(EACCES, why);
        if (refused.status == 507 || refused.code == "QuotaExceeded") throw storage_error(ENOSPC, why);
        if (!refused.passes()) throw error(why);
      } catch (detail::passing const& e) {
        why = e.what();
      }
      if (progress != before) {
        before = progress;
        pauses.reset();
        end = clock::now() + time;
      }
      if (!line->pause(pauses.next(), end))
        throw storage_error(EIO, fmt::format("{}; requested {} times, the last {} s without success", why,
                                             tries, double(time.count()) / 1000));
    }
  }

  std::string target_of(std::string const& key) const { return path + http::percent_encoded(key, "/"); }

  // A request that writes. `mark`: of the write; a condition makes the store decide.
  static http::question writing(char const* method, std::string target, std::string const& mark,
                                only_if const& what, std::string body = {}) {
    http::question q{method, std::move(target), {}, std::move(body)};
    if (!mark.empty()) q.headers.emplace_back(detail::write_mark, mark);
    if (what.absent) q.headers.emplace_back("If-None-Match", "*");
    if (!what.etag.empty()) q.headers.emplace_back("If-Match", what.etag);
    if (q.body.empty()) q.headers.emplace_back("Content-Length", "0");
    return q;
  }

  // The object that the write with this mark has made, if it is still there.
  std::optional<object> made_by(std::string const& mark, std::string const& key, std::uint64_t size) const {
    auto const make = [&] { return http::question{"GET", target_of(key)}; };
    auto const head = ask(make, name(key), [](auto&, auto) { return false; }, 0, {.known = {404}});
    if (head.code() == 404 || head.field(detail::write_mark) != mark) return std::nullopt;
    return object{key, size, std::string(head.field("etag"))};
  }

  // Sends a part, or a small object, with its SHA-256.
  http::response_parser send(std::string const& what, std::string const& target, std::string_view text,
                             std::string const& digest, std::string const& mark, only_if const& when,
                             std::vector<int> const& known) const {
    std::string const hash = hexadecimal(digest), sum = base64(digest);
    auto const make = [&] {
      auto q = writing("PUT", target, mark, when, std::string(text));
      q.headers.emplace_back("x-amz-content-sha256", hash);
      q.headers.emplace_back("x-amz-checksum-sha256", sum);
      return q;
    };
    auto head = ask(make, what, [](auto&, auto) { return true; }, 0, {.known = known, .writes = true});
    if (auto const tag = head.field("etag");
        head.code() < 300 && (tag.empty() || tag.find_first_of("<>&") != tag.npos))
      throw error(fmt::format("{}: the reply has no valid ETag ('{}')", what, printable(tag, 100)));
    return head;
  }

  // Sends a short text, and returns the reply's.
  std::pair<int, std::string> post(std::string const& what, http::question const& q,
                                   std::vector<int> const& known,
                                   std::size_t most = detail::longest_refusal) const {
    std::string text;
    auto const make = [&] {
      text.clear();
      return q;
    };
    auto const take = [&](auto&, std::string_view part) {
      text.append(part);
      if (text.size() > most)
        throw error(fmt::format("{}: the reply is longer than {} KiB", what, most >> 10));
      return true;
    };
    int const code = ask(make, what, take, 0, {.known = known, .writes = true}).code();
    return {code, std::move(text)};
  }

  // Makes the parts of an upload, several at a time, and returns what joins them. each(i): makes a part, and
  // returns what identifies it.
  template <class Each>
  std::string make_parts(std::size_t count, Each const& each) const {
    std::vector<std::string> parts(count);
    std::atomic<std::size_t> next{0};
    std::atomic<bool> stopped{false};
    std::mutex failing;
    std::exception_ptr failed;
    auto const work = [&] {
      for (std::size_t i; !stopped && (i = next++) < count;) try {
          parts[i] = each(i);
        } catch (...) {
          std::lock_guard const lock(failing);
          if (!failed) failed = std::current_exception();
          stopped = true;
        }
    };
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 1; i < std::min(std::size_t(set.connections), count); ++i)
        threads.emplace_back(work);
      work();
    }
    if (failed) std::rethrow_exception(failed);
    std::string all = R"(<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">)";
    for (std::size_t i = 0; i < count; ++i)
      all += fmt::format("<Part><PartNumber>{}</PartNumber>{}</Part>", i + 1, parts[i]);
    return all + "</CompleteMultipartUpload>";
  }

  static std::string part_name(std::string const& what, std::size_t i, std::size_t count) {
    return fmt::format("{}, part {} of {}", what, i + 1, count);
  }

  // Uploads the parts of a file.
  std::string send_parts(std::string const& what, std::string const& target, input_file const& from,
                         std::uint64_t size_of_part) const {
    std::size_t const count = (from.size() + size_of_part - 1) / size_of_part;
    return make_parts(count, [&](std::size_t i) {
      std::uint64_t const at = i * size_of_part;
      std::string text(std::size_t(std::min(size_of_part, from.size() - at)), '\0');
      from.read(at, std::as_writable_bytes(std::span(text)));
      std::string const digest = sha256_bytes(text);
      auto const head = send(part_name(what, i, count), fmt::format("{}&partNumber={}", target, i + 1), text,
                             digest, "", {}, {});
      return fmt::format("<ETag>{}</ETag><ChecksumSHA256>{}</ChecksumSHA256>", head.field("etag"),
                         base64(digest));
    });
  }

  // Begins an upload, and returns the target of its requests. `summed`: its parts are sent with their sums.
  std::string begin(std::string const& what, std::string const& key, std::string const& mark,
                    bool summed = true) const {
    auto q = writing("POST", target_of(key) + "?uploads=", mark, {});
    if (summed) q.headers.emplace_back("x-amz-checksum-algorithm", "SHA256");
    auto const reply = post(what, q, {}).second;
    std::string const id = detail::plain(detail::element(reply, "UploadId"));
    if (id.empty())
      throw error(fmt::format("{}: the reply is not that of an upload: '{}'", what, printable(reply, 200)));
    return target_of(key) + "?uploadId=" + http::percent_encoded(id);
  }

  // Removes the parts of an upload that has failed. What this cannot remove, a rule of the bucket does.
  void abandon(std::string const& what, std::string const& target) const try {
    auto const make = [&] { return http::question{"DELETE", target}; };
    ask(make, what, [](auto&, auto) { return true; }, 0,
        {.known = {404}, .writes = true, .retries = detail::last_tries});
  } catch (error const&) {
  }

  // A write whose reply begins before the store knows whether it succeeds. Returns the status 404, 412, or
  // else the ETag of what was made.
  std::pair<int, std::string> settle(std::string const& what, http::question const& q,
                                     std::string_view refused) const {
    http::backoff pauses(set.first_pause, set.longest_pause, std::random_device()());
    for (auto const end = clock::now() + set.retry_timeout;;) {
      auto const [code, text] = post(what, q, {404, 412});
      if (code >= 300) return {code, {}};
      if (auto tag = detail::plain(detail::element(text, "ETag"));
          text.find("<Error>") == text.npos && !tag.empty() && tag.find_first_of("<>&") == tag.npos)
        return {code, std::move(tag)};
      auto const failure = detail::element(text, "Code");
      std::string const why =
          failure.empty()
              ? fmt::format("{}: {}: the store replies '{}'", what, refused, printable(text, 200))
              : fmt::format("{}: {}: {} {}", what, refused, printable(detail::plain(failure), 100),
                            printable(detail::plain(detail::element(text, "Message")), 300));
      if (failure == "PreconditionFailed") return {412, {}};
      bool const nothing = text.find_first_not_of(" \r\n\t") == text.npos;
      if (!nothing && failure != "InternalError" && failure != "SlowDown" &&
          failure != "ServiceUnavailable" && failure != "ConditionalRequestConflict")
        throw error(why);
      if (!line->pause(pauses.next(), end)) throw storage_error(EIO, why);
    }
  }

  // Joins the parts of an upload. Returns nothing if the condition does not hold.
  std::optional<object> join(std::string const& what, std::string const& target, std::string const& list,
                             std::string const& key, std::uint64_t size, std::string const& mark,
                             only_if const& when) const {
    auto const [code, tag] =
        settle(what, writing("POST", target, "", when, list), "the parts cannot be joined");
    if (code < 300) return object{key, size, tag};
    // The upload no longer exists if an earlier try, whose reply was lost, has joined its parts.
    if (auto made = made_by(mark, key, size)) return made;
    if (code == 412 || !when.etag.empty()) return std::nullopt;
    throw error(what + ": the store has lost the upload, or somebody has removed it: try again");
  }

  // In bytes. A request for more might take longer than `store_options::timeout`.
  std::uint64_t longest_copy() const { return set.part * detail::copied_parts; }

  // A request that copies an object, or bytes [first, last) of it.
  http::question copying(object const& from, std::string target, std::uint64_t first,
                         std::uint64_t last) const {
    auto q = writing("PUT", std::move(target), "", {});
    q.headers.emplace_back("x-amz-copy-source", http::percent_encoded(bucket + "/" + from.key, "/"));
    if (from.size > 0) q.headers.emplace_back("x-amz-copy-source-if-match", from.etag);
    if (last - first < from.size)
      q.headers.emplace_back("x-amz-copy-source-range", fmt::format("bytes={}-{}", first, last - 1));
    return q;
  }

  // Copies an object in parts. False: it is another one by now, or none.
  bool copy_parts(std::string const& what, object const& from, std::string const& to) const {
    std::uint64_t const most =
        std::max(longest_copy(), (from.size + detail::most_parts - 1) / detail::most_parts);
    std::size_t const count = (from.size + most - 1) / most;
    std::string const mark = detail::new_mark(), target = begin(what, to, mark, false);
    std::atomic<bool> gone{false};
    try {
      std::string const list = make_parts(count, [&](std::size_t i) {
        auto const q = copying(from, fmt::format("{}&partNumber={}", target, i + 1), i * most,
                               std::min((i + 1) * most, from.size));
        auto const [code, tag] = settle(part_name(what, i, count), q, "cannot be copied");
        if (code >= 300) {
          gone = true;
          throw error(what + ": it has changed while it was copied");
        }
        return fmt::format("<ETag>{}</ETag>", tag);
      });
      return join(what, target, list, to, from.size, mark, {}).has_value();
    } catch (...) {
      abandon(what, target);
      if (gone) return false;
      throw;
    }
  }

  /// Passes the pages of a list to `take`, which returns the key behind which the next one begins; empty:
  /// where this one ends. `more`: of the question.
  template <typename Take>
  void pages(std::string const& prefix, std::string const& more, std::size_t most, Take&& take) const {
    std::string token, start;
    std::set<std::string> tokens;
    std::size_t entries = 0, empty_pages = 0;
    std::string const what = name(prefix);
    do {
      std::string text;
      http::client::sink const add = [&](auto&, std::string_view part) {
        text.append(part);
        if (text.size() > detail::longest_page)
          throw error(what + ": a page of the list is larger than 16 MiB");
        return true;
      };
      auto const fresh = [&] {
        text.clear();
        auto const bucket_path =
            path.size() > 1 && path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
        std::string target = bucket_path + "?list-type=2&encoding-type=url" + more +
                             "&prefix=" + http::percent_encoded(prefix);
        if (!token.empty()) target += "&continuation-token=" + http::percent_encoded(token);
        if (!start.empty()) target += "&start-after=" + http::percent_encoded(start);
        return http::question{"GET", target};
      };
      ask(fresh, what, add, 0);
      list_page page = read_page(text, prefix, what);
      entries += page.entries;
      if (entries > most)
        throw error(fmt::format("{}: more than {} objects: name a longer prefix", what, most));
      start = take(page);  // which may end the list
      if (!page.next.empty() && !tokens.insert(page.next).second)
        throw error(what + ": the store returns the same page of the list again");
      empty_pages = page.entries > 0 ? 0 : empty_pages + 1;
      if (!page.next.empty() && empty_pages > detail::most_empty_pages)
        throw error(fmt::format("{}: {} pages of the list in a row have no object", what, empty_pages));
      token = start.empty() ? std::move(page.next) : std::string();
    } while (!token.empty() || !start.empty());
  }
};

EDL_INLINE store::store(std::string bucket, store_options o)
    : self_(std::make_unique<implementation>(std::move(bucket), std::move(o))) {}
EDL_INLINE store::~store() = default;
EDL_INLINE std::string const& store::bucket() const { return self_->bucket; }
EDL_INLINE std::string const& store::endpoint() const { return self_->endpoint; }

EDL_INLINE std::optional<object> store::find(std::string const& key) const {
  auto const make = [&] { return http::question{"GET", self_->target_of(key), {{"Range", "bytes=0-0"}}}; };
  std::string const what = self_->name(key);
  auto const head =
      self_->ask(make, what, [](auto&, auto part) { return part.size() <= 1; }, 0, {.known = {404, 416}});
  object o{key, 0, std::string(head.field("etag"))};
  if (head.code() == 404) return std::nullopt;
  auto const range = head.code() == 200 ? head.field("content-length") : head.field("content-range");
  auto const size = number_from<std::uint64_t>(range.substr(range.find('/') + 1));
  if (!size || (o.etag.empty() && head.code() != 416))
    throw error(fmt::format("{}: the reply has no size or ETag ('{}')", what, printable(range, 100)));
  o.size = *size;
  return o;
}

EDL_INLINE std::vector<object> store::list(std::string const& prefix, skipped const& skip,
                                           std::size_t most) const {
  std::vector<object> all;
  std::string start;  // keys up to this one are passed over
  bool ordered = true;
  self_->pages(prefix, "", most, [&](list_page& page) -> std::string {
    auto& now = page.objects;
    ordered = ordered && std::ranges::is_sorted(now, {}, &object::key) &&
              (now.empty() || ((all.empty() || all.back().key < now.front().key) && start < now.front().key));
    if (!ordered && !start.empty()) page.next.clear();
    bool const passes = skip && ordered && !page.next.empty() && !now.empty();
    auto const passed = passes ? skip(now) : std::nullopt;
    std::string const last = now.empty() ? "" : now.back().key;
    std::ranges::move(now, std::back_inserter(all));
    // Names seldom begin with a character behind '~'; such keys are listed.
    if (!passed || *passed + "~" <= last) return {};
    return start = *passed + "~";
  });
  if (!ordered && !start.empty()) return list(prefix, {}, most);
  std::ranges::sort(all, {}, &object::key);
  auto const twice = std::ranges::adjacent_find(all, {}, &object::key);
  if (twice != all.end()) throw error(fmt::format("{}: the list has it twice", self_->name(twice->key)));
  return all;
}

EDL_INLINE std::vector<std::string> store::names(std::string const& prefix) const {
  std::set<std::string> all;
  self_->pages(prefix, "&delimiter=%2F", detail::most_objects, [&](list_page const& page) -> std::string {
    for (object const& o : page.objects) all.insert(o.key.substr(prefix.size()));
    for (std::string const& f : page.folders)
      all.insert(f.substr(prefix.size(), f.size() - prefix.size() - 1));
    return {};
  });
  return {all.begin(), all.end()};
}

EDL_INLINE bool store::read(object const& of, std::uint64_t from, std::uint64_t to,
                            std::function<void(std::string_view)> const& take) const {
  std::string const what = self_->name(of.key);
  auto const changed = [&] {
    return error(what +
                 ": it has changed since the job found it: start again, with objects that do not change");
  };
  bool const whole = from == 0 && to == of.size;
  auto const make = [&] {
    http::question q{"GET", self_->target_of(of.key), {{"If-Match", of.etag}}};
    if (whole) q.headers.emplace_back("x-amz-checksum-mode", "ENABLED");
    if (!whole || from > 0) q.headers.emplace_back("Range", fmt::format("bytes={}-{}", from, to - 1));
    return q;
  };
  sum_check sum;
  while (from < to) {
    std::uint64_t const first = from;
    bool begun = false;
    http::client::sink const checked = [&](http::response_parser const& head, std::string_view part) {
      if (!begun) {
        begun = true;
        auto const range = head.field("content-range");
        auto const wanted = fmt::format("bytes {}-{}/{}", from, to - 1, of.size);
        if (head.field("etag") != of.etag) throw changed();
        if (head.code() == 200 && !(from == 0 && whole))
          throw error(what + ": the store replies with the whole object: it does not support ranges");
        if (head.code() != 200 && range != wanted)
          throw error(fmt::format("{}: the store replies with '{}' instead of '{}'", what,
                                  printable(range, 100), wanted));
        if (from == 0 && whole) sum.begin(head, of.etag);
      }
      if (part.size() > to - from) throw error(what + ": the store sends more than was requested");
      sum.add(part);
      take(part);
      from += part.size();
      return true;
    };
    auto const again = [&] {
      begun = false;
      return make();
    };
    auto const head = self_->ask(again, what, checked, from, {.known = {404, 416}});
    if (head.code() == 404 || head.code() == 416) throw changed();
    if (from == first) throw error(what + ": the store replies with no bytes");
  }
  sum.end(what);
  return sum.compares();
}

EDL_INLINE std::optional<object> store::put(std::string const& key, std::string_view text,
                                            only_if const& what) const {
  std::string const mark = detail::new_mark();
  std::vector<int> known;
  if (what.absent || !what.etag.empty()) known.push_back(412);
  if (!what.etag.empty()) known.push_back(404);
  auto const head =
      self_->send(self_->name(key), self_->target_of(key), text, sha256_bytes(text), mark, what, known);
  // The condition may fail because of this very write, if an earlier reply was lost.
  if (head.code() >= 300) return self_->made_by(mark, key, text.size());
  return object{key, text.size(), std::string(head.field("etag"))};
}

EDL_INLINE std::optional<object> store::put(std::string const& key, input_file const& from,
                                            only_if const& what) const {
  std::string const name = self_->name(key), mark = detail::new_mark();
  if (from.size() <= self_->set.part) {
    std::string text(std::size_t(from.size()), '\0');
    from.read(0, std::as_writable_bytes(std::span(text)));
    return put(key, text, what);
  }
  if (from.size() > detail::largest_object)
    throw error(
        fmt::format("{}: {} has {} bytes, and an object has 5 TiB at most", name, from.path(), from.size()));
  std::string const target = self_->begin(name, key, mark);
  try {
    auto const least = (from.size() + detail::most_parts - 1) / detail::most_parts;
    std::string const list =
        self_->send_parts(name, target, from, std::max<std::uint64_t>(self_->set.part, least));
    auto made = self_->join(name, target, list, key, from.size(), mark, what);
    if (made) return made;
  } catch (...) {
    self_->abandon(name, target);
    throw;
  }
  self_->abandon(name, target);
  return std::nullopt;
}

EDL_INLINE bool store::copy(std::string const& from, std::string const& to) const {
  constexpr int most_failures = 3;
  if (self_->failed_copies >= most_failures) return false;
  try {
    auto const source = find(from);
    if (!source) return false;
    std::string const what = fmt::format("{}, copied to {}", self_->name(from), printable(to, 300));
    bool made = false;
    if (source->size > self_->longest_copy()) {
      made = self_->copy_parts(what, *source, to);
    } else {
      auto const q = self_->copying(*source, self_->target_of(to), 0, source->size);
      made = self_->settle(what, q, "cannot be copied").first < 300;
    }
    self_->failed_copies = 0;
    return made;
  } catch (storage_error const&) {  // it may pass
    ++self_->failed_copies;
    throw;
  } catch (error const&) {
    self_->failed_copies = most_failures;
    throw;
  }
}

EDL_INLINE void store::check_writable(std::string const& key) const {
  std::string const name = self_->name(key);
  self_->abandon(name, self_->begin(name, key, detail::new_mark()));
}

EDL_INLINE std::optional<std::pair<std::string, object>> store::get(std::string const& key,
                                                                    std::uint64_t most) const {
  std::string const what = self_->name(key);
  std::string text;
  std::optional<sum_check> sum;
  auto const make = [&] {
    text.clear(), sum.reset();
    return http::question{"GET", self_->target_of(key), {{"x-amz-checksum-mode", "ENABLED"}}};
  };
  auto const take = [&](http::response_parser const& head, std::string_view part) {
    if (part.size() > most - text.size())
      throw error(fmt::format("{}: it has more than {} bytes, and cannot be what its name says", what, most));
    if (!sum) sum.emplace().begin(head);
    sum->add(part);
    text += part;
    return true;
  };
  auto const head = self_->ask(make, what, take, 0, {.known = {404}});
  if (head.code() == 404) return std::nullopt;
  if (sum) sum->end(what);
  std::uint64_t const size = text.size();
  return std::pair(std::move(text), object{key, size, std::string(head.field("etag"))});
}

EDL_INLINE void store::abandon_uploads(std::string const& prefix) const {
  std::string const what = self_->name(prefix), base = self_->target_of("");
  auto const target = base.size() > 1 ? base.substr(0, base.size() - 1) : base;
  std::string first;  // upload of a page
  for (int page = 0; page < int(detail::most_empty_pages); ++page) {
    auto const text = self_
                          ->post(what,
                                 {"GET", fmt::format("{}?uploads=&max-uploads=50&prefix={}", target,
                                                     http::percent_encoded(prefix))},
                                 {}, detail::longest_page)
                          .second;
    std::string_view rest = text;
    // Nothing can be removed if it is there again.
    auto const id = detail::plain(detail::element(rest, "UploadId"));
    if (!id.empty() && std::exchange(first, id) == id) return;
    for (std::string_view one; !(one = detail::element(rest, "Upload")).empty();) {
      rest = rest.substr(std::size_t(one.data() + one.size() - rest.data()));
      auto const key = detail::plain(detail::element(one, "Key"));
      if (!key.starts_with(prefix)) throw error(what + ": the list of uploads has another key");
      self_->abandon(what,
                     fmt::format("{}?uploadId={}", self_->target_of(key),
                                 http::percent_encoded(detail::plain(detail::element(one, "UploadId")))));
    }
    if (detail::element(text, "IsTruncated") != "true") return;
  }
}

EDL_INLINE void store::remove(std::string const& key) const {
  auto const make = [&] { return http::question{"DELETE", self_->target_of(key)}; };
  self_->ask(make, self_->name(key), [](auto&, auto) { return true; }, 0, {.known = {404}, .writes = true});
}

}  // namespace edl::bucket
