// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "edl/app/sweep_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::app {
namespace detail {

inline constexpr std::uint64_t longest_list = 64u << 20;  // bytes
inline constexpr char const* list_name = "sweep.json";

inline checkpoint::lock_options lock_of_sweep(sweep_file::options const& o) {
  if (!bucket::names_objects(o.output)) {
    std::error_code failure;
    std::filesystem::create_directories(o.output, failure);
    if (failure)
      throw usage_error(fmt::format("--output={}: cannot create this directory: {}; name a writable one",
                                    o.output, failure.message()));
  }
  bucket::cache_options cache = o.cache;
  // A beat has to come before another sweep takes the prefix over (`lock_options::timeout`).
  cache.store.timeout = std::chrono::seconds(3);
  cache.store.retry_timeout = std::chrono::seconds(10);
  return {.directory = {o.output, cache},
          .description = "--output=" + o.output,
          .job = o.job,
          .tell = [log = o.cache.log](std::string const& text) { log.warning(text); }};
}

}  // namespace detail

EDL_INLINE sweep_file::sweep_file(options o)
    : options_(std::move(o)),
      place_(options_.output, options_.cache),
      lock_(detail::lock_of_sweep(options_)) {}

EDL_INLINE std::optional<std::vector<trial>> sweep_file::read(std::vector<trial> const& planned,
                                                              std::uint64_t most_steps) {
  std::string const path = place_.path() + "/" + detail::list_name;
  auto const found = place_.read(detail::list_name, detail::longest_list);
  if (!found) return std::nullopt;
  sweep_list before = list_from_json(found->content, path);
  if (before.sweep != options_.identity ||
      !std::ranges::equal(before.trials, planned, {}, &trial::values, &trial::values))
    throw usage_error(
        fmt::format("--output={} holds another sweep ({}): give the same flags to continue it, or name "
                    "another directory",
                    options_.output, before.sweep));
  check_steps(before, most_steps, path);
  tag_ = found->tag;
  return std::move(before.trials);
}

EDL_INLINE void sweep_file::write(std::vector<trial> const& all) {
  auto made = place_.replace(detail::list_name, to_json({options_.identity, all}), tag_, [this] { check(); });
  if (!made)
    throw error(
        fmt::format("{}/{} was changed or removed by another process; the same command goes on "
                    "with what is there",
                    place_.path(), detail::list_name));
  tag_ = std::move(*made);
}

}  // namespace edl::app
