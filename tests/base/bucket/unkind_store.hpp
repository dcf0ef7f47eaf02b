// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/evp.h>

#include <algorithm>
#include <atomic>
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

/// A double of S3 with one bucket, "box", that does to a request what a test says. Its requests come one
/// after the other.
class unkind_store {
 public:
  /// Returns whether it has answered.
  using fault = std::function<bool(request const&, wire&)>;

  explicit unkind_store(fault f = {})
      : fault_(std::move(f)), server_(nullptr, [this](request const& r, wire& w) { answer(r, w); }) {}

  std::map<std::string, std::string> objects;
  std::map<std::string, std::string> tags = {};   ///< ETags that are no MD5 sums
  std::size_t page = 1000;                        ///< keys of a page of lists
  std::string user = "A";                         ///< whose requests are taken
  bool backwards = false;                         ///< keys of a page are out of order
  bool conditions = true;                         ///< of writes hold, or are ignored
  std::map<std::string, std::string> sums = {};   ///< that are sent with an object that is read whole
  std::map<std::string, std::string> marks = {};  ///< what writes have drawn
  struct upload {
    std::string key, mark;
    bool summed = true;  ///< the list that joins its parts has their sums
    std::map<int, std::string> parts = {};
  };
  std::map<std::string, upload> uploads = {};  ///< that are neither joined nor removed
  int begun = 0;                               ///< uploads, all together
  int copies = 0;                              ///< of objects or parts
  int lists = 0;                               ///< pages of lists that were sent
  bool starts_after = true;                    ///< lists begin behind a given key, or ignore it
  std::recursive_mutex mutex;                  ///< of all this, while a client uses it

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
    if (!fault_ || !fault_(r, w)) serve(r, w);
  }

  /// Does what is asked, and loses the reply.
  void serve_silently(request const& r, wire& w) {
    std::atomic<bool> const stopped{false};
    wire nowhere(-1, nullptr, stopped);
    serve(r, nowhere);
    w.cut();
  }

  void serve(request const& r, wire& w) {
    std::lock_guard const lock(mutex);
    if (r.field("Authorization").find("Credential=" + user + "/") == std::string::npos)
      return refuse(w, 403, "InvalidAccessKeyId");
    if (r.field("x-amz-content-sha256") != edl::bucket::sha256(r.body))
      return refuse(w, 400, "XAmzContentSHA256Mismatch");
    if (auto const sum = r.field("x-amz-checksum-sha256");
        !sum.empty() && sum != edl::bucket::base64(edl::bucket::sha256_bytes(r.body)))
      return refuse(w, 400, "BadDigest");
    auto const mark = std::min(r.target.find('?'), r.target.size());
    std::string const path = edl::http::decoded(r.target.substr(0, mark));
    edl::http::request q;
    q.query = r.target.substr(std::min(mark + 1, r.target.size()));
    if (path == "/box")
      return r.target.find("?uploads=") == r.target.npos ? list(q.query, w) : begun_below(q, w);
    std::string const key = path.substr(5), id = q.parameter("uploadId");
    if (r.method == "POST" && id.empty()) return begin(key, r, w);
    if (!id.empty()) return go_on(id, q, r, w);
    if (r.method == "PUT" && !r.field("x-amz-copy-source").empty()) {
      std::string source, text;
      if (!copied(r, source, text, w)) return;
      ++copies;
      objects[key] = text;
      sums[key] = sums[source], marks[key] = marks[source];
      tags.erase(key);
      return xml("<CopyObjectResult><ETag>&quot;" + md5(text) + "&quot;</ETag></CopyObjectResult>", w);
    }
    if (r.method == "PUT") {
      if (!holds(r, key, w)) return;
      sums[key] = r.field("x-amz-checksum-sha256");
      return keep(key, r.body, r.field("x-amz-meta-edl-write"), w);
    }
    if (r.method == "DELETE") {
      objects.erase(key);
      return w.send("HTTP/1.1 204 Gone\r\n\r\n");
    }
    read(key, r, w);
  }

 private:
  bool holds(request const& r, std::string const& key, wire& w) {
    if (!conditions) return true;
    bool const there = objects.contains(key);
    auto const wanted = r.field("If-Match");
    if (!wanted.empty() && !there) return refuse(w, 404, "NoSuchKey"), false;
    if ((there && r.field("If-None-Match") == "*") || (!wanted.empty() && wanted != tag_of(key)))
      return refuse(w, 412, "PreconditionFailed"), false;
    return true;
  }

  /// What is to be copied; false: it is refused.
  bool copied(request const& r, std::string& source, std::string& text, wire& w) {
    source = edl::http::decoded(r.field("x-amz-copy-source"));
    if (!source.starts_with("box/") || !r.body.empty()) return refuse(w, 400, "InvalidArgument"), false;
    source.erase(0, 4);
    if (!objects.contains(source)) return refuse(w, 404, "NoSuchKey"), false;
    if (auto const tag = r.field("x-amz-copy-source-if-match"); !tag.empty() && tag != tag_of(source))
      return refuse(w, 412, "PreconditionFailed"), false;
    text = objects.at(source);
    if (std::string const range = r.field("x-amz-copy-source-range"); !range.empty()) {
      std::size_t const from = std::stoul(range.substr(6)),
                        to = std::stoul(range.substr(range.find('-') + 1));
      if (to >= text.size()) return refuse(w, 416, "InvalidRange"), false;
      text = text.substr(from, to + 1 - from);
    }
    return true;
  }

  void keep(std::string const& key, std::string text, std::string const& mark, wire& w) {
    objects[key] = std::move(text);
    marks[key] = mark;
    tags.erase(key);
    w.send("HTTP/1.1 200 OK\r\nETag: " + tag_of(key) + "\r\nContent-Length: 0\r\n\r\n");
  }

  static void xml(std::string const& text, wire& w) {
    w.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text);
  }

  void begun_below(edl::http::request const& q, wire& w) {
    std::string all;
    std::size_t n = 0;
    for (auto const& [id, one] : uploads)
      if (one.key.starts_with(q.parameter("prefix")) && n++ < page)
        all += "<Upload><Key>" + one.key + "</Key><UploadId>" + id + "</UploadId></Upload>";
    xml("<ListMultipartUploadsResult><IsTruncated>" + std::string(n > page ? "true" : "false") +
            "</IsTruncated>" + all + "</ListMultipartUploadsResult>",
        w);
  }

  void begin(std::string const& key, request const& r, wire& w) {
    std::string const id = "id+" + std::to_string(++begun);
    uploads[id] = {key, r.field("x-amz-meta-edl-write"), r.field("x-amz-checksum-algorithm") == "SHA256"};
    xml("<InitiateMultipartUploadResult><UploadId>" + id + "</UploadId></InitiateMultipartUploadResult>", w);
  }

  void go_on(std::string const& id, edl::http::request const& q, request const& r, wire& w) {
    auto const found = uploads.find(id);
    if (found == uploads.end()) return refuse(w, 404, "NoSuchUpload");
    if (r.method == "DELETE") {
      uploads.erase(found);
      return w.send("HTTP/1.1 204 Gone\r\n\r\n");
    }
    if (r.method == "PUT" && !r.field("x-amz-copy-source").empty()) {
      std::string source, text;
      if (!copied(r, source, text, w)) return;
      ++copies;
      found->second.parts[std::stoi(q.parameter("partNumber"))] = text;
      return xml("<CopyPartResult><ETag>&quot;" + md5(text) + "&quot;</ETag></CopyPartResult>", w);
    }
    if (r.method == "PUT") {
      found->second.parts[std::stoi(q.parameter("partNumber"))] = r.body;
      return w.send("HTTP/1.1 200 OK\r\nETag: \"" + md5(r.body) + "\"\r\nContent-Length: 0\r\n\r\n");
    }
    auto const [key, mark, summed, parts] = found->second;
    if (!holds(r, key, w)) return;
    std::string all, list;
    for (auto const& [number, text] : parts) {
      all += text;
      list +=
          "<Part><PartNumber>" + std::to_string(number) + "</PartNumber><ETag>\"" + md5(text) + "\"</ETag>";
      if (summed)
        list +=
            "<ChecksumSHA256>" + edl::bucket::base64(edl::bucket::sha256_bytes(text)) + "</ChecksumSHA256>";
      list += "</Part>";
    }
    if (r.body.find(">" + list + "</Complete") == std::string::npos) return refuse(w, 400, "InvalidPart");
    uploads.erase(found);
    objects[key] = all;
    marks[key] = mark;
    tags[key] = "\"" + md5(all) + "-" + std::to_string(parts.size()) + "\"";
    sums[key] = "c29t-" + std::to_string(parts.size());
    std::string tag = tags[key];
    tag = "&quot;" + tag.substr(1, tag.size() - 2) + "&quot;";
    xml("<CompleteMultipartUploadResult><ETag>" + tag + "</ETag></CompleteMultipartUploadResult>", w);
  }

  void read(std::string const& key, request const& r, wire& w) {
    auto const found = objects.find(key);
    if (found == objects.end()) return refuse(w, 404, "NoSuchKey");
    if (auto const wanted = r.field("If-Match"); !wanted.empty() && wanted != tag_of(key))
      return refuse(w, 412, "PreconditionFailed");
    std::string const& all = found->second;
    std::string const range = r.field("Range");
    std::string head = "ETag: " + tag_of(key) + "\r\n";
    if (auto const mark = marks.find(key); mark != marks.end())
      head += "x-amz-meta-edl-write: " + mark->second + "\r\n";
    if (range.empty()) {
      if (auto const sum = sums.find(key); sum != sums.end() && r.field("x-amz-checksum-mode") == "ENABLED")
        head += (sum->second.size() < 40 ? "x-amz-checksum-crc32c: " : "x-amz-checksum-sha256: ") +
                sum->second + "\r\n";
      return w.send("HTTP/1.1 200 OK\r\n" + head + "Content-Length: " + std::to_string(all.size()) +
                    "\r\n\r\n" + all);
    }
    if (all.empty()) return refuse(w, 416, "InvalidRange", "Content-Range: bytes */0\r\n");
    std::size_t const from = std::stoul(range.substr(6)),
                      to = std::min(std::stoul(range.substr(range.find('-') + 1)) + 1, all.size());
    w.send("HTTP/1.1 206 Partial\r\n" + head + "Content-Range: bytes " + std::to_string(from) + "-" +
           std::to_string(to - 1) + "/" + std::to_string(all.size()) +
           "\r\nContent-Length: " + std::to_string(to - from) + "\r\n\r\n" + all.substr(from, to - from));
  }

  void list(std::string const& query, wire& w) {
    edl::http::request const q{.query = query};
    ++lists;
    std::string const prefix = q.parameter("prefix"), delimiter = q.parameter("delimiter");
    std::string after = q.parameter("continuation-token");
    if (after.empty() && starts_after) after = q.parameter("start-after");
    std::vector<std::string> keys;
    bool more = false;
    for (auto it = after.empty() ? objects.begin() : objects.upper_bound(after); it != objects.end(); ++it) {
      if (!it->first.starts_with(prefix)) continue;
      auto const cut = delimiter.empty() ? std::string::npos : it->first.find(delimiter, prefix.size());
      std::string const key = it->first.substr(0, cut == it->first.npos ? cut : cut + 1);
      if (key == after || (!keys.empty() && keys.back() == key)) continue;
      if ((more = keys.size() == page)) break;
      keys.push_back(key);
    }
    std::string body =
        "<?xml version=\"1.0\"?><ListBucketResult><Name>box</Name><EncodingType>url</EncodingType>";
    body += std::string("<IsTruncated>") + (more ? "true" : "false") + "</IsTruncated>";
    if (more) body += "<NextContinuationToken>" + keys.back() + "</NextContinuationToken>";
    if (backwards) std::ranges::reverse(keys);
    for (auto const& key : keys) {
      if (!delimiter.empty() && key.ends_with(delimiter)) {
        body +=
            "<CommonPrefixes><Prefix>" + edl::http::percent_encoded(key, "/") + "</Prefix></CommonPrefixes>";
        continue;
      }
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
