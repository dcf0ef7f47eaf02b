// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kubernetes/status.hpp"

namespace edl::testing::kubernetes {

using clock = std::chrono::steady_clock;
using object = std::shared_ptr<json const>;
using filter = std::function<bool(json const&)>;

/// "2026-11-20T10:39:00Z".
std::string timestamp(std::chrono::system_clock::time_point at = std::chrono::system_clock::now());

/// `n` characters as the server appends them to a generateName.
std::string random_suffix(std::size_t n);

/// "a=b,c!=d,e in (f,g),!h" of labels; "metadata.name=x" of fields. Throws refusal.
filter label_filter(std::string const& selector);
filter field_filter(std::string const& selector);

/// Whether all of `wanted` are among `labels`.
bool has_labels(json const& labels, json const& wanted);

/// The objects, by kind, namespace and name; each change gets the next resourceVersion, and the last changes
/// are kept for watches. One lock for everything: `lock` makes several steps one.
/// Thread safety: safe.
class store {
 public:
  struct change {
    std::uint64_t version;
    type const* resource;
    object before, after;  ///< null: there was none, there is none. A deleted object stands in `before`.
  };

  explicit store(std::size_t history) : history_(history) {}

  std::unique_lock<std::recursive_mutex> lock() const { return std::unique_lock(mutex_); }

  type const& define(type t);  ///< replaces what has the same group and plural
  void undefine(std::string const& group, std::string const& plural);                ///< with all its objects
  type const* find_type(std::string const& group, std::string const& plural) const;  ///< that is served
  type const& kind(std::string const& plural) const;  ///< of those that are always there
  std::vector<type const*> types() const;             ///< that are served

  object find(type const& of, std::string const& space, std::string const& name) const;  ///< or null
  /// By namespace and name; `space` empty: of all.
  std::vector<object> list(type const& of, std::string const& space = "", filter const& which = {}) const;

  /// Adds an object: uid, creationTimestamp and resourceVersion are given here. Throws refusal:
  /// AlreadyExists.
  object add(type const& of, json o);
  /// Replaces one; nothing happens when nothing differs.
  object put(type const& of, json o);
  void remove(type const& of, std::string const& space, std::string const& name);

  /// `how` changes a copy of the object, if it is there.
  object change_by(type const& of, std::string const& space, std::string const& name,
                   std::function<void(json&)> const& how);

  std::uint64_t version() const;
  std::uint64_t oldest() const;                            ///< watches can start here or later
  std::vector<change> since(std::uint64_t version) const;  ///< oldest() <= version

  /// Forgets all changes: watches expire, open ones, too.
  void forget();

  /// Until `ready` (asked with the lock held, after each change and each `wake`), or that time.
  bool wait(clock::time_point until, std::function<bool()> const& ready) const;
  void wake() const;

  std::function<void(type const&)> on_change;  ///< called with the lock held

 private:
  using key = std::pair<std::string, std::string>;
  void record(type const& of, object before, object after);

  mutable std::recursive_mutex mutex_;
  mutable std::condition_variable_any changed_;
  std::size_t history_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<type>> types_;
  std::map<type const*, std::map<key, object>> objects_;
  std::deque<change> changes_;
  std::uint64_t version_ = 100, oldest_ = 100;
};

}  // namespace edl::testing::kubernetes
