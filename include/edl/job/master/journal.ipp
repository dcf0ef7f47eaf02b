// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/input_file.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/storage_error.hpp"
#include "edl/job/master/journal.hpp"

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

EDL_INLINE nlohmann::json to_json(gradient_checks::known const& k) {
  auto workers = nlohmann::json::array();
  for (auto const& [worker, version] : k.workers) workers.push_back({worker, version});
  return {{"workers", std::move(workers)}, {"copies", k.copies}};
}

EDL_INLINE gradient_checks::known known_from(nlohmann::json const& j) {
  gradient_checks::known k{.workers = {}, .copies = j.at("copies")};
  for (auto const& w : j.at("workers")) k.workers[w.at(0).get<std::uint32_t>()] = w.at(1);
  return k;
}

inline constexpr std::uint64_t longest_journal = 16u << 20;
inline constexpr std::string_view journal_magic = "edl-journal 2 ";  // and the CRC-32 of the rest of the file

EDL_INLINE std::string journal_head(std::string_view record) {
  auto const crc = crc32_z(0, reinterpret_cast<Bytef const*>(record.data()), record.size());
  return fmt::format("{}{:08x}\n", journal_magic, std::uint32_t(crc));
}

/// The record in a journal's file, which is whole.
EDL_INLINE nlohmann::json read_record(std::string const& path) {
  input_file const file(path);
  if (file.size() > longest_journal)
    throw error(fmt::format("{} has {} bytes and is not a journal of a master", path, file.size()));
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  std::size_t const head = std::min(text.size(), journal_magic.size() + 9);
  if (!text.starts_with(journal_magic))
    throw error(fmt::format("{} is damaged at byte 0: it is not a journal of a master", path));
  if (std::string_view const record = std::string_view(text).substr(head);
      std::string_view(text).substr(0, head) != journal_head(record))
    throw error(fmt::format("{} is damaged: bytes {} to {} do not match the CRC-32 before them", path, head,
                            text.size()));
  auto j = nlohmann::json::parse(text.begin() + std::ptrdiff_t(head), text.end(), nullptr, false);
  if (!j.is_object()) throw error(fmt::format("{} is damaged at byte {}: it holds no record", path, head));
  return j;
}

EDL_INLINE std::optional<persisted_state> read_journal(std::string const& path, std::string const& run) try {
  auto const j = read_record(path);
  if (j.at("run") != run) return std::nullopt;
  persisted_state m;
  m.generation = j.at("generation");
  m.members = j.at("members");
  m.wanted_servers = j.at("wanted_servers");
  if (!j.at("evaluated").is_null()) m.evaluated = j.at("evaluated").get<std::uint64_t>();
  m.workers = lines_from(j.at("workers"));
  m.servers = lines_from(j.at("servers"));
  m.events = j.at("events");
  m.addresses = j.at("addresses").get<std::vector<std::string>>();
  m.finished = j.value("finished", false);
  if (j.contains("good")) m.good = known_from(j.at("good"));
  if (j.contains("undo")) m.undo = j.at("undo").get<std::uint64_t>();
  m.void_until = j.value("void_until", std::uint64_t{0});
  m.avoided = j.value("avoided", std::vector<std::string>());
  return m;
} catch (nlohmann::json::exception const& e) {
  throw error(fmt::format("{} is damaged: {}", path, e.what()));
}

EDL_INLINE std::string before_of(std::string const& journal) { return journal + ".before"; }

// The file gets a second name, so that there is a journal under the first at every moment. Where it cannot,
// an older one stays to go back to.
EDL_INLINE void keep_before(std::string const& path) {
  std::string const before = before_of(path), fresh = before + ".new";
  std::error_code failed;
  std::filesystem::remove(fresh, failed);
  std::filesystem::create_hard_link(path, fresh, failed);
  if (failed) std::filesystem::copy_file(path, fresh, failed);
  if (!failed) std::filesystem::rename(fresh, before, failed);
}

EDL_INLINE bool is_there(std::string const& path) {
  std::error_code failed;
  return std::filesystem::exists(path, failed) || failed;  // if the check fails, the file may exist
}

}  // namespace detail

EDL_INLINE std::optional<persisted_state> journal::read() {
  trouble_.clear();
  if (path_.empty()) return std::nullopt;
  std::string const before = detail::before_of(path_);
  bool const has_before = detail::is_there(before);
  if (!detail::is_there(path_)) {
    if (!has_before) return std::nullopt;
    trouble_ = fmt::format("{} is missing", path_);
    return detail::read_journal(before, run_);
  }
  try {
    return detail::read_journal(path_, run_);
  } catch (storage_error const&) {
    throw;
  } catch (error const& damaged) {
    trouble_ = damaged.what();
  }
  if (has_before) try {
      return detail::read_journal(before, run_);
    } catch (storage_error const&) {
      throw;
    } catch (error const& damaged) {
      trouble_ += fmt::format("; {}", damaged.what());
    }
  std::string const kept = path_ + ".damaged";
  std::error_code failed;
  std::filesystem::rename(path_, kept, failed);
  if (!failed) trouble_ += fmt::format("; the file is kept as {}", kept);
  return std::nullopt;
}

EDL_INLINE std::vector<std::string> journal::addresses(std::string const& path) try {
  return detail::read_record(path).at("addresses").get<std::vector<std::string>>();
} catch (nlohmann::json::exception const& e) {
  throw error(fmt::format("{} is damaged: {}", path, e.what()));
}

EDL_INLINE void journal::remove() noexcept {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
  std::filesystem::remove(detail::before_of(path_), ignored);
  std::filesystem::remove(detail::before_of(path_) + ".new", ignored);
  written_.reset();
}

EDL_INLINE void journal::write(persisted_state const& now, forced what) {
  if (path_.empty() || written_ == now) return;
  invariant(!written_ || now.generation >= written_->generation, "a journal never goes back");
  nlohmann::json j{{"run", run_},
                   {"generation", now.generation},
                   {"members", now.members},
                   {"wanted_servers", now.wanted_servers},
                   {"evaluated", nullptr},
                   {"workers", detail::to_json(now.workers)},
                   {"servers", detail::to_json(now.servers)},
                   {"events", now.events},
                   {"addresses", now.addresses},
                   {"avoided", now.avoided},
                   {"finished", now.finished},
                   {"good", detail::to_json(now.good)},
                   {"void_until", now.void_until}};
  if (now.evaluated) j["evaluated"] = *now.evaluated;
  if (now.undo) j["undo"] = *now.undo;
  std::string const record = j.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  written_.reset();
  durable_file file(path_);
  file.write(detail::journal_head(record));
  file.write(record);
  if (trouble_.empty()) detail::keep_before(path_);
  file.commit(std::min(what, most_));
  trouble_.clear();
  written_ = now;
}

}  // namespace edl::master
