// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "edl/base/bucket/place.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/input_file.hpp"
#include "edl/core/storage_call.hpp"

namespace edl::bucket {

EDL_INLINE place::place(std::string path, cache_options o) : path_(std::move(path)), options_(std::move(o)) {
  if (!names_objects(path_)) return;
  auto [bucket, key] = parts_of(path_);
  prefix_ = key.empty() || key.ends_with('/') ? key : key + "/";
  store_ = std::make_unique<store>(bucket, options_.store);
}

EDL_INLINE place::~place() = default;
EDL_INLINE place::place(place&&) noexcept = default;

EDL_INLINE void place::check() const {
  if (store_) {
    try {
      durable_directory const tried(cache_directory(options_) + "/upload");  // never committed
    } catch (error const& e) {
      throw error(
          fmt::format("{}; files are written there before they are uploaded: name another directory "
                      "with --data_cache",
                      e.what()));
    }
    return store_->check_writable(prefix_ + "edl");
  }
  storage_call("cannot create directory " + path_,
               [&](auto& code) { return std::filesystem::create_directories(path_, code); });
  if (::access(path_.c_str(), W_OK) != 0)
    throw error(fmt::format("{}: cannot write there: {}", path_, std::strerror(errno)));
}

EDL_INLINE void place::write(std::string const& name,
                             std::function<void(std::string const& path)> const& how) const {
  if (!store_) {
    storage_call("cannot create directory " + path_,
                 [&](auto& code) { return std::filesystem::create_directories(path_, code); });
    return how(path_ + "/" + name);
  }
  std::string const local = cache_directory(options_) + "/upload";
  remove_dead_temporaries(cache_directory(options_), "upload");
  durable_directory const temporary(local);  // never committed
  std::string const file = temporary.temporary() + "/" + name;
  how(file);
  store_->put(prefix_ + name, input_file(file));
}

EDL_INLINE std::vector<std::string> place::names() const {
  std::vector<std::string> all;
  if (store_) {
    for (object const& o : store_->list(prefix_))
      if (auto name = o.key.substr(prefix_.size()); name.find('/') == name.npos)
        all.push_back(std::move(name));
    return all;
  }
  std::error_code code;
  for (std::filesystem::directory_iterator it(path_, code), end; !code && it != end; it.increment(code))
    all.push_back(it->path().filename().native());
  if (code && code != std::errc::no_such_file_or_directory)
    throw storage_error(code.value(), fmt::format("cannot read directory {}: {}", path_, code.message()));
  return all;
}

EDL_INLINE void place::remove(std::string const& name) const {
  if (store_) return store_->remove(prefix_ + name);
  storage_call(fmt::format("cannot remove {}/{}", path_, name),
               [&](auto& code) { return std::filesystem::remove(path_ + "/" + name, code); });
}

}  // namespace edl::bucket
