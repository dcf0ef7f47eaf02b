// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/draw_blocks.hpp"
#include "edl/compute/device/cpu/gemm.hpp"
#include "edl/compute/device/cpu/lanes.hpp"
#include "edl/compute/device/cpu/vector_functions.hpp"

namespace edl {
namespace detail {

/// Queries × keys that are computed at a time, after Dao et al., "FlashAttention" (2022), so that the scores
/// stay in the second-level cache.
struct attention_block {
  static constexpr std::size_t queries = 64, keys = 256, most = queries * keys;
};

/// One head of one sample, restricted to the sample's valid places.
template <class T>
struct attention_head {
  attention_geometry g;
  T const *q, *k, *v;                             ///< rows that stand `stride` apart, of keys `key_stride`
  T *dq = nullptr, *dk = nullptr, *dv = nullptr;  ///< their gradients, with the same strides
  std::size_t stride, key_stride, apart;          ///< `apart`: the rows of what comes out
  std::size_t first = 0;                          ///< of what comes out
  std::size_t places, keys, width;
  std::span<std::int32_t const> order{};  ///< the original places of gathered rows; empty: not gathered
  std::size_t sample, head, unit;

  attention_head(attention_geometry const& of, kept_places const& kept, std::size_t number, std::span<T> qkv)
      : g(of),
        stride(3 * of.channels()),
        key_stride(stride),
        apart(of.channels()),
        places(std::size_t(of.places)),
        keys(places),
        width(std::size_t(of.width)),
        sample(number / std::size_t(of.heads)),
        head(number % std::size_t(of.heads)),
        unit(number) {
    std::size_t begin = sample * places;
    if (!kept.all()) {
      auto const own = kept.of(sample);
      places = own.size();
      bool const run = own.empty() || std::size_t(own.back() - own.front()) + 1 == own.size();
      if (run && !own.empty()) begin += std::size_t(own.front());
      if (!run) order = own;
      keys = places;
    }
    lie_at(qkv.data() + begin * stride + head * width, of.channels());
    first = begin * of.channels() + head * width;
  }

  /// Gradients may be empty.
  attention_head(cross_attention_geometry const& of, std::size_t number, view<T> queries, view<T> keys_values,
                 std::span<T> dqueries, std::span<T> dkeys_values)
      : g{.places = of.places, .heads = of.heads, .width = of.width},
        stride(of.channels()),
        key_stride(2 * stride),
        apart(stride),
        places(std::size_t(of.places)),
        keys(std::size_t(of.keys)),
        width(std::size_t(of.width)),
        sample(number / std::size_t(of.heads)),
        head(number % std::size_t(of.heads)),
        unit(number) {
    first = sample * places * stride + head * width;
    std::size_t const second = sample * keys * key_stride + head * width;
    q = queries.data() + first;
    k = keys_values.data() + second;
    v = k + stride;
    if (dqueries.empty()) return;
    dq = dqueries.data() + first;
    dk = dkeys_values.data() + second;
    dv = dk + stride;
  }

  /// Places queries, keys and values `part` numbers apart; their gradients will overwrite them.
  void lie_at(T* to, std::size_t part) {
    q = dq = to;
    k = dk = to + part;
    v = dv = to + 2 * part;
  }

  /// The rows of this sample within all samples' results, or within their gradients.
  template <class U>
  U* rows(std::span<U> all) const {
    return all.data() + first;
  }

  /// Valid places that are not contiguous: copies their queries, keys and values to contiguous memory.
  void gather(T* to) {
    origin = dq, origin_stride = stride;
    for (std::size_t i = 0; i < places; ++i)
      for (std::size_t part = 0; part < 3; ++part)
        std::copy_n(origin + std::size_t(order[i]) * stride + part * g.channels(), width,
                    to + (3 * i + part) * width);
    lie_at(to, width);
    stride = key_stride = 3 * width;
    apart = width;
  }
  /// Copies the gathered rows back to their places.
  void scatter() const {
    for (std::size_t i = 0; i < places; ++i)
      for (std::size_t part = 0; part < 3; ++part)
        std::copy_n(dq + (3 * i + part) * width, width,
                    origin + std::size_t(order[i]) * origin_stride + part * g.channels());
  }

  T* origin = nullptr;
  std::size_t origin_stride = 0;

  /// Calls visit(first query, queries, first key, keys before the end) for all queries, block by block.
  template <class Visit>
  void each_block(Visit&& visit) const {
    constexpr std::size_t step = attention_block::queries;
    for (std::size_t i = 0; i < places; i += step)
      visit(i, std::min(step, places - i), g.first_seen(i) / step * step,
            g.causal ? std::min(i + step, places) : keys);
  }
  /// Of the `n` keys from `from` on, those that the query sees: from the first to before the second number.
  /// It sees some of each block that `each_block` visits.
  std::pair<std::size_t, std::size_t> seen(std::size_t query, std::size_t from, std::size_t n) const {
    std::size_t const first = std::max(g.first_seen(query), from) - from;
    return {first, g.causal ? std::min(n, query + 1 - from) : n};
  }
};

/// The scores of products of queries and keys: divided by √width, and capped.
template <class T>
struct score {
  T scale, cap;

  explicit score(attention_geometry const& g) : scale(1 / std::sqrt(T(g.width))), cap(T(g.softcap)) {}

  template <class V>
  V of(V const& product) const {
    return cap > 0 ? V(cap * hyperbolic_tangent(V(product * (scale / cap)))) : V(product * scale);
  }
  /// The derivative by the product, from the score.
  template <class V>
  V slope(V const& s) const {
    if (!(cap > 0)) return V{} + scale;
    V const share = s / cap;
    return scale - scale * share * share;
  }
};

/// Rotates the pairs of a query or key by angles with these cosines and sines.
template <class T>
void turn_pairs(attention_geometry const& g, T const* cosine, T const* sine, T* x) {
  auto const half = std::size_t(g.width) / 2;
  if (g.interleaved) {
    for (std::size_t i = 0; i < half; ++i) {
      T const a = x[2 * i], b = x[2 * i + 1];
      x[2 * i] = a * cosine[i] - b * sine[i];
      x[2 * i + 1] = a * sine[i] + b * cosine[i];
    }
    return;
  }
  by_lanes<T>(half, [&]<class V>(std::size_t i) {
    V const a = load<V>(x + i), b = load<V>(x + half + i), c = load<V>(cosine + i), s = load<V>(sine + i);
    store<V>(x + i, a * c - b * s);
    store<V>(x + half + i, a * s + b * c);
  });
}

/// Rotates the pairs of each query and key by the angle of their place, or back.
template <class T>
void turn(basic_cpu<T>& cpu, attention_geometry const& g, int batch, bool back, std::span<T> qkv) {
  auto const places = std::size_t(g.places), half = std::size_t(g.width) / 2;
  auto const angles = cpu.room(0, 4, 2 * places * half);
  for (std::size_t place = 0; place < places; ++place)
    for (std::size_t i = 0; i < half; ++i) {
      double const angle = g.turn(place, i);
      angles[2 * place * half + i] = T(std::cos(angle));
      angles[(2 * place + 1) * half + i] = T(back ? -std::sin(angle) : std::sin(angle));
    }
  std::size_t const rows = std::size_t(batch) * places, vectors = 2 * std::size_t(g.heads);
  cpu.share(rows, cpu.parts(rows * g.channels(), 8 * 1024), [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t row = begin; row < end; ++row) {
      T const *const cosine = angles.data() + 2 * (row % places) * half, *const sine = cosine + half;
      for (std::size_t v = 0; v < vectors; ++v)
        turn_pairs(g, cosine, sine, qkv.data() + row * 3 * g.channels() + v * 2 * half);
    }
  });
}

/// Rotates the queries and keys of rows as `turn` does, by each row's own place.
template <class T>
void turn_rows(basic_cpu<T>& cpu, attention_geometry const& g, std::span<sequence_place const> rows,
               std::span<T> qkv) {
  auto const half = std::size_t(g.width) / 2, vectors = 2 * std::size_t(g.heads);
  auto const turns = cpu.room(0, 4, 2 * half);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t i = 0; i < half; ++i) {
      double const angle = g.turn(std::size_t(rows[row].place), i);
      turns[i] = T(std::cos(angle));
      turns[half + i] = T(std::sin(angle));
    }
    for (std::size_t v = 0; v < vectors; ++v)
      turn_pairs(g, turns.data(), turns.data() + half, qkv.data() + row * 3 * g.channels() + v * 2 * half);
  }
}

/// One head of one row: its query, the keys and values of the places that it sees, and its result.
template <class T>
void attend_cached(score<T> const& by, T const* q, T const* keys, T const* values, std::size_t seen,
                   std::size_t width, T* scores, T* y) {
  T top = -std::numeric_limits<T>::infinity();
  for (std::size_t j = 0; j < seen; ++j) {
    T const* const key = keys + j * width;
    T const dot =
        sum_by_lanes<T>(width, [&]<class V>(std::size_t c) { return V(load<V>(q + c) * load<V>(key + c)); });
    scores[j] = by.of(dot);
    top = std::max(top, scores[j]);
  }
  T const sum = sum_by_lanes<T>(seen, [&]<class V>(std::size_t j) {
    V const p = exponential(V(load<V>(scores + j) - top));
    store<V>(scores + j, p);
    return p;
  });
  by_lanes<T>(width, [&]<class V>(std::size_t c) {
    V all{};
    for (std::size_t j = 0; j < seen; ++j) all += scores[j] * load<V>(values + j * width + c);
    store<V>(y + c, V(all / sum));
  });
}

/// Dropout factors of a query's keys, consecutive in the stream of a head. They are numbered by the head's
/// valid places, so that padding does not change what is drawn.
template <class T>
struct weight_factors {
  drawn_factors<T> drawn;
  std::size_t row;
  std::array<T, attention_block::keys> own;

  weight_factors(attention_mask const& m, attention_head<T> const& h)
      : drawn(m.random.child(h.unit), m.dropout), row(h.keys) {}

  T const* of(std::size_t query, std::size_t key, std::size_t n) {
    drawn(query * row + key, n, own.data());
    return own.data();
  }
};

template <class T>
void attend(basic_cpu<T>& cpu, int thread, attention_head<T> const& h, attention_mask const& m, T* y,
            T* kept) {
  using block = attention_block;
  std::size_t const width = h.width, apart = h.apart;
  weight_factors<T> factors(m, h);
  score<T> const by(h.g);
  auto const room = cpu.room(thread, 0, block::most + 2 * block::queries);
  T *const scores = room.data(), *const most = scores + block::most, *const sum = most + block::queries;
  h.each_block([&](std::size_t first, std::size_t n, std::size_t begin, std::size_t end) {
    std::fill_n(most, n, -std::numeric_limits<T>::infinity());
    std::fill_n(sum, n, T(0));
    for (std::size_t key = begin; key < end; key += block::keys) {
      std::size_t const keys = std::min(block::keys, end - key);
      multiply_here<T>(cpu, thread, n, keys, width, {h.q + first * h.stride, h.stride},
                       {h.k + key * h.key_stride, h.key_stride, true}, scores, keys);
      for (std::size_t i = 0; i < n; ++i) {
        T* const row = scores + i * keys;
        auto const [from, to] = h.seen(first + i, key, keys);
        std::size_t const seen = to - from;
        T* const own = row + from;
        T top = own[0];
        for (std::size_t j = 1; j < seen; ++j) top = own[j] > top ? own[j] : top;
        top = std::max(most[i], by.of(top));
        T const all = sum_by_lanes<T>(seen, [&]<class V>(std::size_t j) {
          V const p = exponential(V(by.of(load<V>(own + j)) - top));
          store<V>(own + j, p);
          return p;
        });
        std::fill(row, own, T(0));
        std::fill(own + seen, row + keys, T(0));
        if (m.dropout > 0) {
          T const* const factor = factors.of(first + i, key + from, seen);
          for (std::size_t j = 0; j < seen; ++j) own[j] *= factor[j];
        }
        if (key > begin) {
          T const less = std::exp(most[i] - top);
          sum[i] *= less;
          T* const to = y + (first + i) * apart;
          for (std::size_t c = 0; c < width; ++c) to[c] *= less;
        }
        most[i] = top;
        sum[i] += all;
      }
      multiply_here<T>(cpu, thread, n, width, keys, {scores, keys}, {h.v + key * h.key_stride, h.key_stride},
                       y + first * apart, apart, key > begin);
    }
    for (std::size_t i = 0; i < n; ++i) {
      T const less = 1 / sum[i];
      T* const to = y + (first + i) * apart;
      for (std::size_t c = 0; c < width; ++c) to[c] *= less;
      kept[first + i] = most[i] + std::log(sum[i]);
    }
  });
}

template <class T>
void attend_back(basic_cpu<T>& cpu, int thread, attention_head<T> const& h, attention_mask const& m,
                 T const* y, T const* dy, T const* kept) {
  using block = attention_block;
  std::size_t const width = h.width, apart = h.apart;
  weight_factors<T> factors(m, h);
  score<T> const by(h.g);
  auto const room = cpu.room(thread, 0, 2 * block::most + block::queries * width);
  T *const p = room.data(), *const ds = p + block::most, *const dq = ds + block::most;
  std::size_t const most = std::max(h.keys, std::size_t(h.g.places));  // one size for all heads
  auto const sums = cpu.room(thread, 1, 2 * most * width).first(2 * h.keys * width);
  std::ranges::fill(sums, T(0));
  T *const dk = sums.data(), *const dv = dk + h.keys * width;
  h.each_block([&](std::size_t first, std::size_t n, std::size_t begin, std::size_t end) {
    T const* const q = h.q + first * h.stride;
    T const* const slope = dy + first * apart;
    for (std::size_t key = begin; key < end; key += block::keys) {
      std::size_t const keys = std::min(block::keys, end - key);
      matrix<T> const k{h.k + key * h.key_stride, h.key_stride};
      multiply_here<T>(cpu, thread, n, keys, width, {q, h.stride}, {k.data, k.stride, true}, p, keys);
      multiply_here<T>(cpu, thread, n, keys, width, {slope, apart},
                       {h.v + key * h.key_stride, h.key_stride, true}, ds, keys);
      for (std::size_t i = 0; i < n; ++i) {
        T const *const out = y + (first + i) * apart, *const along = slope + i * apart;
        T const mean = sum_by_lanes<T>(
            width, [&]<class V>(std::size_t c) { return V(load<V>(out + c) * load<V>(along + c)); });
        T const top = kept[first + i];
        T *const row = p + i * keys, *const drow = ds + i * keys;
        auto const [from, to] = h.seen(first + i, key, keys);
        std::size_t const seen = to - from;
        T *const own = row + from, *const down = drow + from;
        if (m.dropout > 0) {
          T const* const factor = factors.of(first + i, key + from, seen);
          by_lanes<T>(seen, [&]<class V>(std::size_t j) {
            V const s = by.of(load<V>(own + j)), share = exponential(V(s - top)), f = load<V>(factor + j);
            store<V>(own + j, share * f);
            store<V>(down + j, share * (f * load<V>(down + j) - mean) * by.slope(s));
          });
        } else {
          by_lanes<T>(seen, [&]<class V>(std::size_t j) {
            V const s = by.of(load<V>(own + j)), share = exponential(V(s - top));
            store<V>(own + j, share);
            store<V>(down + j, share * (load<V>(down + j) - mean) * by.slope(s));
          });
        }
        for (T* const each : {row, drow}) {
          std::fill_n(each, from, T(0));
          std::fill(each + to, each + keys, T(0));
        }
      }
      multiply_here<T>(cpu, thread, keys, width, n, {p, keys, true}, {slope, apart}, dv + key * width, width,
                       true);
      multiply_here<T>(cpu, thread, keys, width, n, {ds, keys, true}, {q, h.stride}, dk + key * width, width,
                       true);
      multiply_here<T>(cpu, thread, n, width, keys, {ds, keys}, k, dq, width, key > begin);
    }
    // No other block uses these queries.
    for (std::size_t i = 0; i < n; ++i) std::copy_n(dq + i * width, width, h.dq + (first + i) * h.stride);
  });
  for (std::size_t i = 0; i < h.keys; ++i) {
    std::copy_n(dk + i * width, width, h.dk + i * h.key_stride);
    std::copy_n(dv + i * width, width, h.dv + i * h.key_stride);
  }
}

/// Zeros the rows of padding places: `parts` pieces of a head, `channels` apart.
template <class T>
void clear_padded(attention_head<T> const& h, kept_places const& places, std::size_t parts,
                  std::span<T> all) {
  if (places.all()) return;
  std::size_t const c = h.g.channels();
  places.each_padded(h.sample, [&](std::size_t place) {
    T* const row = all.data() + (h.sample * std::size_t(h.g.places) + place) * parts * c + h.head * h.width;
    for (std::size_t part = 0; part < parts; ++part) std::fill_n(row + part * c, h.width, T(0));
  });
}

}  // namespace detail

template <class T>
void basic_cpu<T>::attention_forward(attention_geometry const& g, int batch, std::span<T> qkv, std::span<T> y,
                                     std::span<T> kept) {
  masked_attention_forward(g, batch, {}, qkv, y, kept);
}

template <class T>
void basic_cpu<T>::cached_attention_forward(attention_geometry const& g, std::span<sequence_place const> rows,
                                            std::span<T> qkv, std::span<T> cache, std::span<T> y) {
  auto const heads = std::size_t(g.heads), width = std::size_t(g.width), places = std::size_t(g.places),
             group = std::size_t(g.group), c = g.channels();
  std::size_t const sequences = places == 0 ? 0 : cache.size() / (2 * c / group * places);
  for (sequence_place const& r : rows)
    if (r.place < 0 || std::size_t(r.place) >= places || r.sequence < 0 ||
        std::size_t(r.sequence) >= sequences)
      throw error("a place of a sequence is outside of its cache");
  if (g.rotary_base != 0) detail::turn_rows(*this, g, rows, qkv);
  auto const keys_of = [&](std::size_t row, std::size_t head) {
    return cache.data() + (std::size_t(rows[row].sequence) * heads + head) / group * 2 * places * width;
  };
  std::size_t const units = rows.size() * heads;
  for (std::size_t unit = 0; unit < units; ++unit) {
    std::size_t const row = unit / heads, head = unit % heads, place = std::size_t(rows[row].place);
    if (head % group != 0) continue;
    T const* const from = qkv.data() + row * 3 * c + head * width;
    T* const to = keys_of(row, head) + place * width;
    std::copy_n(from + c, width, to);
    std::copy_n(from + 2 * c, width, to + places * width);
  }
  std::size_t work = 0;
  auto const first_of = [&](std::size_t row) { return g.first_seen(std::size_t(rows[row].place)); };
  for (std::size_t row = 0; row < rows.size(); ++row)
    work += (std::size_t(rows[row].place) + 1 - first_of(row)) * c;
  this->share(units, this->parts(work, 32 * 1024), [&](std::size_t begin, std::size_t end, int t) {
    auto const scores = this->room(t, 0, places);
    for (std::size_t unit = begin; unit < end; ++unit) {
      std::size_t const row = unit / heads, head = unit % heads;
      T const* const keys = keys_of(row, head) + first_of(row) * width;
      detail::attend_cached(detail::score<T>(g), qkv.data() + row * 3 * c + head * width, keys,
                            keys + places * width, std::size_t(rows[row].place) + 1 - first_of(row), width,
                            scores.data(), y.data() + row * c + head * width);
    }
  });
}

template <class T>
void basic_cpu<T>::attention_backward(attention_geometry const& g, int batch, view<T> y, view<T> dy,
                                      view<T> kept, std::span<T> qkv) {
  masked_attention_backward(g, batch, {}, y, dy, kept, qkv);
}

template <class T>
void basic_cpu<T>::masked_attention_forward(attention_geometry const& g, int batch, attention_mask const& m,
                                            std::span<T> qkv, std::span<T> y, std::span<T> kept) {
  if (g.rotary_base != 0) detail::turn(*this, g, batch, false, qkv);
  auto const units = std::size_t(batch) * std::size_t(g.heads), places = std::size_t(g.places);
  this->share(units, this->parts(units, 1), [&](std::size_t begin, std::size_t end, int t) {
    for (std::size_t unit = begin; unit < end; ++unit) {
      detail::attention_head<T> h(g, m.places, unit, qkv);
      T* const sums = kept.data() + unit * places;
      detail::clear_padded(h, m.places, 1, y);
      if (h.order.empty()) {
        detail::attend(*this, t, h, m, h.rows(y), sums);
        continue;
      }
      h.gather(this->room(t, 2, 3 * places * h.width).data());
      T* const own = this->room(t, 3, places * h.width).data();
      detail::attend(*this, t, h, m, own, sums);
      for (std::size_t i = 0; i < h.places; ++i)
        std::copy_n(own + i * h.width, h.width, h.rows(y) + std::size_t(h.order[i]) * g.channels());
    }
  });
}

template <class T>
void basic_cpu<T>::masked_attention_backward(attention_geometry const& g, int batch, attention_mask const& m,
                                             view<T> y, view<T> dy, view<T> kept, std::span<T> qkv) {
  auto const units = std::size_t(batch) * std::size_t(g.heads), places = std::size_t(g.places);
  this->share(units, this->parts(units, 1), [&](std::size_t begin, std::size_t end, int t) {
    for (std::size_t unit = begin; unit < end; ++unit) {
      detail::attention_head<T> h(g, m.places, unit, qkv);
      T const* const sums = kept.data() + unit * places;
      if (h.order.empty()) {
        detail::attend_back(*this, t, h, m, h.rows(y), h.rows(dy), sums);
      } else {
        h.gather(this->room(t, 2, 3 * places * h.width).data());
        T *const own = this->room(t, 3, 2 * places * h.width).data(), *const slope = own + h.places * h.width;
        for (std::size_t i = 0; i < h.places; ++i) {
          std::size_t const from = std::size_t(h.order[i]) * g.channels();
          std::copy_n(h.rows(y) + from, h.width, own + i * h.width);
          std::copy_n(h.rows(dy) + from, h.width, slope + i * h.width);
        }
        detail::attend_back(*this, t, h, m, own, slope, sums);
        h.scatter();
      }
      detail::clear_padded(h, m.places, 3, qkv);
    }
  });
  if (g.rotary_base != 0) detail::turn(*this, g, batch, true, qkv);
}

template <class T>
void basic_cpu<T>::cross_attention_forward(cross_attention_geometry const& g, int batch,
                                           attention_mask const& m, view<T> queries, view<T> keys_values,
                                           std::span<T> y, std::span<T> kept) {
  auto const units = std::size_t(batch) * std::size_t(g.heads);
  this->share(units, this->parts(units, 1), [&](std::size_t begin, std::size_t end, int t) {
    for (std::size_t unit = begin; unit < end; ++unit) {
      detail::attention_head<T> const h(g, unit, queries, keys_values, {}, {});
      detail::attend(*this, t, h, m, h.rows(y), kept.data() + unit * h.places);
    }
  });
}

template <class T>
void basic_cpu<T>::cross_attention_backward(cross_attention_geometry const& g, int batch,
                                            attention_mask const& m, view<T> queries, view<T> keys_values,
                                            view<T> y, view<T> dy, view<T> kept, std::span<T> dqueries,
                                            std::span<T> dkeys_values) {
  auto const units = std::size_t(batch) * std::size_t(g.heads);
  this->share(units, this->parts(units, 1), [&](std::size_t begin, std::size_t end, int t) {
    for (std::size_t unit = begin; unit < end; ++unit) {
      detail::attention_head<T> const h(g, unit, queries, keys_values, dqueries, dkeys_values);
      detail::attend_back(*this, t, h, m, h.rows(y), h.rows(dy), kept.data() + unit * h.places);
    }
  });
}

#ifndef EDL_HEADER_ONLY
template void basic_cpu<float>::attention_forward(attention_geometry const&, int, std::span<float>,
                                                  std::span<float>, std::span<float>);
template void basic_cpu<double>::attention_forward(attention_geometry const&, int, std::span<double>,
                                                   std::span<double>, std::span<double>);
template void basic_cpu<float>::masked_attention_forward(attention_geometry const&, int,
                                                         attention_mask const&, std::span<float>,
                                                         std::span<float>, std::span<float>);
template void basic_cpu<double>::masked_attention_forward(attention_geometry const&, int,
                                                          attention_mask const&, std::span<double>,
                                                          std::span<double>, std::span<double>);
template void basic_cpu<float>::masked_attention_backward(attention_geometry const&, int,
                                                          attention_mask const&, view<float>, view<float>,
                                                          view<float>, std::span<float>);
template void basic_cpu<double>::masked_attention_backward(attention_geometry const&, int,
                                                           attention_mask const&, view<double>, view<double>,
                                                           view<double>, std::span<double>);
template void basic_cpu<float>::attention_backward(attention_geometry const&, int, view<float>, view<float>,
                                                   view<float>, std::span<float>);
template void basic_cpu<double>::attention_backward(attention_geometry const&, int, view<double>,
                                                    view<double>, view<double>, std::span<double>);
template void basic_cpu<float>::cached_attention_forward(attention_geometry const&,
                                                         std::span<sequence_place const>, std::span<float>,
                                                         std::span<float>, std::span<float>);
template void basic_cpu<double>::cached_attention_forward(attention_geometry const&,
                                                          std::span<sequence_place const>, std::span<double>,
                                                          std::span<double>, std::span<double>);
template void basic_cpu<float>::cross_attention_forward(cross_attention_geometry const&, int,
                                                        attention_mask const&, view<float>, view<float>,
                                                        std::span<float>, std::span<float>);
template void basic_cpu<double>::cross_attention_forward(cross_attention_geometry const&, int,
                                                         attention_mask const&, view<double>, view<double>,
                                                         std::span<double>, std::span<double>);
template void basic_cpu<float>::cross_attention_backward(cross_attention_geometry const&, int,
                                                         attention_mask const&, view<float>, view<float>,
                                                         view<float>, view<float>, view<float>,
                                                         std::span<float>, std::span<float>);
template void basic_cpu<double>::cross_attention_backward(cross_attention_geometry const&, int,
                                                          attention_mask const&, view<double>, view<double>,
                                                          view<double>, view<double>, view<double>,
                                                          std::span<double>, std::span<double>);
#endif

}  // namespace edl
