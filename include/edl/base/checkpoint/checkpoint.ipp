// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "edl/base/checkpoint/checkpoint.hpp"
#include "edl/base/checkpoint/layout_digest.hpp"
#include "edl/base/checkpoint/part.hpp"
#include "edl/base/checkpoint/rows.hpp"
#include "edl/base/checkpoint/safetensors.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::checkpoint {
namespace detail {

/// A variable, or the part of it that lies in a range.
struct piece {
  std::string name;  // in the file, without the prefix of a slot
  std::vector<std::uint64_t> dims;
  element_range elements;  // of the arena
};

EDL_INLINE std::vector<std::uint64_t> dims_of(extents const& of) {
  return {of.sizes.begin(), of.sizes.begin() + of.rank};
}

EDL_INLINE std::vector<piece> pieces_of(parameter_layout const& layout, element_range range) {
  std::vector<piece> pieces;
  for (variable const& v : layout.variables) {
    std::size_t const end = v.offset + v.dims.size();
    element_range const both{std::max(range.first, v.offset), std::min(range.last, end)};
    if (both.first >= both.last) continue;
    std::string name = v.offset < layout.parameters ? v.name : "state/" + v.name;
    bool const whole = both == element_range{v.offset, end};
    if (!whole) name += fmt::format("[{}:{}]", both.first - v.offset, both.last - v.offset);
    pieces.push_back(
        {std::move(name), whole ? dims_of(v.dims) : std::vector<std::uint64_t>{both.size()}, both});
  }
  return pieces;
}

EDL_INLINE std::string slot_tensor(std::string_view slot, std::string_view name) {
  return fmt::format("slots/{}/{}", slot, name);
}

/// How many elements of a range are parameters, which come first.
EDL_INLINE std::size_t parameters_in(parameter_layout const& layout, element_range range) {
  return std::min(range.last, layout.parameters) - std::min(range.first, layout.parameters);
}

EDL_INLINE nlohmann::json layout_json(parameter_layout const& layout) {
  nlohmann::json variables = nlohmann::json::array();
  for (variable const& v : layout.variables) variables.push_back({v.name, dims_of(v.dims)});
  nlohmann::json all{
      {"parameters", layout.parameters}, {"state", layout.state}, {"variables", std::move(variables)}};
  for (table_shape const& t : layout.tables) all["tables"].push_back({t.name, t.width});
  return all;
}

/// Describes the first variable in which a checkpoint and a model differ.
EDL_INLINE std::string layout_difference(nlohmann::json const& theirs, parameter_layout const& layout) {
  nlohmann::json const mine = layout_json(layout);
  if (!theirs.is_object() || !theirs.contains("variables") || !theirs["variables"].is_array())
    return "its layout is damaged";
  auto const &a = theirs["variables"], &b = mine["variables"];
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i >= a.size()) return fmt::format("it lacks variable {} of the model", b[i].dump());
    if (i >= b.size()) return fmt::format("it has variable {}, which the model lacks", shown(a[i].dump()));
    if (a[i] != b[i])
      return fmt::format("it has variable {} where the model has {}", shown(a[i].dump()), b[i].dump());
  }
  if (theirs.value("tables", nlohmann::json()) != mine.value("tables", nlohmann::json()))
    return "it has other tables of rows";
  return "other variables are trained";
}

EDL_INLINE opened_part open_part(std::string const& path, manifest::file const& listed,
                                 parameter_layout const& layout) {
  opened_part part = open_part(path, listed, part_format);
  part_facts const facts(part.file);
  if (auto const theirs = facts.json("layout"); theirs != layout_json(layout))
    throw error(
        fmt::format("{} belongs to another model: {}", part.file.path(), layout_difference(theirs, layout)));
  if (part.elements.last > layout.size()) facts.fail("last");
  return part;
}

/// Reads the file's part of `wanted` into `into`, whose first element is element `first` of the arena.
EDL_INLINE void read_pieces(opened_part const& part, parameter_layout const& layout, element_range wanted,
                            std::string const* slot, std::size_t first, std::span<float> into) {
  for (piece const& p : pieces_of(layout, part.elements)) {
    if (slot && p.elements.first >= layout.parameters) break;
    element_range const both = overlap(p.elements, wanted);
    if (both.size() == 0) continue;
    std::string const name = slot ? slot_tensor(*slot, p.name) : p.name;
    tensor const* const t = part.file.find(name);
    if (!t && slot)
      throw error(fmt::format("{} belongs to another optimizer: it lacks the slot '{}' of '{}' (tensor '{}')",
                              part.file.path(), *slot, p.name, name));
    if (!t) throw error(fmt::format("{} lacks tensor '{}'", part.file.path(), name));
    if (t->dtype != "F32" || t->dims != p.dims)
      throw error(fmt::format("tensor '{}' of {} is {} [{}], but the model has F32 [{}]", name,
                              part.file.path(), t->dtype, fmt::join(t->dims, ", "), fmt::join(p.dims, ", ")));
    part.file.read(*t, (both.first - p.elements.first) * sizeof(float),
                   std::as_writable_bytes(into.subspan(both.first - first, both.size())));
  }
}

}  // namespace detail

EDL_INLINE std::string checkpoint_path(std::string const& directory, std::uint64_t version) {
  return fmt::format("{}/version-{}", directory, version);
}

EDL_INLINE bool is_part(std::string_view name) {
  static constexpr std::string_view end = ".safetensors";
  std::string_view const begin = is_rows(name) ? "rows-" : "variables-";
  if (name.size() <= begin.size() + end.size() || !name.starts_with(begin) || !name.ends_with(end))
    return false;
  name = name.substr(begin.size(), name.size() - begin.size() - end.size());
  return name.find("-of-") != name.npos && name.find_first_not_of("0123456789abcdef-o") == name.npos;
}

EDL_INLINE std::vector<std::string> begin_checkpoint(bucket::place const& to) {
  to.create();
  auto earlier = to.names();
  std::erase_if(earlier, [](std::string const& name) { return !is_part(name) && !is_temporary(name); });
  return earlier;
}

EDL_INLINE manifest::file write_part(bucket::place const& to, parameter_layout const& layout,
                                     checkpoint_part const& part) {
  std::string const& path = to.path();
  element_range const all = part.elements;
  std::size_t const parameters = detail::parameters_in(layout, all);
  auto const fail = [&](std::string_view what) {
    throw error(
        fmt::format("cannot write server {} of {} into {}: {}", part.server, part.servers, path, what));
  };
  if (all.first > all.last || all.last > layout.size() || part.variables.size() != all.size())
    fail("its variables are not those of its range");
  if (part.server >= part.servers) fail("no such server");
  if (part.slots.size() != part.slot_names.size())
    fail("the number of slots differs from that of their names");
  for (auto const& slot : part.slots)
    if (slot.size() != parameters) fail("a slot is not as long as its parameters");

  std::vector<tensor_source> tensors;
  auto const pieces = detail::pieces_of(layout, all);
  for (auto const& p : pieces)
    tensors.push_back(
        {.name = p.name,
         .dims = p.dims,
         .data = std::as_bytes(part.variables.subspan(p.elements.first - all.first, p.elements.size()))});
  for (std::size_t i = 0; i < part.slots.size(); ++i)
    for (auto const& p : pieces)
      if (p.elements.first < layout.parameters)
        tensors.push_back(
            {.name = detail::slot_tensor(part.slot_names[i], p.name),
             .dims = p.dims,
             .data = std::as_bytes(part.slots[i].subspan(p.elements.first - all.first, p.elements.size()))});

  std::string const segments =
      detail::to_json(part.segments, all,
                      fmt::format("cannot write server {} of {} into {}", part.server, part.servers, path));
  std::map<std::string, std::string> metadata{
      {"edl", detail::part_format},
      {"server", std::to_string(part.server)},
      {"servers", std::to_string(part.servers)},
      {"version", std::to_string(part.version)},
      {"first", std::to_string(all.first)},
      {"last", std::to_string(all.last)},
      {"layout_digest", fmt::format("{:016x}", layout_digest(layout))},
      {"segments", segments},
  };
  try {
    metadata["layout"] = detail::layout_json(layout).dump();
    metadata["slots"] =
        nlohmann::json(std::vector<std::string>(part.slot_names.begin(), part.slot_names.end())).dump();
  } catch (nlohmann::json::type_error const&) {
    fail("the name of a variable or slot is not UTF-8");
  }

  manifest::file written{.name = detail::new_part_name("variables", part.server, part.servers),
                         .version = part.version,
                         .ledger = detail::common_ledger(part.segments)};
  detail::write_file(to, written, tensors, metadata);
  return written;
}

EDL_INLINE void commit_checkpoint(bucket::place const& to, manifest const& contents,
                                  std::span<std::string const> earlier, permission const& allowed) {
  if (contents.files.empty())
    throw error(fmt::format("cannot complete {}: no server has written", to.path()));
  for (auto const& f : contents.files)
    if (auto const size = to.size(f.name); size != f.bytes)
      throw error(fmt::format("cannot complete {}: {} has {} bytes, but its server wrote {}", to.path(),
                              f.name, size, f.bytes));
  // A successor that has claimed the place since `allowed` replaces this object before it removes parts.
  auto const before = to.in_bucket() ? detail::manifest_text(to) : std::nullopt;
  if (!to.replace("manifest.json", to_json(contents), before ? before->tag : "", allowed))
    throw error(
        fmt::format("cannot complete {}: another process has written its manifest meanwhile", to.path()));
  if (!to.in_bucket()) sync_directory(to.path() + "/..");  // the parent of the checkpoint's directory
  // None of these files belongs to a later attempt, however long this process has been suspended since it
  // listed them.
  for (std::string const& name : earlier)
    if (std::ranges::find(contents.files, name, &manifest::file::name) == contents.files.end()) try {
        to.remove(name);
      } catch (error const&) {  // a leftover does no harm
      }
}

EDL_INLINE std::vector<segment> read_range(std::string const& path, parameter_layout const& layout,
                                           std::size_t first, std::span<float> variables,
                                           std::span<std::string const> slot_names,
                                           std::span<std::span<float> const> slots) {
  auto const fail = [&](std::string_view what) {
    throw error(fmt::format("cannot read {}: {}", path, what));
  };
  if (first > layout.size() || variables.size() > layout.size() - first) fail("the model has no such range");
  element_range const wanted{first, first + variables.size()};
  if (slots.size() != slot_names.size()) fail("the number of slots differs from that of their names");
  for (auto const& slot : slots)
    if (slot.size() != detail::parameters_in(layout, wanted)) fail("a slot is not as long as its parameters");

  manifest const contents = read_manifest(path);
  std::vector<segment> segments;
  std::size_t at = 0;
  for (auto const& listed : contents.files) {
    if (is_rows(listed.name)) continue;
    auto const part = detail::open_part(path, listed, layout);
    if (part.elements.first != at) fail(fmt::format("element {} is in none of its files, or in several", at));
    at = part.elements.last;
    element_range const both = overlap(part.elements, wanted);
    bool const neighbour = wanted.size() == 0 && segments.empty() && at >= first;
    if (both.size() == 0 && !neighbour) continue;
    detail::check_content(part.file, listed);
    detail::read_pieces(part, layout, wanted, nullptr, first, variables);
    for (std::size_t i = 0; i < slots.size(); ++i)
      detail::read_pieces(part, layout, wanted, &slot_names[i], first, slots[i]);
    for (segment& s : detail::segments_of(part)) {
      element_range const clipped = overlap(s.elements, wanted);
      if (neighbour && segments.empty() && s.elements.last >= first)
        segments.push_back({wanted, s.steps, std::move(s.ledger)});
      else if (clipped.size() == 0)
        continue;
      else if (!segments.empty() && segments.back().steps == s.steps && segments.back().ledger == s.ledger)
        segments.back().elements.last = clipped.last;
      else
        segments.push_back({clipped, s.steps, std::move(s.ledger)});
    }
  }
  if (at != layout.size()) fail(fmt::format("its files end at element {} of {}", at, layout.size()));
  if (contents.layout != layout_digest(layout)) fail("it belongs to another model");
  return segments;
}

EDL_INLINE std::vector<segment> read_segments(std::string const& path, manifest::file const& listed) {
  detail::opened_part const part =
      detail::open_part(path, listed, is_rows(listed.name) ? detail::rows_format : detail::part_format);
  detail::check_content(part.file, listed);
  return detail::segments_of(part);
}

EDL_INLINE std::vector<segment> read_histories(std::string const& path) {
  auto const files = read_manifest(path).files;
  std::vector<segment> all;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (is_rows(files[i].name) && i + 1 < files.size() && is_rows(files[i + 1].name) &&
        !detail::followed_by(detail::open_part(path, files[i + 1], detail::rows_format)).empty())
      continue;
    auto own = read_segments(path, files[i]);
    all.insert(all.end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
  }
  return all;
}

EDL_INLINE std::vector<std::string> slots_of(std::string const& path) {
  manifest const contents = read_manifest(path);
  safetensors_file const file(path + "/" + contents.files.front().name);
  detail::check_listed(file, contents.files.front());
  detail::check_content(file, contents.files.front());
  detail::part_facts const facts(file);
  auto const list = facts.json("slots");
  std::vector<std::string> names;
  if (!list.is_array()) facts.fail("slots");
  for (auto const& name : list) {
    if (!name.is_string()) facts.fail("slots");
    names.push_back(name.get<std::string>());
  }
  return names;
}

}  // namespace edl::checkpoint
