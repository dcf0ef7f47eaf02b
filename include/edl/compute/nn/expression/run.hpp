// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/draw_blocks.hpp"
#include "edl/compute/device/cpu/rows.hpp"
#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/expression/kernel.hpp"
#include "edl/compute/nn/expression/schedule.hpp"
#include "edl/core/random.hpp"

namespace edl::nn::expression {

/// Elements of a value per sample, or in all if the value has no sample axis.
constexpr std::size_t of_sample(axes over, shape in) { return elements_of(without(over, samples), in); }

/// The offset of a statistic among a program's; of the last one's successor: the size of all.
constexpr std::size_t offset_of_statistic(program const& p, shape in, int which) {
  std::size_t n = 0;
  for (int s = 0; s < which; ++s) n += of_sample(p.statistics[std::size_t(s)], in);
  return which == p.statistic_count ? rounded(n) : n;
}
/// What the forward pass stores begins with the statistics before it, then after it.
constexpr std::size_t size_of_statistics(program const& p, shape in) {
  return 2 * offset_of_statistic(p, in, p.statistic_count);
}

/// Scalars that a program stores for the backward pass.
constexpr std::size_t kept_by(program const& p, shape in, std::size_t batch) {
  std::size_t n = size_of_statistics(p, in);
  for (int k = 0; k < p.kept_count; ++k)
    n += rounded(batch * of_sample(p.nodes[p.kept[std::size_t(k)]].over, in));
  return n;
}

/// The arguments of a program. Spans of unneeded values may be empty.
template <class T>
struct call {
  form const& now;  ///< with the constants of this call
  shape in;
  std::size_t batch;
  std::span<view<T> const> x;  ///< of each input
  view<T> dy, variables;
  std::span<T> y;
  std::span<std::span<T> const> dx;  ///< of each input
  std::span<T> gradients, kept;
  view<T> labels{};
  bool training = true;
  random_stream random{};
  bool draws = false;       ///< its random numbers, first
  std::string_view name{};  ///< of the layer or loss, for errors
};

/// Computes without a device: one thread with its own memory, which grows to the largest size requested.
template <class T>
struct this_thread {
  static std::span<T> room(int, std::size_t which, std::size_t size) {
    thread_local std::array<std::vector<T>, 3> memory;
    if (memory[which].size() < size) memory[which].resize(size);
    return std::span(memory[which]).first(size);
  }
  static int parts(std::size_t, std::size_t) { return 1; }
  template <class Work>
  static void share(std::size_t n, int, Work&& work) {
    work(0, n, 0);
  }
};

/// How a call is divided: into samples with rows, or into rows of a length that suits the processor.
struct cut {
  std::size_t samples, rows, length, last;  ///< `last` is the end of all rows
  std::size_t copies = 1;                   ///< of the channels in a row
};

inline cut cut_of(program const& p, shape in, std::size_t batch) {
  auto const c = std::size_t(in.channels), places = in.size() / c, all = batch * in.size();
  if (p.flat) return {1, (all + 2047) / 2048, 2048, all};
  if (!p.by_rows) return {batch, places, c, places * c};
  std::size_t const copies = p.by_blocks ? std::max<std::size_t>(1, 512 / c) : 1;
  return {1, (batch * places + copies - 1) / copies, c * copies, all, copies};
}

/// The size of a thread's own memory for a slot; 0: it has none.
inline std::size_t own_size(program const& p, slot const& s, shape in, cut const& by) {
  bool const c = has(s.over, channels);
  switch (s.where) {
    case memory::own:
      if (c) return has(s.over, places) ? by.length : std::size_t(in.channels);
      return has(s.over, places) && !p.by_rows ? of_sample(places, in) : 1;
    case memory::own_sample:
      return of_sample(s.over, in);
    case memory::total:
      return 2 * (has(s.over, places) ? of_sample(s.over, in) : c ? by.length : 1);
    case memory::variable:
    case memory::statistic:
    case memory::position:
    case memory::shared:
      return by.copies > 1 && s.over == channels ? by.length : 0;
    default:
      return 0;
  }
}

/// Gives each slot its memory. `own` is the thread's: `own_size` of each slot, and a spare row for each
/// gradient that is not wanted.
template <class T>
frame<T> bind(program const& p, call<T> const& a, cut const& by, T const* numbers, T const* positions,
              T* shared, T* own, bool in_samples) {
  frame<T> f;
  f.channels = std::size_t(a.in.channels), f.places = a.in.size() / f.channels;
  auto const put = [&](std::size_t s, T const* at, std::size_t by_sample, std::size_t by_row) {
    f.at[s] = const_cast<T*>(at), f.by_sample[s] = by_sample, f.by_row[s] = by_row;
  };
  std::array<std::size_t, form::most_variables> first{};
  for (int v = 1; v < a.now.variable_count; ++v)
    first[std::size_t(v)] = first[std::size_t(v - 1)] + a.now.variables[std::size_t(v - 1)].dims.size();
  std::array<std::size_t, 16> kept_at{size_of_statistics(p, a.in)};
  for (int k = 1; k < p.kept_count; ++k)
    kept_at[std::size_t(k)] = kept_at[std::size_t(k - 1)] +
                              rounded(a.batch * of_sample(p.nodes[p.kept[std::size_t(k - 1)]].over, a.in));
  T* spare = own;
  for (int k = 0; k < p.slot_count; ++k) spare += rounded(own_size(p, p.slots[std::size_t(k)], a.in, by));
  for (int k = 0; k < p.slot_count; ++k) {
    auto const i = std::size_t(k);
    slot const& s = p.slots[i];
    std::size_t const c = has(s.over, channels) ? std::size_t(a.in.channels) : 1;
    bool const by_place = has(s.over, places);
    std::size_t const sample = of_sample(s.over, a.in);
    std::size_t row = by_place ? c : 0;
    if (in_samples && by_place && c > 1) row = by.length;
    if (in_samples && p.flat) row = by.length;
    if (in_samples && by_place && has(s.over, channels)) row = by.length;
    std::size_t const mine = own_size(p, s, a.in, by);
    auto const external = [&](T const* at) { put(i, at, has(s.over, samples) ? sample : 0, row); };
    switch (s.where) {
      case memory::input:
        external(a.x[std::size_t(s.index)].data());
        break;
      case memory::label:
        external(a.labels.data() +
                 std::size_t(s.index) * a.batch);  // the first of all samples, then the second, …
        break;
      case memory::slope:
        external(a.dy.data());
        break;
      case memory::result:
        external(a.y.data());
        break;
      case memory::input_gradient:
        if (a.dx[std::size_t(s.index)].empty())
          put(i, std::exchange(spare, spare + rounded(by.length)), 0, 0);
        else
          external(a.dx[std::size_t(s.index)].data());
        break;
      case memory::variable_gradient:
        if (a.gradients.empty())
          put(i, spare, 0, has(s.over, places) ? row : 0);
        else
          external(a.gradients.data() + first[std::size_t(s.index)]);
        break;
      case memory::updated_statistic:
        external(a.kept.data() + size_of_statistics(p, a.in) / 2 + offset_of_statistic(p, a.in, s.index));
        break;
      case memory::variable:
      case memory::statistic:
      case memory::position:
        external(s.where == memory::position    ? positions
                 : s.where == memory::statistic ? a.kept.data() + offset_of_statistic(p, a.in, s.index)
                                                : a.variables.data() + first[std::size_t(s.index)]);
        if (mine > 0 && in_samples) {
          for (std::size_t k2 = 0; k2 < mine; ++k2) own[k2] = f.at[i][k2 % c];
          put(i, own, 0, 0);
        }
        break;
      case memory::number:
        put(i, numbers + s.index, 0, 0);
        break;
      case memory::kept:
        external(a.kept.data() + kept_at[std::size_t(s.index)]);
        break;
      case memory::shared:
        put(i, shared, 0, row);
        shared += rounded(sample);
        if (mine > 0 && in_samples) {
          for (std::size_t k2 = 0; k2 < mine; ++k2) own[k2] = f.at[i][k2 % c];
          put(i, own, 0, 0);
        }
        break;
      case memory::total:
        put(i, own, 0, has(s.over, places) ? c : 0);
        break;
      case memory::own:
        put(i, own, 0, s.over == (samples | places) && !p.by_rows ? 1 : 0);
        break;
      case memory::own_sample:
        put(i, own, 0, row);
        break;
      case memory::nowhere:
        break;
    }
    own += rounded(mine);
  }
  return f;
}

/// The numbers of a call, in the order of their slots.
template <class T>
void numbers_of(program const& p, call<T> const& a, T* to) {
  for (int k = 0; k < p.slot_count; ++k) {
    slot const& s = p.slots[std::size_t(k)];
    if (s.where != memory::number) continue;
    node const& n = p.nodes[s.of];
    double value = n.value;
    if (n.what == operation::training)
      value = a.training ? 1 : 0;
    else if (n.what == operation::extent)
      value = double(of_sample(n.along, a.in)) * (has(n.along, samples) ? double(a.batch) : 1);
    else if (n.index >= 0)
      value = a.now.nodes[s.of].value;
    to[s.index] = T(value);
  }
}

/// Adds the result of a thread's rows to the sum so far: in parts, so that errors grow with the root of their
/// number.
template <class T>
void add_part(program const& p, frame<T> const& f, shape in, cut const& by) {
  for (int k = 0; k < p.slot_count; ++k) {
    slot const& s = p.slots[std::size_t(k)];
    if (s.where != memory::total) continue;
    std::size_t const n = own_size(p, s, in, by) / 2;
    T *const part = f.at[std::size_t(k)], *const all = part + n;
    for (std::size_t i = 0; i < n; ++i) all[i] += part[i], part[i] = 0;
  }
}

/// Adds the sums of all threads into the first thread's parts.
template <class T>
void join_threads(program const& p, std::span<frame<T>> of, shape in, cut const& by) {
  for (int k = 0; k < p.slot_count; ++k) {
    slot const& s = p.slots[std::size_t(k)];
    if (s.where != memory::total) continue;
    std::size_t const n = own_size(p, s, in, by) / 2;
    T* const all = of[0].at[std::size_t(k)];
    std::copy_n(all + n, n, all);
    for (std::size_t t = 1; t < of.size(); ++t)
      for (std::size_t i = 0; i < n; ++i) all[i] += of[t].at[std::size_t(k)][n + i];
    if (has(s.over, places)) continue;
    std::size_t const c = has(s.over, channels) ? std::size_t(in.channels) : 1;
    for (std::size_t i = c; i < n; ++i) all[i % c] += all[i];
  }
}

constexpr bool draws(program const& p) {
  for (int k = 0; k < p.kept_count; ++k)
    if (is_random(p.nodes[p.kept[std::size_t(k)]].what)) return true;
  return false;
}

/// Draws the random numbers of a forward pass into what is kept for the backward pass; zeros outside of
/// training.
template <class T>
void draw_into_kept(basic_cpu<T>& cpu, program const& p, call<T> const& a) {
  std::span<T> kept = a.kept.subspan(size_of_statistics(p, a.in));
  for (int k = 0; k < p.kept_count; ++k) {
    node const& n = p.nodes[p.kept[std::size_t(k)]];
    std::size_t const all = a.batch * of_sample(n.over, a.in);
    std::span<T> const to = kept.first(all);
    kept = kept.subspan(rounded(all));
    if (!is_random(n.what)) continue;
    random_stream const own = a.random.child(std::uint64_t(n.index));
    constexpr std::size_t lanes = 256;
    std::size_t const groups = (all + lanes - 1) / lanes;
    cpu.share(groups, cpu.parts(groups, 16), [&](std::size_t begin, std::size_t end, int) {
      std::array<std::uint32_t, lanes> drawn;
      for (std::size_t i = begin * lanes; i < std::min(end * lanes, all); i += lanes) {
        std::size_t const count = std::min(lanes, all - i);
        if (!a.training) {
          std::fill_n(&to[i], count, T(0));
        } else if (n.what == operation::normal) {
          for (std::size_t j = 0; j < count; ++j) to[i + j] = T(own.normal(i + j));
        } else {
          edl::detail::draw_blocks(own, i / 4, drawn);
          for (std::size_t j = 0; j < count; ++j) to[i + j] = T(drawn[j] >> 8) * T(0x1p-24);
        }
      }
    });
  }
}

/// Computes a program with the threads and the scratch memory of `cpu`.
template <program const& P, class T, class On>
void run_on(On& cpu, call<T> const& a) {
  cut const by = cut_of(P, a.in, a.batch);
  std::size_t own = 0, shared = 0, gradient = 0, positions = 0;
  int numbers = 0;
  for (int k = 0; k < P.slot_count; ++k) {
    slot const& s = P.slots[std::size_t(k)];
    own += rounded(own_size(P, s, a.in, by));
    if (s.where == memory::input_gradient) own += rounded(by.length);
    if (s.where == memory::shared) shared += rounded(of_sample(s.over, a.in));
    if (s.where == memory::variable_gradient) gradient = std::max(gradient, of_sample(s.over, a.in));
    if (s.where == memory::position) positions = std::max(positions, of_sample(s.over, a.in));
    numbers += s.where == memory::number;
  }
  own += gradient;
  positions = rounded(positions);
  T* const index = cpu.room(0, 1, positions + rounded(shared) + std::size_t(numbers) + 1).data();
  for (std::size_t i = 0; i < positions; ++i) index[i] = T(i);
  T *const all = index + positions, *const values = all + rounded(shared);
  numbers_of(P, a, values);
  auto const places = std::size_t(a.in.height) * std::size_t(a.in.width);
  auto const alone = [&]<int Run>() {
    if constexpr (P.sections(Run) > 0) {
      auto const f = bind(P, a, by, values, index, all, cpu.room(0, 0, own).data(), false);
      loops<P>::template sample<Run>(f, 0, places, std::size_t(a.in.channels));
    }
  };
  alone.template operator()<0>();
  if constexpr (P.sections(1) > 0) {
    constexpr std::size_t most_threads = 64, part_rows = 64;
    std::size_t const units = P.by_rows ? by.rows : by.samples;
    std::size_t const wanted = std::size_t(cpu.parts(a.batch * a.in.size(), 8 * 1024));
    int const parts = int(std::max<std::size_t>(1, std::min({wanted, units, most_threads})));
    std::array<T*, most_threads> at;
    for (int t = 0; t < parts; ++t) at[std::size_t(t)] = cpu.room(t, 0, own).data();
    std::array<frame<T>, most_threads> frames;
    cpu.share(units, parts, [&](std::size_t begin, std::size_t end, int t) {
      auto& f = frames[std::size_t(t)] = bind(P, a, by, values, index, all, at[std::size_t(t)], true);
      for (int k = 0; k < P.slot_count; ++k)
        if (P.slots[std::size_t(k)].where == memory::total)
          std::fill_n(f.at[std::size_t(k)], own_size(P, P.slots[std::size_t(k)], a.in, by), T(0));
      if constexpr (P.by_rows) {
        for (std::size_t first = begin; first < end; first += part_rows) {
          loops<P>::template section<1, 1>(f, 0, first, std::min(first + part_rows, end), by.length, by.last);
          add_part(P, f, a.in, by);
        }
      } else {
        for (std::size_t s = begin; s < end; ++s) {
          loops<P>::template sample<1>(f, s, by.rows, by.length);
          if (s + 1 == end || s % 16 == 15) add_part(P, f, a.in, by);
        }
      }
    });
    join_threads<T>(P, std::span(frames).first(std::size_t(parts)), a.in, by);
  }
  alone.template operator()<2>();
}

}  // namespace edl::nn::expression
