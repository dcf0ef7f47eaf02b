// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "edl/compute/data/choosing_reader.hpp"
#include "edl/compute/data/format/table.hpp"
#include "edl/compute/data/joined.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::data {
namespace detail {

class joined_reader final : public choosing_reader {
 public:
  joined_reader(std::vector<std::unique_ptr<source>> const& parts,
                std::vector<std::pair<std::size_t, std::size_t>> const& places)
      : parts_(parts), places_(places) {}

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    if (shard >= places_.size())
      throw data_error(fmt::format("no shard {}: the data has only {}", shard, places_.size()));
    auto const [part, number] = places_[shard];
    // One part at a time is open, because each may hold open files and a cache.
    if (!in_ || part != open_) {
      in_ = parts_[part]->open();
      chooses_ = dynamic_cast<choosing_reader*>(in_.get());
      if (chooses_ && chosen_) chooses_->choose(&*chosen_);
    }
    open_ = part;
    in_->read(number, record, into);
  }

  void choose(feature_names const* names) override {
    chosen_ = names ? std::optional(*names) : std::nullopt;
    if (chooses_) chooses_->choose(names);
  }
  bool leaves_out(std::string_view name) const override { return chooses_ && chooses_->leaves_out(name); }

 private:
  std::vector<std::unique_ptr<source>> const& parts_;
  std::vector<std::pair<std::size_t, std::size_t>> const& places_;
  std::unique_ptr<reader> in_;
  choosing_reader* chooses_ = nullptr;
  std::optional<feature_names> chosen_;
  std::size_t open_ = 0;
};

}  // namespace detail

EDL_INLINE joined_source::joined_source(std::vector<std::pair<std::string, std::unique_ptr<source>>> parts) {
  if (parts.empty()) throw usage_error("no records are to be joined");
  std::vector<table*> tables;
  std::set<std::string> names;
  bool distinct = true;
  for (auto const& [path, part] : parts) {
    if (!std::ranges::equal(part->classes(), parts.front().second->classes()))
      throw data_error(fmt::format("{} and {} have not the same classes, so that their labels differ",
                                   parts.front().first, path));
    if (auto* const t = dynamic_cast<table*>(part.get())) tables.push_back(t);
    for (shard const& s : part->shards()) distinct = names.insert(s.name).second && distinct;
  }
  data::agree(tables);
  for (auto& [path, part] : parts) {
    for (std::size_t i = 0; i < part->shards().size(); ++i) {
      shard s = part->shards()[i];
      if (!distinct) s.name = part->shards().size() == 1 ? path : path + "/" + s.name;
      shards_.push_back(std::move(s));
      places_.emplace_back(parts_.size(), i);
    }
    damage_.insert(damage_.end(), part->damage().begin(), part->damage().end());
    notes_.insert(notes_.end(), part->notes().begin(), part->notes().end());
    parts_.push_back(std::move(part));
  }
  invariant(places_.size() == shards_.size(), "each shard has its place in a part");
  // Files of one origin have the same notes.
  if (std::size_t const all = notes_.size(); all > detail::table_notes) {
    notes_.resize(detail::table_notes);
    notes_.push_back(
        fmt::format("{} more such lines of other files are left out", all - detail::table_notes));
  }
}

EDL_INLINE std::unique_ptr<reader> joined_source::open() const {
  return std::make_unique<detail::joined_reader>(parts_, places_);
}

EDL_INLINE std::string joined_source::missing_note() const {
  for (auto const& part : parts_)
    if (std::string note = part->missing_note(); !note.empty()) return note;
  return {};
}

EDL_INLINE std::vector<table_column> joined_source::columns() const {
  for (auto const& part : parts_)  // they agree
    if (auto const* const t = dynamic_cast<table const*>(part.get())) return t->columns();
  return {};
}

EDL_INLINE void joined_source::agree(std::vector<table_column> const& with) {
  for (auto const& part : parts_)
    if (auto* const t = dynamic_cast<table*>(part.get())) t->agree(with);
}

EDL_INLINE std::vector<table_column> columns_of(source const& of) {
  if (auto const* const t = dynamic_cast<table const*>(&of)) return t->columns();
  auto const* const joined = dynamic_cast<joined_source const*>(&of);
  return joined ? joined->columns() : std::vector<table_column>();
}

EDL_INLINE std::uint64_t joined_source::digest(std::size_t shard) const {
  if (shard >= places_.size()) return 0;
  auto const [part, number] = places_[shard];
  return parts_[part]->digest(number);
}

EDL_INLINE std::uint64_t joined_source::number_in_file(std::size_t shard, std::uint64_t record) const {
  auto const [part, number] = places_.at(shard);
  return parts_[part]->number_in_file(number, record);
}

EDL_INLINE std::uint64_t joined_source::line_in_file(std::size_t shard, std::uint64_t record) const {
  auto const [part, number] = places_.at(shard);
  return parts_[part]->line_in_file(number, record);
}

EDL_INLINE std::string joined_source::own_file(std::size_t shard, std::uint64_t record) const {
  auto const [part, number] = places_.at(shard);
  return parts_[part]->own_file(number, record);
}

EDL_INLINE std::vector<std::string> joined_source::features() const {
  std::set<std::string> all;
  for (auto const& part : parts_) {
    auto const names = part->features();
    if (names.empty()) return {};
    all.insert(names.begin(), names.end());
  }
  return {all.begin(), all.end()};
}

}  // namespace edl::data
