// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>

#include "edl/base/checkpoint/part.hpp"
#include "edl/base/wire/ledger_message.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::checkpoint::detail {

EDL_INLINE void check_listed(safetensors_file const& file, manifest::file const& listed) {
  if (file.size() != listed.bytes)
    throw error(
        fmt::format("{} has {} bytes, but its manifest gives {}", file.path(), file.size(), listed.bytes));
}

EDL_INLINE void check_content(safetensors_file const& file, manifest::file const& listed) {
  if (auto const crc = file.crc32(); crc != listed.crc32)
    throw error(fmt::format(
        "{} is damaged: its CRC-32 is {:08x}, but its manifest gives {:08x}; use an older checkpoint",
        file.path(), crc, listed.crc32));
}

EDL_INLINE opened_part open_part(std::string const& path, manifest::file const& listed,
                                 std::string_view format) {
  opened_part part{safetensors_file(path + "/" + listed.name), listed, {}};
  check_listed(part.file, listed);
  part_facts const facts(part.file);
  if (facts.text("edl") != format) facts.fail("edl");
  part.elements = {std::size_t(facts.number("first")), std::size_t(facts.number("last"))};
  if (part.elements.first > part.elements.last) facts.fail("last");
  return part;
}

EDL_INLINE std::string followed_by(opened_part const& part) {
  auto const it = part.file.metadata().find("follows");
  return it == part.file.metadata().end() ? std::string() : it->second;
}

EDL_INLINE std::vector<segment> segments_of(opened_part const& part) {
  part_facts const facts(part.file);
  std::vector<segment> segments;
  auto const list = facts.json("segments");
  if (!list.is_array() || list.empty()) facts.fail("segments");
  std::size_t at = part.elements.first;
  for (auto const& entry : list) {
    for (char const* field : {"first", "last", "steps", "ledger"})
      if (!entry.is_object() || !entry.contains(field)) facts.fail("segments");
    segment s{{std::size_t(facts.number(entry["first"], "segments")),
               std::size_t(facts.number(entry["last"], "segments"))},
              facts.number(entry["steps"], "segments"),
              wire::ledger_from_json(entry["ledger"].dump(), part.file.path())};
    if (s.elements.first != at || s.elements.last < at) facts.fail("segments");
    at = s.elements.last;
    segments.push_back(std::move(s));
  }
  if (at != part.elements.last) facts.fail("segments");
  return segments;
}

EDL_INLINE std::string to_json(std::span<segment const> segments, element_range all, std::string_view where) {
  auto list = nlohmann::json::array();
  std::size_t at = all.first;
  for (segment const& s : segments) {
    if (s.elements.first != at || s.elements.last < at)
      throw error(fmt::format("{}: its segments leave a gap", where));
    at = s.elements.last;
    list.push_back({{"first", s.elements.first},
                    {"last", s.elements.last},
                    {"steps", s.steps},
                    {"ledger", nlohmann::json::parse(wire::to_json(s.ledger))}});
  }
  if (at != all.last || segments.empty())
    throw error(fmt::format("{}: its segments do not cover its range", where));
  return list.dump();
}

EDL_INLINE std::string new_part_name(std::string_view kind, std::uint32_t server, std::uint32_t servers) {
  std::random_device device;
  std::uint64_t const tag = std::uint64_t{device()} << 32 | device();
  return fmt::format("{}-{}-of-{}-{:016x}.safetensors", kind, server, servers, tag);
}

EDL_INLINE void write_file(bucket::place const& to, manifest::file& as,
                           std::span<tensor_source const> tensors,
                           std::map<std::string, std::string> const& metadata) {
  auto const write = [&](std::string const& path) {
    durable_file file(path);
    write_safetensors(file, tensors, metadata);
    file.commit();
    as.bytes = file.size();
    as.crc32 = file.crc32();
  };
  // A late server must not create a directory again that was removed.
  to.in_bucket() ? to.write(as.name, write) : write(to.path() + "/" + as.name);
}

EDL_INLINE edl::ledger common_ledger(std::span<segment const> segments) {
  invariant(!segments.empty(), "a part has a segment");
  edl::ledger all = segments.front().ledger;
  for (segment const& s : segments) all.intersect(s.ledger);
  return all;
}

}  // namespace edl::checkpoint::detail
