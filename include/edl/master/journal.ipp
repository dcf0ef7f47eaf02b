// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/master/journal.hpp"
#include "edl/wire/input_file.hpp"

namespace edl::master {
namespace detail {

EDL_INLINE nlohmann::json to_json(lineages::record const& r) {
  auto lines = nlohmann::json::array();
  for (auto const& l : r.lines) lines.push_back({l.id, l.failures, l.ended});
  return {{"next", r.next}, {"lines", std::move(lines)}};
}

EDL_INLINE lineages::record lines_from(nlohmann::json const& j) {
  lineages::record r{.next = j.at("next"), .lines = {}};
  for (auto const& l : j.at("lines")) r.lines.push_back({l.at(0), l.at(1), l.at(2)});
  return r;
}

inline constexpr std::uint64_t longest_journal = 16u << 20;

}  // namespace detail

EDL_INLINE std::optional<memory> journal::read() const {
  if (path_.empty() || !std::filesystem::exists(path_)) return std::nullopt;
  wire::input_file const file(path_);
  if (file.size() > detail::longest_journal)
    throw error(fmt::format("{} has {} bytes and is no journal of a master", path_, file.size()));
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  try {
    auto const j = nlohmann::json::parse(text);
    if (j.at("run") != run_) return std::nullopt;
    memory m;
    m.generation = j.at("generation");
    m.members = j.at("members");
    m.wanted_servers = j.at("wanted_servers");
    if (!j.at("evaluated").is_null()) m.evaluated = j.at("evaluated").get<std::uint64_t>();
    m.workers = detail::lines_from(j.at("workers"));
    m.servers = detail::lines_from(j.at("servers"));
    m.events = j.at("events");
    m.addresses = j.at("addresses").get<std::vector<std::string>>();
    return m;
  } catch (nlohmann::json::exception const&) {
    throw error(fmt::format("{} is damaged: it is no journal of a master; remove it to begin anew", path_));
  }
}

EDL_INLINE void journal::write(memory const& now) {
  if (path_.empty() || written_ == now) return;
  nlohmann::json j{{"run", run_},
                   {"generation", now.generation},
                   {"members", now.members},
                   {"wanted_servers", now.wanted_servers},
                   {"evaluated", nullptr},
                   {"workers", detail::to_json(now.workers)},
                   {"servers", detail::to_json(now.servers)},
                   {"events", now.events},
                   {"addresses", now.addresses}};
  if (now.evaluated) j["evaluated"] = *now.evaluated;
  try {
    replace_file(path_, j.dump());
  } catch (error const&) {
    written_.reset();
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    throw;
  }
  written_ = now;
}

}  // namespace edl::master
