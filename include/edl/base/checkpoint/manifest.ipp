// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "edl/base/checkpoint/manifest.hpp"
#include "edl/base/wire/ledger_message.hpp"
#include "edl/core/error.hpp"
#include "edl/core/generation.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"
#include "edl/core/storage_error.hpp"

namespace edl::checkpoint {
namespace detail {

inline constexpr std::uint64_t longest_manifest = std::uint64_t{256}
                                                  << 20;  // bytes; a ledger is as long as it must be
inline constexpr int manifest_format = 1;

EDL_INLINE std::uint32_t text_crc32(std::string_view text) {
  return std::uint32_t(crc32_z(0, reinterpret_cast<Bytef const*>(text.data()), text.size()));
}

EDL_INLINE std::optional<bucket::place::text> manifest_text(bucket::place const& checkpoint) {
  return checkpoint.read("manifest.json", longest_manifest);
}

EDL_INLINE bool is_empty(bucket::place::text const& manifest) {
  return manifest.content.find_first_not_of('\n') == manifest.content.npos;
}

/// Reads the fields of a manifest; a missing field, or one of a wrong type, is an error.
class manifest_fields {
 public:
  manifest_fields(nlohmann::json const& of, std::string_view where) : fields_(of), where_(where) {}

  nlohmann::json const& at(char const* name) const {
    if (!fields_.is_object() || !fields_.contains(name)) fail(name, "is missing");
    return fields_[name];
  }

  std::uint64_t number(char const* name,
                       std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) const {
    auto const& value = at(name);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most)
      fail(name, "is not a number in range");
    return value.get<std::uint64_t>();
  }

  std::string text(char const* name) const {
    auto const& value = at(name);
    if (!value.is_string()) fail(name, "is not a text");
    return value.get<std::string>();
  }

  bool truth(char const* name) const {
    auto const& value = at(name);
    if (!value.is_boolean()) fail(name, "is neither true nor false");
    return value.get<bool>();
  }

  nlohmann::json const& list(char const* name) const {
    auto const& value = at(name);
    if (!value.is_array()) fail(name, "is not a list");
    return value;
  }

  [[noreturn]] void fail(char const* name, char const* what) const {
    throw error(fmt::format("{} is not a manifest of a checkpoint: '{}' {}", where_, name, what));
  }

 private:
  nlohmann::json const& fields_;
  std::string_view where_;
};

}  // namespace detail

EDL_INLINE ledger manifest::applied() const {
  if (files.empty()) return {};
  edl::ledger both = files.front().ledger;
  for (file const& f : files) both.intersect(f.ledger);
  return both;
}

EDL_INLINE std::string to_json(manifest const& from) {
  using nlohmann::json;
  json shards = json::array(), files = json::array();
  for (auto const& s : from.shards) {
    shards.push_back({{"name", s.name}, {"records", s.records}});
    if (s.digest != 0) shards.back()["digest"] = s.digest;
  }
  for (auto const& f : from.files)
    files.push_back({{"name", f.name},
                     {"bytes", f.bytes},
                     {"crc32", f.crc32},
                     {"version", f.version},
                     {"ledger", json::parse(wire::to_json(f.ledger))}});
  json content{{"format", detail::manifest_format},
               {"job", from.job},
               {"version", from.version},
               {"epoch", epoch_of(from.generation)},
               {"generation", count_of(from.generation)},
               {"layout", from.layout},
               {"minibatch_size", from.minibatch_size},
               {"records_per_task", from.records_per_task},
               {"seed", from.seed},
               {"epochs", from.epochs},
               {"hyperparameters", from.hyperparameters},
               {"shards", std::move(shards)},
               {"files", std::move(files)}};
  if (from.shuffle) content["shuffle"] = *from.shuffle;
  if (!from.base_model.empty())
    content["base_model"] = {{"path", from.base_model}, {"crc32", from.base_crc32}};
  if (!from.record.empty()) content["record"] = json::parse(from.record);
  try {
    return json{{"checkpoint", content}, {"crc32", detail::text_crc32(content.dump())}}.dump(1) + "\n";
  } catch (json::type_error const&) {
    throw error("the name of the job or of a shard is not UTF-8, which a manifest requires");
  }
}

EDL_INLINE manifest manifest_from_json(std::string_view text, std::string_view where) {
  using nlohmann::json;
  json const whole = parse_json(text);
  if (!whole.is_object()) throw error(fmt::format("{} is not the JSON of a manifest", where));
  detail::manifest_fields const outer(whole, where);
  auto const crc32 = outer.number("crc32");
  auto const& content = outer.at("checkpoint");
  if (detail::text_crc32(content.dump()) != crc32)
    throw error(fmt::format("{} has been damaged or edited: its checksum does not match", where));
  detail::manifest_fields const fields(content, where);
  if (fields.number("format") != detail::manifest_format)
    fields.fail("format", "belongs to another version of this program");
  manifest m{.job = fields.text("job"),
             .version = fields.number("version"),
             .generation = content.contains("epoch")
                               ? in_epoch(fields.number("epoch", most_epoch),
                                          fields.number("generation", count_of(~std::uint64_t{0})))
                               : 0,
             .layout = fields.number("layout"),
             .minibatch_size = fields.number("minibatch_size"),
             .records_per_task = fields.number("records_per_task"),
             .seed = fields.number("seed"),
             .shuffle = content.contains("shuffle") ? std::optional(fields.truth("shuffle")) : std::nullopt,
             .epochs = fields.number("epochs"),
             .hyperparameters = content.contains("hyperparameters") ? fields.text("hyperparameters") : "",
             .base_model = {},
             .record = content.contains("record") ? content["record"].dump() : "",
             .shards = {},
             .files = {}};
  if (content.contains("base_model")) {
    detail::manifest_fields const base(content["base_model"], where);
    m.base_model = base.text("path");
    m.base_crc32 = std::uint32_t(base.number("crc32", std::numeric_limits<std::uint32_t>::max()));
  }
  for (json const& entry : fields.list("shards")) {
    detail::manifest_fields const shard(entry, where);
    // Earlier versions of edl wrote manifests without digests.
    m.shards.push_back(
        {shard.text("name"), shard.number("records"), entry.contains("digest") ? shard.number("digest") : 0});
  }
  for (json const& entry : fields.list("files")) {
    detail::manifest_fields const file(entry, where);
    manifest::file f{.name = file.text("name"),
                     .bytes = file.number("bytes"),
                     .crc32 = std::uint32_t(file.number("crc32", std::numeric_limits<std::uint32_t>::max())),
                     .version = file.number("version"),
                     .ledger = wire::ledger_from_json(file.at("ledger").dump(), where)};
    if (f.name.empty() || f.name.starts_with('.') || f.name.find('/') != std::string::npos ||
        f.name.find('\0') != std::string::npos)
      file.fail("name", "does not name a file in its directory");
    m.files.push_back(std::move(f));
  }
  if (m.files.empty()) fields.fail("files", "is empty");
  return m;
}

EDL_INLINE manifest read_manifest(bucket::place const& checkpoint) {
  std::string const path = checkpoint.path() + "/manifest.json";
  auto const found = detail::manifest_text(checkpoint);
  if (!found) throw storage_error(ENOENT, fmt::format("cannot open {}: {}", path, std::strerror(ENOENT)));
  return manifest_from_json(found->content, path);
}

EDL_INLINE bool has_manifest(bucket::place const& checkpoint) {
  auto const found = detail::manifest_text(checkpoint);
  return found && !(checkpoint.in_bucket() && detail::is_empty(*found));
}

}  // namespace edl::checkpoint
