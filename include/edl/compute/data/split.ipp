// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <utility>

#include "edl/compute/data/choosing_reader.hpp"
#include "edl/compute/data/file.hpp"
#include "edl/compute/data/split.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/random.hpp"

namespace edl::data {
namespace detail {

inline constexpr std::uint64_t million = 1'000'000;

class split_reader final : public choosing_reader {
 public:
  explicit split_reader(split_source const& of, std::unique_ptr<reader> whole)
      : source_(of), whole_(std::move(whole)), chooses_(dynamic_cast<choosing_reader*>(whole_.get())) {}

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    auto const& shards = source_.shards();
    if (shard >= shards.size())
      throw data_error(fmt::format("no shard {}: the data has only {}", shard, shards.size()));
    if (record >= shards[shard].records)
      throw data_error(fmt::format("{}: no record {}: this part has {}", shards[shard].name, record,
                                   shards[shard].records));
    whole_->read(source_.whole_shard(shard), source_.place(shard, record), into);
  }

  void choose(feature_names const* names) override {
    if (chooses_) chooses_->choose(names);
  }
  bool leaves_out(std::string_view name) const override { return chooses_ && chooses_->leaves_out(name); }

 private:
  split_source const& source_;
  std::unique_ptr<reader> whole_;
  choosing_reader* chooses_;
};

}  // namespace detail

EDL_INLINE record_split::record_split(double fraction, std::uint64_t seed, std::uint64_t records)
    : millionths_(fraction > 0 && fraction < 1 ? std::uint64_t(std::llround(fraction * 1e6)) : 0),
      seed_(seed) {
  if (millionths_ == 0 || millionths_ == detail::million || records > std::uint64_t{1} << 43)
    throw usage_error(fmt::format("{} of {} records cannot be held out; choose a share above 0 and below 1",
                                  fraction, records));
  held_out_ = records * millionths_ / detail::million;
  invariant(held_out_ <= records, "no more records are held out than exist");
  invariant(held_out_ == 0 || begin(held_out_) <= records, "each run of which one is held out is whole");
}

EDL_INLINE std::uint64_t record_split::begin(std::uint64_t run) const {
  return (run * detail::million + millionths_ - 1) / millionths_;
}

EDL_INLINE std::uint64_t record_split::validation(std::uint64_t i) const {
  constexpr std::uint64_t purpose = 0x73706C6974;  // separates these draws from others of the same seed
  std::uint64_t const first = begin(i);
  return first + random_stream{seed_, 0}.child(purpose).below(begin(i + 1) - first, i);
}

EDL_INLINE std::uint64_t record_split::held_out_before(std::uint64_t record) const {
  std::uint64_t const run = record * millionths_ / detail::million;
  if (run >= held_out_) return held_out_;
  return run + (validation(run) < record ? 1 : 0);
}

EDL_INLINE std::uint64_t record_split::training(std::uint64_t i) const {
  // begin(r) − r records before run r stay: the last run for which that is at most i contains record i.
  std::uint64_t low = 0, high = held_out_;
  while (low < high) {
    std::uint64_t const middle = low + (high - low + 1) / 2;
    if (begin(middle) - middle <= i)
      low = middle;
    else
      high = middle - 1;
  }
  std::uint64_t const record = i + low;
  return low < held_out_ && record >= validation(low) ? record + 1 : record;
}

EDL_INLINE split_source::split_source(std::shared_ptr<source const> whole, double fraction,
                                      std::uint64_t seed, split_part part)
    : forwarding_source(std::move(whole)),
      fraction_(fraction),
      seed_(seed),
      part_(part),
      split_(fraction, seed, records(inner())) {
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < inner().shards().size(); ++i) {
    shard s = inner().shards()[i];
    std::uint64_t const held_before = split_.held_out_before(first),
                        held = split_.held_out_before(first + s.records) - held_before;
    bool const training = part == split_part::training;
    places_.push_back({i, first, training ? first - held_before : held_before});
    first += s.records;
    s.records = training ? s.records - held : held;
    if (s.records > 0)
      shards_.push_back(std::move(s));
    else
      places_.pop_back();
  }
  invariant(places_.size() == shards_.size(), "each shard has its place in the whole");
  invariant(split_.held_out_before(first) <= first, "no more records are held out than exist");
  if (shards_.empty())
    throw data_error(fmt::format("a share of {} of {} records leaves none {}", fraction, first,
                                 part == split_part::training ? "to train" : "to evaluate"));
}

EDL_INLINE std::uint64_t split_source::place(std::size_t shard, std::uint64_t record) const {
  auto const& at = places_.at(shard);
  std::uint64_t const number = at.taken + record;
  return (part_ == split_part::training ? split_.training(number) : split_.validation(number)) - at.first;
}

EDL_INLINE std::unique_ptr<reader> split_source::open() const {
  return std::make_unique<detail::split_reader>(*this, inner().open());
}

EDL_INLINE std::uint64_t split_source::digest(std::size_t shard) const {
  if (shard >= places_.size()) return 0;
  std::uint64_t const whole = inner().digest(places_[shard].shard);
  if (whole == 0) return 0;
  detail::content_digest sum;
  sum.add(whole);
  sum.add(std::bit_cast<std::uint64_t>(fraction_));
  sum.add(seed_);
  return sum.value();
}

}  // namespace edl::data
