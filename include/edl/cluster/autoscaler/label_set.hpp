// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace edl::autoscaler {

/// The labels of one node: keys with values. Copies share the texts, and so do sets from one label_pool.
class label_set {
 public:
  label_set() = default;
  label_set(std::initializer_list<std::pair<std::string, std::string>> labels);
  explicit label_set(std::map<std::string, std::string> const& labels);

  /// Sets or replaces the key's value.
  void set(std::string key, std::string value);

  /// The value of the key; nullptr: it is missing. Valid until the set changes.
  std::string const* find(std::string_view key) const;

  std::size_t size() const { return all_.size(); }

  friend bool operator==(label_set const& a, label_set const& b);

 private:
  friend class label_pool;
  using text = std::shared_ptr<std::string const>;
  void set(text key, text value);

  std::vector<std::pair<text, text>> all_;  ///< by key
};

/// Makes label sets that store equal texts once: the labels of 10,000 nodes need 5 MB instead of 25. Unused
/// texts are dropped from time to time. Not thread safe; its sets are.
class label_pool {
 public:
  label_set of(std::map<std::string, std::string> const& labels);

  /// Drops the texts that no set has any more.
  void tidy();

  std::size_t size() const { return texts_.size(); }

 private:
  label_set::text share(std::string const& text);

  std::unordered_map<std::string_view, label_set::text> texts_;  ///< the key views the text
  std::size_t tidied_ = 0;                                       ///< how many were left then
};

}  // namespace edl::autoscaler

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/label_set.ipp"
#endif
