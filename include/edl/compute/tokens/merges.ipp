// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <limits>

#include "edl/compute/tokens/merges.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::tokens {

EDL_INLINE merges::merges(std::size_t count) : entries_(std::bit_ceil(2 * count + 2)) {}

EDL_INLINE std::size_t merges::place_of(std::uint64_t pair) const {
  std::size_t const mask = entries_.size() - 1;
  std::size_t at = std::size_t((pair * 0x9e3779b97f4a7c15u) >> 20) & mask;
  while (entries_[at].pair != pair && entries_[at].pair != ~std::uint64_t{0}) at = (at + 1) & mask;
  return at;
}

EDL_INLINE void merges::add(token_id left, token_id right, result r) {
  std::uint64_t const pair = std::uint64_t{left} << 32 | right;
  invariant(pair != ~std::uint64_t{0}, "no pair looks like an empty entry");
  entries_[place_of(pair)] = {pair, r};
}

EDL_INLINE merges::result const* merges::find(token_id left, token_id right) const {
  std::uint64_t const pair = std::uint64_t{left} << 32 | right;
  entry const& e = entries_[place_of(pair)];
  return e.pair == pair ? &e.becomes : nullptr;
}

EDL_INLINE void merges::apply(std::span<token_id const> word, workspace& with,
                              std::vector<token_id>& to) const {
  constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  auto& symbols = with.symbols;
  auto& heap = with.heap;
  auto const later = [](workspace::candidate const& a, workspace::candidate const& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.place > b.place;
  };
  auto const consider = [&](std::uint32_t place) {
    if (place == none || symbols[place].after == none) return false;
    token_id const left = symbols[place].id, right = symbols[symbols[place].after].id;
    result const* const r = find(left, right);
    if (r != nullptr) heap.push_back({r->rank, place, left, right, r->id});
    return r != nullptr;
  };
  symbols.clear(), heap.clear();
  auto const count = std::uint32_t(word.size());
  for (std::uint32_t i = 0; i < count; ++i)
    symbols.push_back({word[i], i == 0 ? none : i - 1, i + 1 == count ? none : i + 1});
  for (std::uint32_t i = 0; i < count; ++i) consider(i);
  std::ranges::make_heap(heap, later);
  while (!heap.empty()) {
    std::ranges::pop_heap(heap, later);
    workspace::candidate const best = heap.back();
    heap.pop_back();
    auto& here = symbols[best.place];
    if (here.gone || here.id != best.left || here.after == none || symbols[here.after].id != best.right)
      continue;  // a neighbour has been merged since
    auto& next = symbols[here.after];
    invariant(!next.gone && next.before == best.place, "neighbours know each other");
    next.gone = true;
    here.id = best.id;
    here.after = next.after;
    if (here.after != none) symbols[here.after].before = best.place;
    for (std::uint32_t const place : {here.before, best.place})
      if (consider(place)) std::ranges::push_heap(heap, later);
  }
  for (auto const& s : symbols)
    if (!s.gone) to.push_back(s.id);
}

}  // namespace edl::tokens
