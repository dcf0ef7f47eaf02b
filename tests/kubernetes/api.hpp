// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <variant>

#include "kubernetes/double.hpp"
#include "kubernetes/store.hpp"

namespace edl::testing::kubernetes {

struct request {
  std::string method, path;
  std::multimap<std::string, std::string> query{};
  std::string body{}, content_type{}, accept{};
  std::string user{};  ///< empty: anonymous

  std::string parameter(std::string const& name) const {
    auto const it = query.find(name);
    return it == query.end() ? "" : it->second;
  }
  bool is_set(std::string const& name) const { return parameter(name) == "true" || parameter(name) == "1"; }
  json object() const;      ///< the body; throws refusal
  bool is_dry() const;      ///< dryRun=All; throws refusal
  filter selector() const;  ///< of labels and fields; throws refusal
};

struct answer {
  int code = 200;
  std::string body;
  std::string content_type = "application/json";
  int retry_after = 0;
};

/// An answer without an end: the changes of one kind.
struct watch {
  type const* resource;
  std::string space;
  filter which;
  std::uint64_t from;
  std::vector<json> first{};  ///< events that come before the changes
  bool bookmarks = false, as_table = false;
  std::chrono::seconds timeout{1800};
};

/// An answer that may have no end: what a container has written.
struct log_request {
  std::string space, pod, container;
  bool previous = false, follow = false;
  std::optional<std::size_t> tail;
  std::string begun{};  ///< with timestamps: when the container began; a line's time is that and its number
                        ///< in nanoseconds, because nobody notes when a process writes
};

using response = std::variant<answer, watch, log_request>;

/// The server's verbs on its paths. Thread safety: safe.
class api {
 public:
  api(store& s, options const& o) : store_(s), options_(o), forbidden_(o.forbidden) {}

  /// From now on, instead of what was refused before. Thread safety: safe.
  void forbid(std::vector<rule> rules);

  /// Refusals are answers.
  response handle(request const& r);

  /// A pod's deletion begins, or, with 0 seconds of grace, is done.
  static void remove_pod(store& in, json const& pod, std::int64_t grace);

 private:
  struct target {
    type const* resource;
    std::string space, name, subresource;
  };
  target find_target(std::string const& path) const;
  void authorize(request const& r, target const& t) const;
  response read(request const& r, target const& t);
  answer list(request const& r, target const& t);
  watch follow(request const& r, target const& t);
  answer create(request const& r, target const& t);
  answer change(request const& r, target const& t);
  answer remove(request const& r, target const& t);
  answer remove_all(request const& r, target const& t);
  answer post_to(request const& r, target const& t);
  answer review(request const& r, std::string const& space) const;
  object find(target const& t) const;  ///< throws refusal
  object begin_deletion(target const& t, json const& delete_options);
  json remove_one(target const& t, json const& delete_options, bool dry);
  bool allowed(std::string const& verb, std::string const& resource, std::string const& space,
               std::string const& user) const;

  store& store_;
  options const& options_;
  mutable std::mutex mutex_;
  std::vector<rule> forbidden_;  // under the mutex
};

/// Whether something has to happen before the object may go.
bool has_finalizers(json const& o);

/// `events` in the form of a watch: {"type": …, "object": …} of what `w` is to see of a change; null:
/// nothing.
json event_of(watch const& w, store::change const& c);

}  // namespace edl::testing::kubernetes
