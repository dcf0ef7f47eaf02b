// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "edl/base/bucket/cache.hpp"
#include "edl/base/bucket/place.hpp"
#include "edl/base/bucket/store.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/input_file.hpp"
#include "edl/core/storage_call.hpp"

namespace edl::bucket {
namespace detail {

// Of an object without bytes.
inline constexpr std::string_view empty_tag = "\"d41d8cd98f00b204e9800998ecf8427e\"";

}  // namespace detail

EDL_INLINE place::place(std::string path)
    : place(std::move(path), cache_options{.log = logger(severity::warning)}) {}

EDL_INLINE place::place(std::string path, cache_options const& o)
    : options_(std::make_shared<cache_options const>(o)) {
  *this = at(std::move(path));
}

EDL_INLINE place place::at(std::string path) const {
  place other = *this;
  other.path_ = std::move(path);
  if (!names_objects(other.path_)) {
    other.store_.reset();
    return other;
  }
  other.path_ = without_slashes(std::move(other.path_));
  auto const [bucket, key] = parts_of(other.path_);
  other.prefix_ = key.empty() ? key : key + "/";
  if (!store_ || store_->bucket() != bucket)
    other.store_ = std::make_shared<store const>(bucket, options_->store);
  return other;
}

EDL_INLINE void place::check(std::string const& name) const {
  if (store_) {
    try {
      durable_directory const tried(cache_directory(*options_) + "/upload");  // never committed
    } catch (error const& e) {
      throw error(
          fmt::format("{}; files are written there before they are uploaded: name another directory "
                      "with --data_cache",
                      e.what()));
    }
    return store_->check_writable(prefix_ + name);
  }
  create();
  if (::access(path_.c_str(), W_OK) != 0)
    throw error(fmt::format("{}: cannot write there: {}", path_, std::strerror(errno)));
}

EDL_INLINE void place::check_conditions(std::string const& name) const {
  if (!store_) return;
  auto const tag = store_->put(prefix_ + name, "")->etag;
  if (tag.size() == detail::empty_tag.size() && tag != detail::empty_tag && tag.find('-') == tag.npos)
    throw error(fmt::format(
        "{}: the ETag of an empty object is {}, and not its MD5 sum: the bucket encrypts objects with "
        "a key of yours (SSE-KMS), so that copies cannot be verified: name another one",
        path_, tag));
  // Another process may write or remove it meanwhile.
  auto const same = [&](auto const& now) { return now && now->tag == tag; };
  if (!replace(name, "", tag) && same(read(name, 1)))
    throw error(
        fmt::format("{}: the object store {} refuses a write with If-Match whose ETag is right: name a "
                    "bucket of another store, or a directory",
                    path_, store_->endpoint()));
  if ((replace(name, "", "") && replace(name, "", "")) || replace(name, "", "\"0\""))
    throw error(fmt::format(
        "{}: the object store {} ignores conditions of writes (If-None-Match, If-Match), by which "
        "two jobs would exclude each other: name a bucket of another store, or a directory",
        path_, store_->endpoint()));
}

EDL_INLINE void place::create() const {
  if (store_) return;
  storage_call("cannot create directory " + path_,
               [&](auto& code) { return std::filesystem::create_directories(path_, code); });
}

EDL_INLINE void place::write(std::string const& name,
                             std::function<void(std::string const& path)> const& how) const {
  create();
  if (!store_) return how(path_ + "/" + name);
  std::string const local = cache_directory(*options_) + "/upload";
  remove_dead_temporaries(cache_directory(*options_), "upload");
  durable_directory const temporary(local);  // never committed
  std::string const file = temporary.temporary() + "/" + name;
  how(file);
  store_->put(prefix_ + name, input_file(file));
}

EDL_INLINE void place::fill(std::function<void(std::string const& directory)> const& how) const {
  if (!store_) return how(path_);
  if (!names().empty())
    throw error(fmt::format("{}: objects are there already; remove them, or write elsewhere", path_));
  check();
  std::string const local = cache_directory(*options_) + "/upload";
  remove_dead_temporaries(cache_directory(*options_), "upload");
  durable_directory const temporary(local);  // never committed
  place const made = at(temporary.temporary() + "/made");
  how(made.path());
  auto files = made.names();
  std::ranges::sort(files);
  auto next = files.begin();
  try {
    for (; next != files.end(); ++next) store_->put(prefix_ + *next, input_file(made.path() + "/" + *next));
  } catch (...) {
    try {
      for (auto one = files.begin(); one <= next; ++one) store_->remove(prefix_ + *one);
    } catch (error const& e) {
      warn(fmt::format("{}; incomplete data stay in {}", e.what(), path_));
    }
    throw;
  }
}

EDL_INLINE std::optional<place::text> place::read(std::string const& name, std::uint64_t most) const {
  if (store_) {
    auto found = store_->get(prefix_ + name, most);
    if (!found) return std::nullopt;
    return text{std::move(found->first), std::move(found->second.etag)};
  }
  std::string const path = path_ + "/" + name;
  try {
    input_file const file(path);
    if (file.size() > most)
      throw error(fmt::format("{} has {} bytes, which is too large: {} at most", path, file.size(), most));
    text found{std::string(std::size_t(file.size()), '\0'), {}};
    file.read(0, std::as_writable_bytes(std::span(found.content)));
    return found;
  } catch (storage_error const& e) {
    if (e.code() == ENOENT || e.code() == ENOTDIR) return std::nullopt;
    throw;
  }
}

EDL_INLINE std::optional<std::string> place::replace(std::string const& name, std::string_view content,
                                                     std::string const& over,
                                                     std::function<void()> const& last, forced much) const {
  if (store_) {
    if (last) last();
    auto const made = store_->put(prefix_ + name, content, {.absent = over.empty(), .etag = over});
    return made ? std::optional(made->etag) : std::nullopt;
  }
  durable_file file(path_ + "/" + name);
  file.write(content);
  if (last) last();
  file.commit(much);
  return std::string();
}

EDL_INLINE void place::put(std::string const& name, std::string_view content, forced much) const {
  if (store_)
    store_->put(prefix_ + name, content);
  else
    replace(name, content, {}, {}, much);
}

EDL_INLINE std::vector<std::string> place::names() const {
  if (store_) return store_->names(prefix_);
  std::vector<std::string> all;
  std::error_code code;
  for (std::filesystem::directory_iterator it(path_, code), end; !code && it != end; it.increment(code))
    all.push_back(it->path().filename().native());
  if (code && code != std::errc::no_such_file_or_directory && code != std::errc::not_a_directory)
    throw storage_error(code.value(), fmt::format("cannot read directory {}: {}", path_, code.message()));
  return all;
}

EDL_INLINE std::uint64_t place::size(std::string const& name) const {
  if (!store_) return input_file(path_ + "/" + name).size();
  auto const found = store_->find(prefix_ + name);
  if (!found) throw error(fmt::format("{}/{}: no such object", path_, name));
  return found->size;
}

EDL_INLINE place::listed place::objects(
    std::function<std::optional<std::string>(listed const& page)> const& skip, std::size_t most) const {
  auto const named = [&](std::vector<object> const& objects) {
    listed all;
    for (object const& o : objects) all.emplace_back(o.key.substr(prefix_.size()), o.etag);
    return all;
  };
  store::skipped of_keys;
  if (skip)
    of_keys = [&](std::vector<object> const& page) {
      auto folder = skip(named(page));
      if (folder) folder->insert(0, prefix_);
      return folder;
    };
  return named(store_->list(prefix_, of_keys, most));
}

EDL_INLINE local_copy place::copy() const { return copy_of(path_ + "/", *options_); }

EDL_INLINE bool place::link(std::string const& from, std::string const& name) const {
  if (!store_) {
    std::error_code failed;
    std::filesystem::create_hard_link(from + "/" + name, path_ + "/" + name, failed);
    return !failed;
  }
  place const other = at(from);
  if (other.store_ != store_) return false;
  try {
    return store_->copy(other.prefix_ + name, prefix_ + name);
  } catch (error const& e) {  // a store that is too slow to copy may take an upload
    warn(fmt::format("{}; files are uploaded again instead", e.what()));
    return false;
  }
}

EDL_INLINE void place::warn(std::string const& text) const { options_->log.warning(text); }

EDL_INLINE void place::remove(std::string const& name) const {
  if (store_) return store_->remove(prefix_ + name);
  storage_call(fmt::format("cannot remove {}/{}", path_, name),
               [&](auto& code) { return std::filesystem::remove(path_ + "/" + name, code); });
}

EDL_INLINE void place::remove_all() const {
  if (store_)
    for (auto const& [name, tag] : objects()) remove(name);
  else
    storage_call("cannot remove " + path_,
                 [&](auto& code) { return std::filesystem::remove_all(path_, code); });
}

EDL_INLINE void place::abandon_uploads(std::string const& begin) const {
  if (store_) store_->abandon_uploads(prefix_ + begin);
}

}  // namespace edl::bucket
