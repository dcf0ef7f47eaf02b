// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <fnmatch.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "edl/base/bucket/cache.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/storage_error.hpp"

namespace edl::bucket {
namespace detail {

namespace fs = std::filesystem;

[[noreturn]] inline void refuse_file(std::string const& what, std::string const& path) {
  int const code = errno;
  throw storage_error(code, fmt::format("--data_cache: {} {}: {}", what, path, std::strerror(code)));
}

// The ending of an incomplete file's name.
inline constexpr std::string_view unfinished = ".edl-part";

// The objects that a path of data names.
struct objects {
  std::string base;   // the common prefix of the keys, which names in the copy lack
  std::string shown;  // the path to open within the copy; empty: all of it
  std::vector<object> all;
  std::uint64_t bytes = 0;
};

inline objects find_objects(store const& from, std::string const& url, std::string const& key) {
  objects found;
  auto const wild = key.find_first_of("*?[");
  auto const base_of = [](std::string_view of) { return of.substr(0, of.rfind('/') + 1); };
  if (auto one = key.empty() || key.ends_with('/') ? std::nullopt : from.find(key)) {
    found.base = base_of(key);
    found.shown = key.substr(found.base.size());
    found.all = {std::move(*one)};
  } else if (wild != key.npos) {
    found.base = base_of(key.substr(0, wild));
    found.shown = key.substr(found.base.size());
    found.all = from.list(key.substr(0, wild));
    std::erase_if(found.all,
                  [&](object const& o) { return ::fnmatch(key.c_str(), o.key.c_str(), FNM_PATHNAME) != 0; });
  } else {
    found.base = key.empty() || key.ends_with('/') ? key : key + "/";
    found.all = from.list(found.base);
  }
  if (found.all.empty())
    throw error(fmt::format("{}: no such object, and none below it in {}", url, from.endpoint()));
  for (object const& o : found.all) {
    // Saturates, because sizes in a server's list may overflow a sum.
    found.bytes = o.size > ~found.bytes ? ~std::uint64_t{0} : found.bytes + o.size;
    fs::path const name(o.key.substr(found.base.size()));
    bool const good = !name.empty() && name.is_relative() && name.lexically_normal() == name &&
                      *name.begin() != ".." && o.key.find('\0') == o.key.npos && !o.key.ends_with(unfinished);
    if (!good)
      throw error(fmt::format("s3://{}/{}: the key is not a valid file name: rename it", from.bucket(),
                              printable(o.key, 300)));
  }
  return found;
}

// A lock of a copy. It ends with its process.
class file_lock {
 public:
  explicit file_lock(std::string const& path)
      : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (fd_ < 0) refuse_file("cannot open", path);
    path_ = path;
  }
  file_lock(file_lock const&) = delete;
  ~file_lock() {
    if (fd_ >= 0) ::close(fd_);
  }
  bool take(int how) {
    int done;
    while ((done = ::flock(fd_, how)) != 0 && errno == EINTR) {
    }
    if (done != 0 && errno != EWOULDBLOCK) refuse_file("cannot lock", path_);
    return done == 0;
  }
  void touch() { ::futimens(fd_, nullptr); }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
  std::string path_;
};

inline std::uint64_t bytes_below(fs::path const& directory) {
  std::uint64_t all = 0;
  std::error_code gone;
  for (auto it = fs::recursive_directory_iterator(directory, gone);
       !gone && it != fs::recursive_directory_iterator(); it.increment(gone)) {
    std::error_code unknown;
    if (it->is_regular_file(unknown)) all += it->file_size(unknown);
  }
  return all;
}

// Removes unused copies, least recently used first, until there is room for one of `bytes`.
inline void make_room(cache_options const& o, fs::path const& directory, std::string const& mine,
                      std::uint64_t bytes) {
  struct entry {
    fs::path lock;
    fs::file_time_type used;
    std::uint64_t bytes;
  };
  std::vector<entry> all;
  std::uint64_t held = 0;
  std::error_code unknown;
  for (auto const& one : fs::directory_iterator(directory)) {
    fs::path const lock = one.path();
    if (lock.extension() != ".lock" || lock.stem() == mine) continue;
    fs::path const copy = directory / lock.stem();
    all.push_back(
        {lock, fs::last_write_time(lock, unknown), bytes_below(copy) + bytes_below(copy.string() + ".part")});
    held += all.back().bytes;
  }
  std::ranges::sort(all, {}, &entry::used);
  for (entry const& e : all) {
    if (held + bytes <= o.most_bytes) return;
    file_lock lock(e.lock);
    if (e.bytes == 0 || !lock.take(LOCK_EX | LOCK_NB)) continue;
    fs::path const copy = directory / e.lock.stem(), part = copy.string() + ".part";
    fs::remove_all(part, unknown);
    fs::rename(copy, part, unknown);  // so that a copy that is partly removed no longer counts as one
    fs::remove_all(part, unknown);
    held -= e.bytes;
    o.log.info(fmt::format("--data_cache: removed {}, which is not in use", copy.string()));
  }
  if (held + bytes > o.most_bytes)
    throw storage_error(
        ENOSPC, fmt::format("--data_cache={}: no room for {} bytes: {} bytes are in use by running jobs, and "
                            "--data_cache_size is {}: raise it, or name another directory",
                            directory.string(), bytes, held, o.most_bytes));
}

// An object that several threads copy in ranges.
struct copying {
  object const& of;
  fs::path to;
  int fd = -1;
  std::atomic<std::uint64_t> left{0};  // ranges
  copying(object const& o, fs::path p) : of(o), to(std::move(p)) {}
  ~copying() {
    if (fd >= 0) ::close(fd);
  }
};

inline void check_sum(copying const& c, std::string const& name) {
  std::string const tag = c.of.etag.size() == 34 ? c.of.etag.substr(1, 32) : std::string();
  if (tag.find_first_not_of("0123456789abcdef") != tag.npos || tag.empty()) return;  // not an MD5
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> const sum(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (!sum || EVP_DigestInit_ex(sum.get(), EVP_md5(), nullptr) != 1) return;  // a system without MD5 (FIPS)
  std::vector<char> some(128 << 10);  // stays in the processor's cache
  for (std::uint64_t at = 0; at < c.of.size;) {
    auto const n = ::pread(c.fd, some.data(), some.size(), ::off_t(at));
    if (n <= 0) refuse_file("cannot read", c.to);
    EVP_DigestUpdate(sum.get(), some.data(), std::size_t(n));
    at += std::uint64_t(n);
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> out;
  unsigned size = 0;
  EVP_DigestFinal_ex(sum.get(), out.data(), &size);
  if (auto const got = hexadecimal({reinterpret_cast<char const*>(out.data()), size}); got != tag) {
    ::unlink(c.to.c_str());
    throw error(
        fmt::format("{}: the received bytes have the MD5 sum {}, but the object's ETag is {}: they were "
                    "damaged on their way, or the store encrypts the object with your key",
                    name, got, tag));
  }
}

// Fetches all objects into `directory`, which may hold those of an interrupted copy.
inline void fetch(store const& from, objects const& what, fs::path const& directory, cache_options const& o) {
  std::vector<std::unique_ptr<copying>> files;
  struct part {
    copying* of;
    std::uint64_t from, to;
  };
  std::vector<part> parts;
  std::atomic<std::uint64_t> fetched{0};  // bytes
  for (object const& one : what.all) {
    fs::path const to = directory / one.key.substr(what.base.size());
    std::error_code none;
    if (fs::is_regular_file(to, none) && fs::file_size(to, none) == one.size) {
      fetched += one.size;
      continue;
    }
    fs::create_directories(to.parent_path());
    auto& c = *files.emplace_back(std::make_unique<copying>(one, to.string() + std::string(unfinished)));
    auto const count = std::max<std::uint64_t>(1, (one.size + o.range - 1) / o.range);
    c.left = count;
    for (std::uint64_t i = 0; i < count; ++i)
      parts.push_back({&c, i * o.range, std::min(one.size, (i + 1) * o.range)});
  }
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failed;
  std::atomic<bool> stopped{false};
  auto const copy = [&](part const& p) {
    copying& c = *p.of;
    {
      std::lock_guard const lock(mutex);
      if (c.fd < 0) c.fd = ::open(c.to.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
      if (c.fd < 0) refuse_file("cannot write", c.to);
    }
    std::uint64_t at = p.from;
    bool const compared = from.read(c.of, p.from, p.to, [&](std::string_view piece) {
      if (stopped) throw error("stopped");
      while (!piece.empty()) {
        auto const n = ::pwrite(c.fd, piece.data(), piece.size(), ::off_t(at));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) refuse_file("cannot write", c.to);
        at += std::uint64_t(n);
        fetched += std::uint64_t(n);
        piece.remove_prefix(std::size_t(n));
      }
    });
    invariant(at == p.to, "a range is written whole");
    if (--c.left > 0) return;
    if (!compared) check_sum(c, fmt::format("s3://{}/{}", from.bucket(), printable(c.of.key, 300)));
    if (::fdatasync(c.fd) != 0) refuse_file("cannot write", c.to);
    ::close(std::exchange(c.fd, -1));
    auto const whole = c.to.string();
    if (::rename(whole.c_str(), whole.substr(0, whole.size() - unfinished.size()).c_str()) != 0)
      refuse_file("cannot rename", c.to);
  };
  auto const work = [&] {
    for (std::size_t i; !stopped && (i = next++) < parts.size();) try {
        copy(parts[i]);
      } catch (...) {
        std::lock_guard const lock(mutex);
        if (!failed) failed = std::current_exception();
        stopped = true;
      }
  };
  {
    std::jthread const tells([&](std::stop_token const& over) {
      std::mutex own;
      std::condition_variable_any nobody;
      std::unique_lock lock(own);
      while (!nobody.wait_for(lock, over, o.progress, [&] { return over.stop_requested(); }))
        o.log.info(fmt::format("{}: fetched {} of {} bytes", directory.string(), fetched.load(), what.bytes));
    });
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < std::min(std::size_t(o.connections), parts.size()); ++i)
      threads.emplace_back(work);
    work();
  }
  if (failed) std::rethrow_exception(failed);
}

}  // namespace detail

EDL_INLINE local_copy::~local_copy() {
  if (lock_ >= 0) ::close(lock_);
}

EDL_INLINE bool local_copy::remove() {
  if (lock_ < 0 || ::flock(lock_, LOCK_EX | LOCK_NB) != 0) return false;
  // So that a copy that is partly removed no longer counts as one.
  std::string const part = path_ + ".part";
  std::filesystem::remove_all(part);
  std::filesystem::rename(path_, part);
  std::filesystem::remove_all(part);
  ::close(std::exchange(lock_, -1));
  return true;
}

EDL_INLINE bool names_objects(std::string_view path) { return path.starts_with("s3://"); }

EDL_INLINE std::string without_slashes(std::string path) {
  std::size_t const least = names_objects(path) ? 5 : 1;
  while (path.size() > least && path.ends_with('/')) path.pop_back();
  return path;
}

EDL_INLINE std::pair<std::string, std::string> parts_of(std::string const& url) {
  auto const slash = std::min(url.find('/', 5), url.size());
  return {url.substr(5, slash - 5), url.substr(std::min(slash + 1, url.size()))};
}

EDL_INLINE std::string cache_directory(cache_options const& o) {
  if (!o.directory.empty()) return o.directory;
  if (auto const shared = process_environment("XDG_CACHE_HOME"); !shared.empty()) return shared + "/edl";
  if (auto const home = process_environment("HOME"); !home.empty()) return home + "/.cache/edl";
  throw storage_error(EACCES,
                      "s3:// paths are copied, but HOME is not set: name a directory with --data_cache");
}

EDL_INLINE local_copy copy_of(std::string const& url, cache_options const& o) try {
  namespace fs = std::filesystem;
  auto const [bucket, key] = parts_of(url);
  store const from(bucket, o.store);
  auto const what = detail::find_objects(from, url, key);
  if (what.bytes > o.most_bytes)
    throw storage_error(
        ENOSPC,
        fmt::format("{}: {} objects have {} bytes, but --data_cache_size is {}: raise it, or name fewer", url,
                    what.all.size(), what.bytes, o.most_bytes));
  std::string all = from.endpoint() + "\n" + what.base;
  for (object const& one : what.all) all += fmt::format("\n{} {} {}", one.key, one.size, one.etag);
  std::string const name = fmt::format("{}-{}", from.bucket(), sha256(all).substr(0, 16));
  fs::path const directory = cache_directory(o), copy = directory / name, part = directory / (name + ".part");
  fs::create_directories(directory);
  detail::file_lock lock((directory / (name + ".lock")).string());
  auto const done = [&] {
    lock.touch();
    return local_copy((what.shown.empty() ? copy : copy / what.shown).string(), lock.release());
  };
  std::string const shown = printable(url, 300);
  if (!lock.take(LOCK_SH | LOCK_NB)) o.log.info(shown + ": waiting for another process to fetch it");
  for (;;) {
    lock.take(LOCK_SH);
    if (fs::exists(copy)) {
      o.log.info(fmt::format("{}: {} bytes are in {}", shown, what.bytes, copy.string()));
      return done();
    }
    lock.take(LOCK_EX);  // another process may fetch it meanwhile
    if (fs::exists(copy)) continue;
    detail::make_room(o, directory, name, what.bytes);
    o.log.info(fmt::format("{}: fetching {} objects, {} bytes, to {}", shown, what.all.size(), what.bytes,
                           copy.string()));
    auto const begin = clock::now();
    fs::create_directories(part);
    detail::fetch(from, what, part, o);
    fs::rename(part, copy);
    o.log.info(fmt::format("{}: fetched within {:.1f} s", shown,
                           std::chrono::duration<double>(clock::now() - begin).count()));
  }
} catch (std::filesystem::filesystem_error const& e) {
  throw storage_error(e.code().value(), fmt::format("--data_cache: {}", e.what()));
}

}  // namespace edl::bucket
