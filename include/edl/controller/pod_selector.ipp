// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/controller/pod_selector.hpp"
#include "edl/core/inline.hpp"
#include "edl/platform/kubernetes/fields.hpp"

namespace edl::controller {
namespace detail::selecting {

using nlohmann::json;
using platform::kubernetes::field, platform::kubernetes::text;

inline bool among(json const& values, std::string const& one) {
  return values.is_array() &&
         std::any_of(values.begin(), values.end(), [&](json const& v) { return text(v) == one; });
}

/// A line of `matchExpressions`; as the API server has it, NotIn holds where the label is absent.
inline bool holds(json const& line, label_set const& labels) {
  std::string const* const has = labels.find(text(field(line, {"key"})));
  std::string const how = text(field(line, {"operator"}));
  if (how == "Exists") return has;
  if (how == "DoesNotExist") return !has;
  if (how == "In") return has && among(field(line, {"values"}), *has);
  if (how == "NotIn") return !has || !among(field(line, {"values"}), *has);
  return false;
}

}  // namespace detail::selecting

EDL_INLINE std::string pod_selector::text_of(nlohmann::json const& term, std::string const& space) {
  using namespace detail::selecting;
  json spaces = json::array();
  if (auto const& named = field(term, {"namespaces"}); named.is_array())
    for (json const& one : named)
      if (one.is_string()) spaces.push_back(one);
  bool const all = field(term, {"namespaceSelector"}).is_object();
  if (all)
    spaces = json::array();
  else if (spaces.empty())
    spaces.push_back(space);
  std::sort(spaces.begin(), spaces.end());
  return json{{"namespaces", std::move(spaces)}, {"selector", field(term, {"labelSelector"})}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

EDL_INLINE pod_selector::pod_selector(std::string const& text) {
  auto const parsed = nlohmann::json::parse(text, nullptr, false);
  using namespace detail::selecting;
  if (auto const& spaces = field(parsed, {"namespaces"}); spaces.is_array())
    for (json const& one : spaces) spaces_.push_back(platform::kubernetes::text(one));
  selector_ = field(parsed, {"selector"});
}

EDL_INLINE bool pod_selector::selects(std::string const& space, label_set const& labels) const {
  using namespace detail::selecting;
  if (!selector_.is_object()) return false;
  if (!spaces_.empty() && std::find(spaces_.begin(), spaces_.end(), space) == spaces_.end()) return false;
  if (auto const& pairs = field(selector_, {"matchLabels"}); pairs.is_object())
    for (auto const& [key, value] : pairs.items())
      if (std::string const* has = labels.find(key); !has || *has != text(value)) return false;
  if (auto const& lines = field(selector_, {"matchExpressions"}); lines.is_array())
    return std::all_of(lines.begin(), lines.end(), [&](json const& line) { return holds(line, labels); });
  return true;
}

EDL_INLINE std::vector<separation> read_separations(nlohmann::json const& pod_spec, char const* kind,
                                                    std::string const& space) {
  using namespace detail::selecting;
  std::vector<separation> all;
  auto const& terms = field(pod_spec, {"affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution"});
  if (terms.is_array())
    for (json const& term : terms)
      if (std::string const topology = text(field(term, {"topologyKey"})); !topology.empty())
        all.push_back({pod_selector::text_of(term, space), topology});
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace edl::controller
