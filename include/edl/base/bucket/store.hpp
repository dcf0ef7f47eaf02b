// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/base/bucket/account.hpp"
#include "edl/base/bucket/list_page.hpp"
#include "edl/core/input_file.hpp"

namespace edl::bucket {

/// What must hold for a write to take place. The store decides, atomically.
struct only_if {
  bool absent = false;    ///< there is no object of this key
  std::string etag = {};  ///< this is the object's ETag; empty: it may be any
};

struct store_options {
  std::chrono::milliseconds timeout{30'000};         ///< until a response begins, and of silence within one
  std::chrono::milliseconds retry_timeout{120'000};  ///< for retries since the last received byte
  std::chrono::milliseconds first_pause{200}, longest_pause{10'000};
  std::uint64_t part = 8 << 20;  ///< bytes of a part of an upload; AWS takes none below 5 MiB but the last
  int connections = 4;           ///< at a time, of one upload
  std::function<std::time_t()> now = [] { return std::time(nullptr); };
  std::function<account()> find = [] { return find_account(); };  ///< called again when credentials expire
};

/// The objects of one bucket, by S3's interface over HTTP/1.1: AWS by the bucket's own host name, and any
/// other endpoint by paths. It retries temporary failures with growing pauses: an unreachable or silent
/// server, a broken connection, 429, 500 and 502 to 504 (SlowDown). If this machine's clock is wrong, it
/// signs by the store's. Errors are edl::error, and name bucket, key, status, S3's code and request id, and
/// the remedy; a temporary failure that lasts is storage_error.
///
/// What is written, but for copies, carries its SHA-256, which the store verifies and keeps. What is read
/// whole is compared with the SHA-256, CRC-32C, CRC-32 or CRC-64 that the store sends, if it sends one.
///
/// Thread safety: safe; each call has a connection for itself.
class store {
 public:
  explicit store(std::string bucket, store_options o = {});
  ~store();

  std::string const& bucket() const;
  std::string const& endpoint() const;  ///< its address

  /// Empty: there is no such object.
  std::optional<object> find(std::string const& key) const;

  /// All objects whose keys begin with `prefix`, sorted by key, without "folders" (keys that end in '/').
  /// Throws error if there are more than `most`.
  ///
  /// `skip` is called with each page that is not the last, sorted, and returns a prefix: the list need not
  /// contain further keys that begin so. A store that does not list in order, or only from the first key,
  /// lists all. Nothing: all are wanted.
  using skipped = std::function<std::optional<std::string>(std::vector<object> const& page)>;
  std::vector<object> list(std::string const& prefix, skipped const& skip = {},
                           std::size_t most = 1'000'000) const;

  /// What follows `prefix` in keys, up to a '/' each once: names of objects and of folders.
  std::vector<std::string> names(std::string const& prefix) const;

  /// Passes bytes [from, to) of an object to `take`, in order and each once, in pieces. Throws error if the
  /// object has changed since it was found. Returns whether they were compared with a sum: that of an object
  /// that is read whole, which the store sends, or else an ETag that is an MD5 sum.
  bool read(object const& of, std::uint64_t from, std::uint64_t to,
            std::function<void(std::string_view)> const& take) const;

  /// Writes an object, which other readers see whole or not at all, and returns it. Returns nothing if
  /// `what` does not hold. A write whose reply was lost is repeated, and recognised if it had taken place
  /// after all: then a condition that no longer holds because of it is no failure. Without a condition, a
  /// repeated write may replace what another writer has put there meanwhile. Large files are uploaded in
  /// parts, several at a time, which the store joins; after an error they are removed.
  std::optional<object> put(std::string const& key, std::string_view text, only_if const& what = {}) const;
  std::optional<object> put(std::string const& key, input_file const& from, only_if const& what = {}) const;

  /// Makes the store copy an object to another key, in pieces of 32 parts. The copy appears whole or not at
  /// all; a repeated one is harmless. False: there is no such object, the store has refused a copy before,
  /// which threw error, or the last three failed.
  bool copy(std::string const& from, std::string const& to) const;

  /// Throws error if the account may not write an object of this key. Writes none.
  void check_writable(std::string const& key) const;

  /// The whole content of an object of at most `most` bytes, and the object. Nothing: there is none.
  std::optional<std::pair<std::string, object>> get(std::string const& key, std::uint64_t most) const;

  /// Removes an object, if there is one.
  void remove(std::string const& key) const;

  /// Removes the parts of all uploads below `prefix` that have not been completed.
  void abandon_uploads(std::string const& prefix) const;

 private:
  struct implementation;
  std::unique_ptr<implementation> self_;
};

}  // namespace edl::bucket

#ifdef EDL_HEADER_ONLY
#include "edl/base/bucket/store.ipp"
#endif
