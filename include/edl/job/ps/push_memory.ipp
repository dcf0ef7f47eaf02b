// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstring>

#include "edl/base/net/status.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/core/bfloat16.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/ps/push_memory.hpp"
#include "edl/job/ps/store.hpp"

namespace edl::ps {
namespace detail {

inline std::size_t row_width(store const& of, std::size_t table) {
  return std::size_t(of.rows().table(table).width());
}

}  // namespace detail

EDL_INLINE push_memory::push_memory(std::vector<model_update>& pool, store const& of,
                                    wire::PushRequest const& p, bool bfloat16, std::uint64_t payload)
    : pool_(pool), parameters_(of.parameters()), bfloat16_(bfloat16) {
  if (std::size_t(p.rows_size()) != of.rows().tables())
    throw net::call_error(net::status::invalid,
                          fmt::format("a push has rows of {} tables, but the server keeps {}", p.rows_size(),
                                      of.rows().tables()));
  std::size_t const values = parameters_ + of.state();
  std::uint64_t expected = values * sizeof(float) - (bfloat16 ? parameters_ * 2 : 0);
  for (std::size_t t = 0; t < of.rows().tables(); ++t)
    expected +=
        std::uint64_t(p.rows(int(t))) * (sizeof(std::uint64_t) + sizeof(float) * detail::row_width(of, t));
  if (expected != payload)
    throw net::call_error(net::status::invalid,
                          fmt::format("a push has {} bytes, but the server takes {}", payload, expected));
  if (!pool_.empty()) {
    memory_ = std::move(pool_.back());
    pool_.pop_back();
  }
  memory_.values.resize(values);
  memory_.tables.resize(of.rows().tables());
  for (std::size_t t = 0; t < of.rows().tables(); ++t) {
    memory_.tables[t].ids.resize(p.rows(int(t)));
    memory_.tables[t].values.resize(p.rows(int(t)) * detail::row_width(of, t));
  }
}

EDL_INLINE std::vector<std::span<std::byte>> push_memory::into() {
  std::vector<std::span<std::byte>> all{
      std::as_writable_bytes(std::span(memory_.values)).subspan(bfloat16_ ? parameters_ * 2 : 0)};
  for (row_update& rows : memory_.tables) {
    all.push_back(std::as_writable_bytes(std::span(rows.ids)));
    all.push_back(std::as_writable_bytes(std::span(rows.values)));
  }
  return all;
}

EDL_INLINE void push_memory::spread() {
  if (!bfloat16_) return;
  std::byte const* const from = std::as_bytes(std::span(memory_.values)).data() + parameters_ * 2;
  for (std::size_t i = 0; i < parameters_; ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, from + 2 * i, 2);
    memory_.values[i] = from_bfloat16(bits);
  }
}

EDL_INLINE std::vector<sparse::row_gradients> push_memory::rows() const {
  std::vector<sparse::row_gradients> all;
  for (row_update const& rows : memory_.tables) all.push_back({rows.ids, rows.values});
  return all;
}

EDL_INLINE std::vector<bytes> push_memory::as_payload() const {
  std::vector<bytes> all{std::as_bytes(std::span(memory_.values))};
  for (row_update const& rows : memory_.tables) {
    all.push_back(std::as_bytes(std::span(rows.ids)));
    all.push_back(std::as_bytes(std::span(rows.values)));
  }
  return all;
}

}  // namespace edl::ps
