// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "edl/cluster/autoscaler/pod_selector.hpp"
#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/text.hpp"

namespace edl::autoscaler {
namespace detail::selecting {

using kubernetes::field, kubernetes::text;
using nlohmann::json;

inline std::optional<requirement::relation> relation_of(std::string const& name) {
  using enum requirement::relation;
  static constexpr std::array<std::pair<std::string_view, requirement::relation>, 6> known{
      {{"In", in},
       {"NotIn", not_in},
       {"Exists", exists},
       {"DoesNotExist", does_not_exist},
       {"Gt", greater},
       {"Lt", less}}};
  for (auto const& [word, is] : known)
    if (word == name) return is;
  return std::nullopt;
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
    for (json const& one : spaces) spaces_.push_back(kubernetes::text(one));
  json const& selector = field(parsed, {"selector"});
  selects_any_ = selector.is_object();
  lines_ = read_requirements(field(selector, {"matchExpressions"}));
  if (auto const& pairs = field(selector, {"matchLabels"}); pairs.is_object())
    for (auto const& [key, value] : pairs.items())
      lines_.push_back({.key = key, .values = {kubernetes::text(value)}});
}

EDL_INLINE bool pod_selector::selects(std::string const& space, label_set const& labels) const {
  if (!selects_any_) return false;
  if (!spaces_.empty() && std::find(spaces_.begin(), spaces_.end(), space) == spaces_.end()) return false;
  return std::all_of(lines_.begin(), lines_.end(),
                     [&](requirement const& line) { return holds(line, labels.find(line.key)); });
}

EDL_INLINE bool holds(requirement const& r, std::string const* value) {
  using enum requirement::relation;
  std::string const* const has = value;
  bool const listed = has && std::find(r.values.begin(), r.values.end(), *has) != r.values.end();
  switch (r.op) {
    case in:
      return listed;
    case not_in:
      return !listed;
    case exists:
      return has;
    case does_not_exist:
      return !has;
    case greater:
    case less: {
      if (!has || r.values.size() != 1) return false;
      auto const a = number_from<std::int64_t>(*has), b = number_from<std::int64_t>(r.values[0]);
      return a && b && (r.op == greater ? *a > *b : *a < *b);
    }
  }
  return false;
}

EDL_INLINE std::vector<requirement> read_requirements(nlohmann::json const& list) {
  using namespace detail::selecting;
  std::vector<requirement> all;
  if (!list.is_array()) return all;
  for (json const& line : list) {
    requirement r;
    r.key = text(field(line, {"key"}));
    r.op = relation_of(text(field(line, {"operator"}))).value_or(requirement::relation::in);
    if (auto const& values = field(line, {"values"}); values.is_array())
      for (json const& v : values) r.values.push_back(text(v));
    all.push_back(std::move(r));
  }
  return all;
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

}  // namespace edl::autoscaler
