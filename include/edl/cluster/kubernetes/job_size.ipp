// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "edl/cluster/kubernetes/annotations.hpp"
#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/cluster/kubernetes/job_size.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"

namespace edl::kubernetes {
namespace detail {

inline constexpr std::size_t most_ids = 10'000;  // of a list of workers, which are as many as a job may have

/// Parses "NAME" and a number at the start of `text`, and removes both.
inline std::optional<std::uint32_t> take_count(std::string_view& text, std::string_view name) {
  if (!text.starts_with(name)) return std::nullopt;
  text.remove_prefix(name.size());
  std::uint32_t n = 0;
  auto const [end, bad] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (bad != std::errc{}) return std::nullopt;
  text.remove_prefix(std::size_t(end - text.data()));
  return n;
}

}  // namespace detail

EDL_INLINE std::string to_text(job_size const& size) {
  return fmt::format("workers={},servers={}", size.workers, size.servers);
}

EDL_INLINE std::optional<job_size> shown_size(nlohmann::json const& master) {
  std::string const whole = text(field(master, {"metadata", "annotations", annotation::size}));
  std::string_view rest = whole;
  auto const workers = detail::take_count(rest, "workers=");
  auto const servers = detail::take_count(rest, ",servers=");
  if (!workers || !servers || !rest.empty()) return std::nullopt;
  return job_size{*workers, *servers};
}

EDL_INLINE requested_size requested_size_of(nlohmann::json const& master) {
  auto const& annotations = field(master, {"metadata", "annotations"});
  return {text(field(annotations, {annotation::num_workers})),
          text(field(annotations, {annotation::num_servers})), text(field(annotations, {annotation::leave})),
          text(field(annotations, {annotation::why}))};
}

EDL_INLINE std::optional<std::vector<std::uint32_t>> ids_of(std::string const& text) {
  std::vector<std::uint32_t> ids;
  for (std::size_t at = 0; !text.empty() && at <= text.size();) {
    auto const end = std::min(text.find(',', at), text.size());
    auto const id = number(text.substr(at, end - at));
    if (!id || ids.size() == detail::most_ids) return std::nullopt;
    ids.push_back(*id);
    at = end + 1;
  }
  return ids;
}

EDL_INLINE std::map<std::string, std::string> short_nodes_of(nlohmann::json const& master) {
  std::map<std::string, std::string> nodes;
  std::string const all = text(field(master, {"metadata", "annotations", annotation::short_nodes}));
  for (std::size_t at = 0; at < all.size();) {
    std::size_t const end = std::min(all.find(';', at), all.size()), middle = all.find('=', at);
    if (middle < end && middle > at && nodes.size() < detail::most_ids)
      nodes[all.substr(at, middle - at)] = printable(all.substr(middle + 1, end - middle - 1), 100);
    at = end + 1;
  }
  return nodes;
}

EDL_INLINE std::string pool_of(nlohmann::json const& pod) {
  return text(field(pod, {"metadata", "annotations", annotation::pool}));
}

EDL_INLINE bool is_suspended(nlohmann::json const& master) {
  return text(field(master, {"metadata", "annotations", annotation::suspend})) == "true";
}

}  // namespace edl::kubernetes
