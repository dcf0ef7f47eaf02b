// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/evp.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/http/client/support.hpp"
#include "edl/base/bucket/store.hpp"
#include "edl/base/http/message.hpp"

namespace test {

inline std::string md5(std::string const& text) {
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), out, &size, EVP_md5(), nullptr);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", out[i]);
    hex += two;
  }
  return hex;
}

/// A double of S3 with one bucket, "box", that does to a request what a test says.
class unkind_store {
 public:
  /// Returns whether it has answered.
  using fault = std::function<bool(request const&, wire&)>;

  explicit unkind_store(fault f = {})
      : fault_(std::move(f)), server_(nullptr, [this](request const& r, wire& w) { answer(r, w); }) {}

  std::map<std::string, std::string> objects;
  std::map<std::string, std::string> tags = {};  ///< ETags that are no MD5 sums
  std::size_t page = 1000;                       ///< keys of a page of lists
  std::string user = "A";                        ///< whose requests are taken
  bool backwards = false;                        ///< keys of a page are out of order

  int requests() const { return server_.requests(); }
  int connections() const { return server_.connections(); }
  std::string url() const { return server_.url(); }

  edl::bucket::store_options options() const {
    return {.timeout = std::chrono::seconds(20),
            .retry_timeout = std::chrono::seconds(20),
            .first_pause = std::chrono::milliseconds(1),
            .longest_pause = std::chrono::milliseconds(2),
            .find = [url = url()] {
              edl::bucket::account a{.who = {"A", "secret"}, .endpoint = url};
              a.origin = "a test";
              return a;
            }};
  }

  static void refuse(wire& w, int code, std::string const& name, std::string const& more = {}) {
    std::string const body =
        "<?xml version=\"1.0\"?><Error><Code>" + name + "</Code><Message>said so</Message></Error>";
    w.send("HTTP/1.1 " + std::to_string(code) + " No\r\nx-amz-request-id: R1\r\n" + more +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }

  std::string tag_of(std::string const& key) const {
    auto const own = tags.find(key);
    return own != tags.end() ? own->second : "\"" + md5(objects.at(key)) + "\"";
  }

  void answer(request const& r, wire& w) {
    if (fault_ && fault_(r, w)) return;
    if (r.field("Authorization").find("Credential=" + user + "/") == std::string::npos)
      return refuse(w, 403, "InvalidAccessKeyId");
    auto const mark = r.target.find('?');
    std::string const path = edl::http::decoded(r.target.substr(0, mark));
    if (path == "/box") return list(r.target.substr(mark + 1), w);
    std::string const key = path.substr(5);
    auto const found = objects.find(key);
    if (found == objects.end()) return refuse(w, 404, "NoSuchKey");
    if (auto const wanted = r.field("If-Match"); !wanted.empty() && wanted != tag_of(key))
      return refuse(w, 412, "PreconditionFailed");
    std::string const& all = found->second;
    if (all.empty()) return refuse(w, 416, "InvalidRange", "Content-Range: bytes */0\r\n");
    std::string const range = r.field("Range");
    std::size_t const from = std::stoul(range.substr(6)),
                      to = std::min(std::stoul(range.substr(range.find('-') + 1)) + 1, all.size());
    w.send("HTTP/1.1 206 Partial\r\nETag: " + tag_of(key) + "\r\nContent-Range: bytes " +
           std::to_string(from) + "-" + std::to_string(to - 1) + "/" + std::to_string(all.size()) +
           "\r\nContent-Length: " + std::to_string(to - from) + "\r\n\r\n" + all.substr(from, to - from));
  }

 private:
  void list(std::string const& query, wire& w) {
    edl::http::request const q{.query = query};
    std::string const prefix = q.parameter("prefix"), after = q.parameter("continuation-token");
    std::vector<std::string> keys;
    bool more = false;
    for (auto it = after.empty() ? objects.begin() : objects.upper_bound(after); it != objects.end(); ++it) {
      if (!it->first.starts_with(prefix)) continue;
      if ((more = keys.size() == page)) break;
      keys.push_back(it->first);
    }
    std::string body =
        "<?xml version=\"1.0\"?><ListBucketResult><Name>box</Name><EncodingType>url</EncodingType>";
    body += std::string("<IsTruncated>") + (more ? "true" : "false") + "</IsTruncated>";
    if (more) body += "<NextContinuationToken>" + keys.back() + "</NextContinuationToken>";
    if (backwards) std::ranges::reverse(keys);
    for (auto const& key : keys) {
      std::string tag = tag_of(key);
      for (std::size_t at; (at = tag.find('"')) != tag.npos;) tag.replace(at, 1, "&quot;");
      body += "<Contents><Key>" + edl::http::percent_encoded(key, "/") + "</Key><ETag>" + tag +
              "</ETag><Size>" + std::to_string(objects.at(key).size()) + "</Size></Contents>";
    }
    body += "</ListBucketResult>";
    w.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }

  fault fault_;
  wire_server server_;
};

}  // namespace test
