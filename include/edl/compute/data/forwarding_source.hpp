// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "edl/compute/data/reader.hpp"

namespace edl::data {

/// A source that wraps another, and forwards what it does not override. `Base`: what it is itself. Thread
/// safety: as the source.
template <class Base>
class forwarding : public Base {
 public:
  std::vector<shard> const& shards() const override { return inner_->shards(); }
  std::unique_ptr<reader> open() const override { return inner_->open(); }
  std::uint64_t digest(std::size_t shard) const override { return inner_->digest(shard); }
  std::uint64_t number_in_file(std::size_t shard, std::uint64_t record) const override {
    return inner_->number_in_file(shard, record);
  }
  std::uint64_t line_in_file(std::size_t shard, std::uint64_t record) const override {
    return inner_->line_in_file(shard, record);
  }
  std::string own_file(std::size_t shard, std::uint64_t record) const override {
    return inner_->own_file(shard, record);
  }
  std::span<std::string const> damage() const override { return inner_->damage(); }
  std::span<std::string const> classes() const override { return inner_->classes(); }
  std::vector<std::string> features() const override { return inner_->features(); }
  std::span<std::string const> notes() const override { return inner_->notes(); }
  std::string missing_note() const override { return inner_->missing_note(); }

 protected:
  explicit forwarding(std::shared_ptr<source const> inner) : inner_(std::move(inner)) {}
  source const& inner() const { return *inner_; }

 private:
  std::shared_ptr<source const> inner_;
};

using forwarding_source = forwarding<source>;

}  // namespace edl::data
