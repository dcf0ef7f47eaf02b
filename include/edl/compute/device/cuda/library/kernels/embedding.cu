// SPDX-License-Identifier: Apache-2.0
// Rows of a table that ids name. The gradient is a sum per id, without atomics, so that it is the same bits
// in every run: positions are sorted by their ids (radix, 8 bits a pass, equal ids in their order), and runs
// of equal ids are summed in parts of 32 positions, so that an id that stands everywhere is no more work than
// others. For n ids it reads or writes the table once (its zeros), dy once, its sums at most once, and 20
// bytes per id and pass, of which a vocabulary below 2^16 needs two: nothing grows faster than n.
#include "edl/compute/device/cuda/library/check.hpp"
#include "edl/compute/device/cuda/library/kernels/kernel.cuh"
#include "edl/compute/device/cuda/library/kernels/row_groups.cuh"

namespace edl::cuda_kernels {
namespace {

constexpr unsigned id_threads = 256, all_lanes = 0xffff'ffffu;

template <class T>
struct named_rows {
  template <int N>
  using inputs = pack<N>;

  embedding_geometry g;
  float const* ids;
  float const* table;
  T* y;

  template <int N>
  __device__ __forceinline__ inputs<N> load(std::size_t i) const {
    auto const width = std::size_t(g.width);
    float const id = ids[i / width];
    if (g.has(id)) return cuda_kernels::load<N>(table + std::size_t(id) * width + i % width);
    inputs<N> none;
#pragma unroll
    for (int k = 0; k < N; ++k) none.lane[k] = NAN;
    return none;
  }
  template <int N>
  __device__ __forceinline__ void finish(std::size_t i, inputs<N> const& row) const {
    store<N>(y + i, row);
  }
};

// ---- Positions in the order of their ids ----

constexpr unsigned digit_bits = 8, digits = 1u << digit_bits, warps = id_threads / 32;

/// Ids and where they stood. What is none is one above the greatest.
struct places {
  unsigned* ids;
  unsigned* positions;
};

/// A warp has a tile of neighbours; `tiles` of them are all.
struct tiling {
  unsigned n, tile, tiles;
};

tiling tile_of_ids(std::size_t n) {
  constexpr std::size_t most = 512, least = 128;  // tiles, and ids of one
  if (n > 0x7fff'ffff) throw edl::error("cuda: more than 2^31 ids in one batch; take a smaller one");
  std::size_t const tile = std::max(least, ceil_of(ceil_of(n, most), 32) * 32);
  return {unsigned(n), unsigned(tile), unsigned(ceil_of(n, tile))};
}

__global__ void __launch_bounds__(id_threads)
    read_ids(embedding_geometry const g, unsigned n, float const* __restrict__ from, places const to) {
  unsigned const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float const id = from[i];
  to.ids[i] = g.has(id) ? unsigned(id) : unsigned(g.vocabulary);
  to.positions[i] = i;
}

/// Calls each(i, digit, its equals before it in the warp, all its equals in the warp, whether it is one).
/// That is for the warp's tile, 32 at a time and in their order; all lanes call it.
template <class Each>
__device__ __forceinline__ void for_tile(tiling const& t, unsigned tile, unsigned shift,
                                         unsigned const* __restrict__ ids, Each&& each) {
  unsigned const lane = threadIdx.x % 32;
  unsigned const first = tile * t.tile, end = t.n - first < t.tile ? t.n : first + t.tile;
#pragma unroll 4
  for (unsigned base = first; base < end; base += 32) {
    unsigned const i = base + lane;
    bool const real = i < end;
    unsigned const digit = real ? ids[i] >> shift & (digits - 1) : digits;
    unsigned const equals = __match_any_sync(all_lanes, digit);
    each(i, digit, unsigned(__popc(equals & ((1u << lane) - 1))), unsigned(__popc(equals)), real);
  }
}

/// counts[digit][tile]
__global__ void __launch_bounds__(id_threads)
    count_digits(tiling const t, unsigned shift, unsigned const* __restrict__ ids,
                 unsigned* __restrict__ counts) {
  __shared__ unsigned shared[warps][digits];
  unsigned const lane = threadIdx.x % 32, tile = blockIdx.x * warps + threadIdx.x / 32;
  if (tile >= t.tiles) return;  // and so does all of the warp
  unsigned* const count = shared[threadIdx.x / 32];
  for (unsigned d = lane; d < digits; d += 32) count[d] = 0;
  __syncwarp();
  for_tile(t, tile, shift, ids, [&](unsigned, unsigned digit, unsigned before, unsigned equals, bool real) {
    if (real && before == 0) count[digit] += equals;
    __syncwarp();
  });
  for (unsigned d = lane; d < digits; d += 32) counts[d * t.tiles + tile] = count[d];
}

/// The sum over the lanes up to this one.
__device__ __forceinline__ unsigned sum_up(unsigned value) {
  unsigned const lane = threadIdx.x % 32;
  for (unsigned by = 1; by < 32; by *= 2) {
    unsigned const before = __shfl_up_sync(all_lanes, value, by);
    if (lane >= by) value += before;
  }
  return value;
}

/// counts[digit][tile] becomes how many stand in the tiles before; totals[digit] all of them. A warp is of
/// one digit.
__global__ void __launch_bounds__(id_threads)
    add_counts(unsigned tiles, unsigned* __restrict__ counts, unsigned* __restrict__ totals) {
  unsigned const lane = threadIdx.x % 32, digit = blockIdx.x * warps + threadIdx.x / 32;
  unsigned* const of = counts + std::size_t(digit) * tiles;
  unsigned before = 0;
#pragma unroll 4
  for (unsigned base = 0; base < tiles; base += 32) {
    unsigned const own = base + lane < tiles ? of[base + lane] : 0, sum = sum_up(own);
    if (base + lane < tiles) of[base + lane] = before + sum - own;
    before += __shfl_sync(all_lanes, sum, 31);
  }
  if (lane == 0) totals[digit] = before;
}

__global__ void __launch_bounds__(id_threads)
    sort_by_digit(tiling const t, unsigned shift, places const from, unsigned const* __restrict__ counts,
                  unsigned const* __restrict__ totals, places const to) {
  __shared__ unsigned shared[warps][digits];
  constexpr unsigned of_lane = digits / 32;
  unsigned const lane = threadIdx.x % 32, tile = blockIdx.x * warps + threadIdx.x / 32;
  if (tile >= t.tiles) return;
  unsigned* const next = shared[threadIdx.x / 32];  // where the tile's next of each digit goes
  unsigned total[of_lane], sum = 0;
#pragma unroll
  for (unsigned k = 0; k < of_lane; ++k) sum += total[k] = totals[lane * of_lane + k];
  unsigned first = sum_up(sum) - sum;
#pragma unroll
  for (unsigned k = 0; k < of_lane; ++k) {
    unsigned const d = lane * of_lane + k;
    next[d] = first + counts[d * t.tiles + tile];
    first += total[k];
  }
  __syncwarp();
  for_tile(t, tile, shift, from.ids,
           [&](unsigned i, unsigned digit, unsigned before, unsigned equals, bool real) {
             unsigned const at = real ? next[digit] + before : 0;
             __syncwarp();
             if (real && before == 0) next[digit] += equals;
             __syncwarp();
             if (!real) return;
             to.ids[at] = from.ids[i];
             to.positions[at] = from.positions[i];
           });
}

// ---- Sums of runs of equal ids ----

constexpr unsigned part = 32, at_once = 8;  // positions of a part, and loads of a thread that are under way

/// Sorted positions, in parts, and the sums of runs that go beyond one. `head` is that of a part's first run
/// if it has begun before. `tail` is that of its last if it begins there and goes on behind. Both are rows of
/// `width`.
struct runs {
  unsigned n, parts, packs, width, vocabulary;
  bool adds;  // to the sums
  unsigned const* ids;
  unsigned const* positions;
  float *head, *tail, *sums;

  __device__ unsigned end(unsigned p) const { return n - p * part < part ? n : (p + 1) * part; }
  __device__ bool began_before(unsigned p, unsigned id) const { return p > 0 && ids[p * part - 1] == id; }
  __device__ bool goes_on(unsigned p, unsigned id) const { return end(p) < n && ids[end(p)] == id; }
  __device__ std::size_t row(unsigned r) const { return std::size_t(r) * width; }
};

/// A thread has N neighbours of the rows of one part.
template <class T, int N>
__global__ void __launch_bounds__(id_threads) sum_parts(runs const r, T const* __restrict__ dy) {
  std::size_t const thread = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  auto const p = unsigned(thread / r.packs);
  if (p >= r.parts) return;
  unsigned const k = unsigned(thread % r.packs) * N, end = r.end(p);
  unsigned id = r.ids[p * part];
  pack<N> sum{};
  auto const give = [&] {
    if (id == r.vocabulary) return;
    float* const to = r.began_before(p, id) ? r.head + r.row(p)
                      : r.goes_on(p, id)    ? r.tail + r.row(p)
                                            : r.sums + r.row(id);
    if (r.adds && to == r.sums + r.row(id)) {
      pack<N> const before = load<N>(to + k);
#pragma unroll
      for (int e = 0; e < N; ++e) sum.lane[e] += before.lane[e];
    }
    store<N>(to + k, sum);
  };
  for (unsigned first = p * part; first < end; first += at_once) {
    array<T, N> v[at_once];
#pragma unroll
    for (unsigned j = 0; j < at_once; ++j)
      v[j] = fetch<N>(dy + r.row(r.positions[first + j < end ? first + j : end - 1]) + k);
#pragma unroll
    for (unsigned j = 0; j < at_once; ++j) {
      if (first + j >= end) break;
      if (unsigned const next = r.ids[first + j]; next != id) {
        give();
        id = next;
        sum = {};
      }
      pack<N> const more = widen(v[j]);
#pragma unroll
      for (int e = 0; e < N; ++e) sum.lane[e] += more.lane[e];
    }
  }
  give();
}

/// The sums of runs that go beyond a part, by the threads of the part where they begin.
template <int N>
__global__ void __launch_bounds__(id_threads) join_parts(runs const r) {
  std::size_t const thread = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  auto const p = unsigned(thread / r.packs);
  if (p >= r.parts) return;
  unsigned const k = unsigned(thread % r.packs) * N, id = r.ids[r.end(p) - 1];
  if (id == r.vocabulary || !r.goes_on(p, id) || r.began_before(p, id)) return;
  pack<N> sum = load<N>(r.tail + r.row(p) + k);
  bool on = true;
  for (unsigned first = p + 1; on; first += at_once) {
    bool there[at_once];
    pack<N> more[at_once]{};
#pragma unroll
    for (unsigned j = 0; j < at_once; ++j) there[j] = first + j < r.parts && r.ids[(first + j) * part] == id;
#pragma unroll
    for (unsigned j = 0; j < at_once; ++j)
      if (there[j]) more[j] = load<N>(r.head + r.row(first + j) + k);
#pragma unroll
    for (unsigned j = 0; j < at_once; ++j)
      if (there[j])
#pragma unroll
        for (int e = 0; e < N; ++e) sum.lane[e] += more[j].lane[e];
    on = there[at_once - 1];
  }
  if (r.adds) {
    pack<N> const before = load<N>(r.sums + r.row(id) + k);
#pragma unroll
    for (int e = 0; e < N; ++e) sum.lane[e] += before.lane[e];
  }
  store<N>(r.sums + r.row(id) + k, sum);
}

unsigned blocks_for(std::size_t threads) { return unsigned(ceil_of(threads, id_threads)); }

/// In one of two places.
places sort_ids(queue const& q, embedding_geometry const& g, float const* ids, tiling const& t, places a,
                places b, unsigned* counts) {
  constexpr char what[] = "embedding's gradient";
  unsigned* const totals = counts + std::size_t(digits) * t.tiles;
  launch(q, what, read_ids, dim3(blocks_for(t.n)), id_threads, g, t.n, ids, a);
  dim3 const blocks(unsigned(ceil_of(t.tiles, warps)));
  for (unsigned shift = 0; (unsigned(g.vocabulary) >> shift) > 0; shift += digit_bits) {
    launch(q, what, count_digits, blocks, id_threads, t, shift, a.ids, counts);
    launch(q, what, add_counts, dim3(digits / warps), id_threads, t.tiles, counts, totals);
    launch(q, what, sort_by_digit, blocks, id_threads, t, shift, a, counts, totals, b);
    std::swap(a, b);
  }
  return a;
}

template <class T, int N>
void sum_runs(queue const& q, runs const& r, T const* dy) {
  std::size_t const threads = std::size_t(r.parts) * r.packs;
  launch(q, "embedding's gradient", sum_parts<T, N>, dim3(blocks_for(threads)), id_threads, r, dy);
  if (r.parts > 1) launch(q, "embedding's gradient", join_parts<N>, dim3(blocks_for(threads)), id_threads, r);
}

// ---- Rows of tables that are not here ----

/// A group of threads has a result.
template <class T>
__global__ void __launch_bounds__(id_threads)
    add_rows_kernel(row_sums const of, unsigned width, T const* __restrict__ x, float* __restrict__ to) {
  row_group const g(width);
  for (std::size_t i = g.first_row() + g.index; i < of.results; i += g.stride()) {
    unsigned const begin = of.first[i], end = of.first[i + 1];
    for (std::size_t k = g.lane; k < of.width; k += width) {
      float sum = 0;
#pragma unroll 4
      for (unsigned t = begin; t < end; ++t) sum = fmaf(of.weights[t], load_one(x + of.from[t] + k), sum);
      to[of.at[i] + k] = sum;
    }
  }
}

}  // namespace

void embedding_forward(queue const& q, embedding_geometry const& g, std::size_t n, float const* ids,
                       float const* table, void* y) {
  auto const width = std::size_t(g.width);
  by_type(q.half, [&]<class T>(T) {
    auto* const to = static_cast<T*>(y);
    bool const together = width % 4 == 0 && aligned(16, table) && aligned(4 * sizeof(T), to);
    for_each_element<4>(q, "embedding", n * width, together, named_rows<T>{g, ids, table, to});
  });
}

std::size_t embedding_scratch(embedding_geometry const& g, std::size_t n) {
  std::size_t const parts = ceil_of(n, part);
  return 2 * parts * std::size_t(g.width) + 4 * n + digits * (tile_of_ids(n).tiles + std::size_t(1));
}

void embedding_backward(queue const& q, embedding_geometry const& g, std::size_t n, float const* ids,
                        void const* dy, void* dx, float* dtable, float* scratch) {
  auto const width = std::size_t(g.width), size = std::size_t(g.vocabulary) * width;
  auto const zero = [&](void* what, std::size_t bytes) {
    cuda_library::check(cudaMemsetAsync(what, 0, bytes, q.stream), "zeroing gradients");
  };
  if (dx) zero(dx, n * (q.half ? sizeof(bfloat) : sizeof(float)));
  if (!g.adds_gradient) zero(dtable, size * sizeof(float));
  if (n == 0) return;
  tiling const t = tile_of_ids(n);
  std::size_t const parts = ceil_of(n, part);
  float *const head = scratch, *const tail = head + parts * width;
  auto* const lists = reinterpret_cast<unsigned*>(tail + parts * width);
  places const sorted =
      sort_ids(q, g, ids, t, {lists, lists + n}, {lists + 2 * n, lists + 3 * n}, lists + 4 * n);
  by_type(q.half, [&]<class T>(T) {
    auto const* const from = static_cast<T const*>(dy);
    bool const together = width % 4 == 0 && aligned(16, head, dtable) && aligned(4 * sizeof(T), from);
    runs const r{t.n,
                 unsigned(parts),
                 unsigned(together ? width / 4 : width),
                 unsigned(width),
                 unsigned(g.vocabulary),
                 g.adds_gradient,
                 sorted.ids,
                 sorted.positions,
                 head,
                 tail,
                 dtable};
    if (together)
      sum_runs<T, 4>(q, r, from);
    else
      sum_runs<T, 1>(q, r, from);
  });
}

void add_rows(queue const& q, row_sums const& of, void const* x, float* to) {
  if (of.results == 0) return;
  unsigned const width = row_width(of.width);
  std::size_t const blocks = std::min(ceil_of(of.results, id_threads / width), std::size_t(q.processors) * 8);
  by_type(q.half, [&]<class T>(T) {
    launch(q, "add_rows", add_rows_kernel<T>, dim3(unsigned(blocks)), id_threads, of, width,
           static_cast<T const*>(x), to);
  });
}

}  // namespace edl::cuda_kernels
