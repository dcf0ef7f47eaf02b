// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <mutex>
#include <random>
#include <set>
#include <utility>

#include "edl/base/bucket/store.hpp"
#include "edl/base/http/client/backoff.hpp"
#include "edl/base/net/security/certificates.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"

namespace edl::bucket {
namespace detail {

inline constexpr std::size_t longest_page = 16 << 20, longest_refusal = 64 << 10, most_objects = 1'000'000,
                             most_empty_pages = 100;

// The text of the first element with this name. S3 writes the elements that we read without attributes and
// comments.
inline std::string_view element(std::string_view xml, std::string_view name) {
  auto const open = fmt::format("<{}>", name), close = fmt::format("</{}>", name);
  auto const begin = xml.find(open);
  if (begin == xml.npos) return {};
  auto const end = xml.find(close, begin);
  return end == xml.npos ? std::string_view() : xml.substr(begin + open.size(), end - begin - open.size());
}

// Decodes XML's entities.
inline std::string plain(std::string_view text) {
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

// S3's error message, with a remedy.
struct refusal {
  int status = 0;
  std::string code, message, request, region;

  bool passes() const { return status == 429 || status == 500 || (status >= 502 && status <= 504); }
  bool expired() const {
    return code == "ExpiredToken" || code == "InvalidToken" || code == "TokenRefreshRequired";
  }
  std::string way_out(account const& a) const {
    if (expired()) return fmt::format("the credentials of {} have expired: renew them", a.origin);
    if (code == "RequestTimeTooSkewed") return "this machine's clock is wrong: set it";
    if (code == "NoSuchBucket") return "is its name right, and is AWS_ENDPOINT_URL its store?";
    if (status == 301 || status == 307 || code == "AuthorizationHeaderMalformed")
      return region.empty() ? "the bucket lies in another region: set AWS_REGION"
                            : fmt::format("the bucket lies in another region: set AWS_REGION={}", region);
    if (code == "InvalidAccessKeyId" || code == "SignatureDoesNotMatch")
      return fmt::format("the credentials of {} do not belong to a user of this store", a.origin);
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

}  // namespace detail

struct store::implementation {
  std::string const bucket;
  store_options const set;
  mutable std::mutex mutex;
  mutable account now;
  std::string path;  // before a key
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
    bool const tls = to.at.tls;
    line = std::make_unique<http::client>(std::move(to));
    if (!tls) return;
    net::pem ca{{}, "AWS_CA_BUNDLE=" + now.ca_file};
    if (!now.ca_file.empty()) {
      std::ifstream in(now.ca_file);
      ca.text.assign(std::istreambuf_iterator<char>(in), {});
      if (ca.text.empty()) throw error(ca.name + ": no such file, or it is empty");
    }
    line->use(net::load_trust({.authorities = std::move(ca)}));
  }

  std::string name(std::string const& key) const {
    return fmt::format("s3://{}/{}", bucket, printable(key, 300));
  }

  account known() const {
    std::lock_guard const lock(mutex);
    return now;
  }

  // Whether there are credentials other than the refused ones.
  bool renewed(account const& refused) const {
    std::lock_guard const lock(mutex);
    if (now.who.key == refused.who.key && now.who.session == refused.who.session) now = set.find();
    return now.who.key != refused.who.key || now.who.session != refused.who.session;
  }

  // Sends one request. A reply that is not 2xx is thrown, as `passing` or as an error, except for 404 and 416
  // of a key, which are returned.
  http::response_parser once(http::question q, std::string const& what, account const& with,
                             http::client::sink const& take, detail::refusal& refused) const {
    sign(q, line->server().at.authority, with.who, with.region, set.now());
    std::string body;
    bool sent = false;
    http::client::sink const sink = [&](http::response_parser const& head, std::string_view part) {
      if (head.code() < 300) return take(head, part);
      body.append(part.substr(0, detail::longest_refusal - std::min(body.size(), detail::longest_refusal)));
      return true;
    };
    auto head = [&] {
      try {
        return line->ask(q, http::limit::of(set.timeout), sink, sent, set.timeout);
      } catch (http::unreachable const& e) {
        throw detail::passing(fmt::format("{}: {}", what, e.what()));
      }
    }();
    if (head.code() < 300) return head;
    refused = {head.code(), detail::plain(detail::element(body, "Code")),
               detail::plain(detail::element(body, "Message")), std::string(head.field("x-amz-request-id")),
               std::string(head.field("x-amz-bucket-region"))};
    return head;
  }

  // Retries until a reply is not a transient failure. `progress`: bytes received so far, over all tries.
  template <class Make>
  http::response_parser ask(Make&& make, std::string const& what, http::client::sink const& take,
                            std::uint64_t const& progress, bool may_miss = false) const {
    http::backoff pauses(set.first_pause, set.longest_pause, std::random_device()());
    auto end = clock::now() + set.retry_timeout;
    std::uint64_t before = progress;
    bool renewed_once = false;
    for (int tries = 1;; ++tries) {
      account const with = known();
      detail::refusal refused;
      std::string why;
      try {
        auto head = once(make(), what, with, take, refused);
        if (refused.status == 0) return head;
        bool const missing = refused.status == 404 && refused.code != "NoSuchBucket";
        if (may_miss && (missing || refused.status == 416)) return head;
        auto const out = refused.way_out(with);
        why = fmt::format(
            "{}: the object store {} replies {}{}{}{}{}{}", what, line->server().at.url(), refused.status,
            refused.code.empty() ? "" : " " + printable(refused.code, 100),
            refused.message.empty() ? "" : ": " + printable(refused.message, 300),
            refused.request.empty() ? "" : fmt::format(" (request {})", printable(refused.request, 100)),
            out.empty() ? "" : "; ", out);
        if (refused.expired() && !std::exchange(renewed_once, true) && renewed(with)) continue;
        if (!refused.passes()) throw error(why);
      } catch (detail::passing const& e) {
        why = e.what();
      }
      if (progress != before) {
        before = progress;
        pauses.reset();
        end = clock::now() + set.retry_timeout;
      }
      if (!line->pause(pauses.next(), end))
        throw error(fmt::format("{}; requested {} times, the last {} s without success", why, tries,
                                double(set.retry_timeout.count()) / 1000));
    }
  }

  std::string target_of(std::string const& key) const { return path + http::percent_encoded(key, "/"); }
};

EDL_INLINE store::store(std::string bucket, store_options o)
    : self_(std::make_unique<implementation>(std::move(bucket), std::move(o))) {}
EDL_INLINE store::~store() = default;
EDL_INLINE std::string const& store::bucket() const { return self_->bucket; }
EDL_INLINE std::string const& store::endpoint() const { return self_->endpoint; }

EDL_INLINE std::optional<object> store::find(std::string const& key) const {
  auto const make = [&] { return http::question{"GET", self_->target_of(key), {{"Range", "bytes=0-0"}}}; };
  std::string const what = self_->name(key);
  auto const head = self_->ask(make, what, [](auto&, auto part) { return part.size() <= 1; }, 0, true);
  object o{key, 0, std::string(head.field("etag"))};
  if (head.code() == 404) return std::nullopt;
  auto const range = head.code() == 200 ? head.field("content-length") : head.field("content-range");
  auto const size = number_from<std::uint64_t>(range.substr(range.find('/') + 1));
  if (!size || (o.etag.empty() && head.code() != 416))
    throw error(fmt::format("{}: the reply has no size or ETag ('{}')", what, printable(range, 100)));
  o.size = *size;
  return o;
}

EDL_INLINE std::vector<object> store::list(std::string const& prefix) const {
  std::vector<object> all;
  std::string token;
  std::set<std::string> tokens;
  std::size_t entries = 0, empty_pages = 0;
  std::string const what = self_->name(prefix);
  do {
    auto const make = [&] {
      auto const bucket = self_->path.size() > 1 && self_->path.ends_with('/')
                              ? self_->path.substr(0, self_->path.size() - 1)
                              : self_->path;
      std::string target = bucket + "?list-type=2&encoding-type=url&prefix=" + http::percent_encoded(prefix);
      if (!token.empty()) target += "&continuation-token=" + http::percent_encoded(token);
      return http::question{"GET", target};
    };
    std::string page;
    http::client::sink const take = [&](auto&, std::string_view part) {
      page.append(part);
      if (page.size() > detail::longest_page)
        throw error(what + ": a page of the list is larger than 16 MiB");
      return true;
    };
    auto const fresh = [&] {
      page.clear();
      return make();
    };
    self_->ask(fresh, what, take, 0);
    std::string_view rest = page;
    if (detail::element(rest, "Name").empty() && detail::element(rest, "KeyCount").empty() &&
        detail::element(rest, "IsTruncated").empty())
      throw error(fmt::format("{}: the reply is not a list of objects: '{}'", what, printable(page, 200)));
    bool const coded = detail::element(rest, "EncodingType") == "url";
    std::size_t const before = entries;
    for (std::string_view one; !(one = detail::element(rest, "Contents")).empty(); ++entries) {
      rest = rest.substr(std::size_t(one.data() + one.size() - rest.data()));
      object o{detail::plain(detail::element(one, "Key")), 0, detail::plain(detail::element(one, "ETag"))};
      if (coded) o.key = http::decoded(o.key, true);
      auto const size = number_from<std::uint64_t>(detail::element(one, "Size"));
      if (o.key.empty() || !o.key.starts_with(prefix) || !size || o.etag.empty())
        throw error(fmt::format("{}: the list has an invalid entry: '{}'", what, printable(one, 200)));
      o.size = *size;
      if (!o.key.ends_with('/')) all.push_back(std::move(o));
      if (entries >= detail::most_objects)
        throw error(
            fmt::format("{}: more than {} objects: name a longer prefix", what, detail::most_objects));
    }
    if (rest.find("<Contents") != rest.npos)
      throw error(fmt::format("{}: the list has an invalid entry: '{}'", what,
                              printable(rest.substr(rest.find("<Contents")), 200)));
    auto const truncated = detail::element(page, "IsTruncated");
    if (!truncated.empty() && truncated != "true" && truncated != "false")
      throw error(fmt::format("{}: the list has the IsTruncated '{}'", what, printable(truncated, 100)));
    auto next =
        truncated == "true" ? detail::plain(detail::element(page, "NextContinuationToken")) : std::string();
    if (!next.empty() && !tokens.insert(next).second)
      throw error(what + ": the store returns the same page of the list again");
    empty_pages = entries > before ? 0 : empty_pages + 1;
    if (!next.empty() && empty_pages > detail::most_empty_pages)
      throw error(fmt::format("{}: {} pages of the list in a row have no object", what, empty_pages));
    if (next.empty() && truncated == "true")
      throw error(what + ": the list is truncated, but the store does not say where it continues");
    token = std::move(next);
  } while (!token.empty());
  std::ranges::sort(all, {}, &object::key);
  auto const twice = std::ranges::adjacent_find(all, {}, &object::key);
  if (twice != all.end()) throw error(fmt::format("{}: the list has it twice", self_->name(twice->key)));
  return all;
}

EDL_INLINE void store::read(object const& of, std::uint64_t from, std::uint64_t to,
                            std::function<void(std::string_view)> const& take) const {
  std::string const what = self_->name(of.key);
  auto const changed = [&] {
    return error(what +
                 ": it has changed since the job found it: start again, with objects that do not change");
  };
  auto const make = [&] {
    return http::question{"GET",
                          self_->target_of(of.key),
                          {{"Range", fmt::format("bytes={}-{}", from, to - 1)}, {"If-Match", of.etag}}};
  };
  while (from < to) {
    std::uint64_t const first = from;
    bool begun = false;
    http::client::sink const checked = [&](http::response_parser const& head, std::string_view part) {
      if (!begun) {
        begun = true;
        auto const range = head.field("content-range");
        auto const wanted = fmt::format("bytes {}-{}/{}", from, to - 1, of.size);
        if (head.field("etag") != of.etag) throw changed();
        if (head.code() == 200 && !(from == 0 && to == of.size))
          throw error(what + ": the store replies with the whole object: it does not support ranges");
        if (head.code() != 200 && range != wanted)
          throw error(fmt::format("{}: the store replies with '{}' instead of '{}'", what,
                                  printable(range, 100), wanted));
      }
      if (part.size() > to - from) throw error(what + ": the store sends more than was requested");
      take(part);
      from += part.size();
      return true;
    };
    auto const again = [&] {
      begun = false;
      return make();
    };
    auto const head = self_->ask(again, what, checked, from, true);
    if (head.code() == 404 || head.code() == 416) throw changed();
    if (from == first) throw error(what + ": the store replies with no bytes");
  }
}

}  // namespace edl::bucket
