// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/kernels/tiles.cuh"

// A convolution is a product of two matrices for each of the kernel's places: pixels × channels of the image
// as that place sees it, and channels × filters. The gradient of an image is the same of the response's
// gradient, with the places in reverse. Where windows lie a stride apart, it is one such convolution for each
// phase: pixels of the image a stride apart see the same places of the kernel.
namespace edl::cuda_kernels {
namespace {

namespace wmma = nvcuda::wmma;

constexpr int side = tile_side, warps = 8;
constexpr int most_pixels = 512;  // that a block sees at a time

constexpr int most_places(int wide) { return wide == side ? 25 : 9; }
constexpr int tiles_of_warp(int wide) { return wide > 2 * side ? 2 : 3; }

/// What is computed: to = f(from ∗ kernel + bias), where `to` are pixels of `whole` from `first` on, `spread`
/// apart.
struct correlation {
  shape from, to, whole;
  extent kernel, stride, before;
  extent first = 0, spread = 1;
  int kernel_columns;  ///< in memory
  bool back = false;   ///< the gradient of an image
  extent phase = 0;    ///< of it

  explicit correlation(conv_geometry const& g)
      : from(g.in),
        to(g.out),
        whole(g.out),
        kernel(g.kernel),
        stride(g.stride),
        before(g.before),
        kernel_columns(g.kernel.width) {}

  correlation(conv_geometry const& g, extent phase)
      : from(g.out),
        whole(g.in),
        stride(1),
        spread(g.stride),
        kernel_columns(g.kernel.width),
        back(true),
        phase(phase) {
    // Pixel u of the image sees place a of the kernel where u + before − a = stride · (row of the response).
    auto const along = [](int in, int window, int step, int begin, int of, int& places, int& front,
                          int& pixels) {
      places = (std::max(window - of, 0) + step - 1) / step;
      int const least = (std::max(begin - of, 0) + step - 1) / step;
      front = step * least + of - begin;
      pixels = (std::max(in - front, 0) + step - 1) / step;
      return places - 1 - least;
    };
    before.height = along(g.in.height, g.kernel.height, g.stride.height, g.before.height, phase.height,
                          kernel.height, first.height, to.height);
    before.width = along(g.in.width, g.kernel.width, g.stride.width, g.before.width, phase.width,
                         kernel.width, first.width, to.width);
    to.channels = g.in.channels;
  }

  __host__ __device__ int places() const { return kernel.height * kernel.width; }
  /// Where a place's weights lie in memory.
  __device__ int in_memory(int place) const {
    int const a = place / kernel.width, b = place % kernel.width;
    if (!back) return place;
    return (phase.height + spread.height * (kernel.height - 1 - a)) * kernel_columns + phase.width +
           spread.width * (kernel.width - 1 - b);
  }
  /// Filters of a block.
  int wide() const {
    int const wanted = to.channels <= side ? side : to.channels <= 2 * side ? 2 * side : 4 * side;
    return places() <= most_places(wanted) ? wanted : side;
  }
  pixel_blocks blocks() const {
    extent const window(std::max(kernel.height, 1), std::max(kernel.width, 1));
    return {to, window, stride, warps * tiles_of_warp(wide()), most_pixels};
  }
};

/// What is read and written; `together`: 16 bytes at a time.
struct correlation_memory {
  void const* from;
  void const* weights;
  float const* bias = nullptr;
  void* to;
  bool half_weights;
  void const* more = nullptr;   ///< is added
  void const* above = nullptr;  ///< where this is not above 0, the result is 0
  float* moments = nullptr;     ///< [block][mean, squares][filter] of the result, and rows of each block
  bool weights_together = false, to_together = false;
};

/// What a block knows of the moments of its filters. A warp sums its pixels as they differ from its first.
template <int Wide>
struct block_moments {
  float pivot[warps * Wide], sum[warps * Wide], square[warps * Wide], rows[warps];
};

/// Adds the numbers of a tile, of which bit 2 · i of `there` says whether pixel i counts.
template <class T>
__device__ __forceinline__ void add_tile(float const* stage, unsigned there, float bias, bool begins,
                                         float* pivot, float* sum, float* square) {
  int const lane = int(threadIdx.x) % 32, column = lane % side, half = lane / side;
  auto const number = [&](int pixel) {
    float const z = stage[pixel * side + column] + bias;
    if constexpr (std::is_same_v<T, bfloat>) return from_bfloat16(to_bfloat16(z));
    return z;
  };
  float const from = begins ? number((31 - __clz(there & (~there + 1))) / 2) : pivot[column];
  float own = 0, squares = 0;
#pragma unroll 2  // all at once spill
  for (int i = 0; i < side / 2; ++i) {
    int const pixel = half * (side / 2) + i;
    if (!(there >> (2 * pixel) & 1)) continue;
    float const off = number(pixel) - from;
    own += off;
    squares = fmaf(off, off, squares);
  }
  own += __shfl_xor_sync(0xffff'ffffu, own, side);
  squares += __shfl_xor_sync(0xffff'ffffu, squares, side);
  if (half != 0) return;
  if (begins) pivot[column] = from;
  sum[column] = begins ? own : sum[column] + own;
  square[column] = begins ? squares : square[column] + squares;
}

/// A block's moments, of what its warps have; thread i has those of filter i.
template <int Wide>
__device__ __forceinline__ void keep_moments(block_moments<Wide> const& of, float* to, int first_filter,
                                             int filters) {
  float rows = 0, mean = 0, squares = 0;
  int const filter = int(threadIdx.x);
  if (filter < Wide)
    for (int w = 0; w < warps; ++w) {
      float const n = of.rows[w];
      if (n == 0) continue;
      float const off = of.sum[w * Wide + filter] / n, share = n / (rows + n),
                  apart = of.pivot[w * Wide + filter] + off - mean;
      squares +=
          of.square[w * Wide + filter] - of.sum[w * Wide + filter] * off + apart * apart * (rows * share);
      mean += apart * share;
      rows += n;
    }
  float* const own = to + std::size_t(blockIdx.x) * 2 * std::size_t(filters) + first_filter + filter;
  if (filter < Wide && first_filter + filter < filters) {
    own[0] = mean;
    own[filters] = squares;
  }
  if (filter == 0 && first_filter == 0)
    to[std::size_t(gridDim.x) * 2 * std::size_t(filters) + blockIdx.x] = rows;
}

/// Weights {place, in, out} that lie together along `out`.
template <class T>
__device__ __forceinline__ uint4 weights_from(correlation_memory const& m, std::size_t first, int left) {
  if constexpr (std::is_same_v<T, bfloat>)
    if (!m.half_weights) {
      array<bfloat, wide<bfloat>> v{};
      for (int i = 0; i < wide<bfloat> && i < left; ++i)
        v.lane[i] = to_bfloat16(static_cast<float const*>(m.weights)[first + std::size_t(i)]);
      return std::bit_cast<uint4>(v);
    }
  return neighbours(static_cast<T const*>(m.weights) + first, left, m.weights_together);
}

/// Tiles of channels × filters, for each place those of a block's filters.
template <int Wide, class T>
__device__ __forceinline__ void take_weights(correlation const& c, correlation_memory const& m,
                                             int first_channel, int first_filter, T* tiles) {
  constexpr int depth = tile_numbers<T>::depth, lanes = wide<T>, tile = depth * side;
  // {place, in, out}, of which `out` lies together: filters, or the channels of what goes back.
  int const outer = c.back ? Wide : depth, packs = (c.back ? depth : Wide) / lanes;
  int const outs = c.back ? c.from.channels : c.to.channels, ins = c.back ? c.to.channels : c.from.channels;
  int const first_in = c.back ? first_filter : first_channel,
            first_out = c.back ? first_channel : first_filter;
  for (int i = int(threadIdx.x); i < c.places() * outer * packs; i += warps * 32) {
    int const row = i / packs % outer, column = i % packs * lanes, place = i / packs / outer;
    int const in = first_in + row, out = first_out + column;
    auto const there = std::size_t(c.in_memory(place));
    uint4 const v =
        in < ins && out < outs
            ? weights_from<T>(
                  m, (there * std::size_t(ins) + std::size_t(in)) * std::size_t(outs) + std::size_t(out),
                  outs - out)
            : make_uint4(0, 0, 0, 0);
    T* const to = tiles + std::size_t(place) * depth * Wide;
    if (c.back) {
      auto const each = std::bit_cast<array<T, lanes>>(v);
#pragma unroll
      for (int k = 0; k < lanes; ++k) to[row / side * tile + (column + k) * side + row % side] = each.lane[k];
    } else {
      *reinterpret_cast<uint4*>(to + column / side * tile + row * side + column % side) = v;
    }
  }
}

/// What follows a convolution besides its bias: an activation or nothing, moments, or what is added.
enum class after { activation, moments, addition };

/// v += more, and 0 where `above` is not above 0.
template <int N, class T>
__device__ __forceinline__ void add_more(correlation_memory const& m, std::size_t place, int left,
                                         pack<N>& v) {
  auto const read = [&](void const* from) {
    T const* const first = static_cast<T const*>(from) + place;
    if (m.to_together) return load<N>(first);
    pack<N> some{};
    for (int i = 0; i < N && i < left; ++i) some.lane[i] = load_one(first + i);
    return some;
  };
  pack<N> const more = read(m.more);
#pragma unroll
  for (int i = 0; i < N; ++i) v.lane[i] += more.lane[i];
  if (!m.above) return;
  pack<N> const above = read(m.above);
#pragma unroll
  for (int i = 0; i < N; ++i) v.lane[i] = above.lane[i] > 0 ? v.lane[i] : 0;
}

// Of moments two blocks of a processor are all that there are: registers for more would spill.
template <class T, int Wide, after After>
__global__ void __launch_bounds__(warps * 32, After == after::moments ? 2 : 0)
    correlate_kernel(correlation c, pixel_blocks b, int batch, bool relu, pixels_in_memory<T> from,
                     correlation_memory m) {
  using factor = typename tile_numbers<T>::factor;
  constexpr int depth = tile_numbers<T>::depth, across = Wide / side, most = tiles_of_warp(Wide),
                lanes = wide<T>;
  constexpr std::size_t image_size = std::size_t(most_pixels + pixels_beyond) * depth;
  __align__(32) __shared__ T image[image_size];
  __align__(32) __shared__ T weights[std::size_t(most_places(Wide)) * depth * Wide];
  static_assert(sizeof(image) >= warps * side * side * sizeof(float));
  __shared__ std::conditional_t<After == after::moments, block_moments<Wide>, char> moments;
  int const warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  int const first_filter = int(blockIdx.y) * Wide, places = c.places();
  int const chunks = places > 0 ? (c.from.channels + depth - 1) / depth : 0, all_tiles = b.samples * b.tiles;
  int const items = (batch + b.samples - 1) / b.samples * b.row_blocks;
  bool first = true;
  if constexpr (After == after::moments)
    if (lane == 0) moments.rows[warp] = 0;
  for (int item = int(blockIdx.x); item < items; item += int(gridDim.x)) {
    int const first_row = item % b.row_blocks * b.rows, first_sample = item / b.row_blocks * b.samples;
    wmma::fragment<wmma::accumulator, side, side, depth, float> sum[most][across];
#pragma unroll
    for (int t = 0; t < most; ++t)
#pragma unroll
      for (int j = 0; j < across; ++j) wmma::fill_fragment(sum[t][j], 0.0f);

    for (int chunk = 0; chunk < chunks; ++chunk) {
      __syncthreads();  // what was there has been read
      if (first || chunks > 1) take_weights<Wide>(c, m, chunk * depth, first_filter, weights);
      first = false;
      take_image<depth, depth, warps>(b, from, c.stride, c.before, first_row, first_sample, batch,
                                      chunk * depth, image, image_size);
      __syncthreads();
      for (int place = 0; place < places; ++place) {
        int const shift = b.shift(place / c.kernel.width, place % c.kernel.width, c.stride.height);
        wmma::fragment<wmma::matrix_a, side, side, depth, factor, wmma::row_major> pixels[most];
#pragma unroll
        for (int t = 0; t < most; ++t) {
          int const tile = warp + t * warps;
          if (tile >= all_tiles) break;
          load_tile(pixels[t], image + (b.seen(tile, c.stride.width) + shift) * depth,
                    c.stride.width * depth);
        }
#pragma unroll
        for (int j = 0; j < across; ++j) {
          wmma::fragment<wmma::matrix_b, side, side, depth, factor, wmma::row_major> filters;
          load_tile(filters, weights + (place * across + j) * depth * side, side);
#pragma unroll
          for (int t = 0; t < most; ++t) {
            if (warp + t * warps >= all_tiles) break;
            wmma::mma_sync(sum[t][j], pixels[t], filters, sum[t][j]);
          }
        }
      }
    }

    __syncthreads();
    float* const stage = reinterpret_cast<float*>(image) + warp * side * side;
#pragma unroll
    for (int t = 0; t < most; ++t) {
      int const tile = warp + t * warps;
      if (tile >= all_tiles) break;
      int const sample = first_sample + tile / b.tiles, pixel = tile % b.tiles * side + lane / 2;
      int const row = pixel / b.row, column = pixel % b.row;
      bool const there =
          sample < batch && row < b.rows && first_row + row < c.to.height && column < c.to.width;
      unsigned const all_there = After == after::moments ? __ballot_sync(0xffff'ffffu, there) : 0;
#pragma unroll
      for (int j = 0; j < across; ++j) {
        wmma::store_matrix_sync(stage, sum[t][j], side, wmma::mem_row_major);
        __syncwarp();
        int const filter = first_filter + j * side + lane % 2 * 8, left = c.to.channels - filter;
        std::size_t const place =
            at(c.whole, std::size_t(sample), c.first.height + c.spread.height * (first_row + row),
               c.first.width + c.spread.width * column, filter);
        T* const to = static_cast<T*>(m.to) + place;
#pragma unroll
        for (int k = 0; k < 8; k += lanes) {
          if (!there || k >= left) break;
          pack<lanes> v;
#pragma unroll
          for (int i = 0; i < lanes; ++i) {
            float const z =
                stage[lane * 8 + k + i] +
                (After != after::addition && m.bias && k + i < left ? m.bias[filter + k + i] : 0.0f);
            v.lane[i] = After == after::activation && relu && z < 0 ? 0.0f : z;  // a NaN stays
          }
          if constexpr (After == after::addition) add_more<lanes, T>(m, place + std::size_t(k), left - k, v);
          if (m.to_together)
            store<lanes>(to + k, v);
          else
            for (int i = 0; i < lanes && k + i < left; ++i) store_one(to + k + i, v.lane[i]);
        }
        if constexpr (After == after::moments) {
          int const first = first_filter + j * side, own = warp * Wide + j * side;
          if (all_there != 0)
            add_tile<T>(stage, all_there,
                        m.bias && first + lane % side < c.to.channels ? m.bias[first + lane % side] : 0.0f,
                        moments.rows[warp] == 0, moments.pivot + own, moments.sum + own,
                        moments.square + own);
        }
        __syncwarp();
      }
      if constexpr (After == after::moments)
        if (lane == 0) moments.rows[warp] += float(__popc(all_there) / 2);
    }
  }
  if constexpr (After == after::moments) {
    __syncthreads();
    keep_moments<Wide>(moments, m.moments, first_filter, c.to.channels);
  }
}

/// More would be more to join than the second half of a processor's threads gains.
std::size_t blocks_of_moments(queue const& q) { return std::size_t(std::max(q.processors, 1)) * 2; }

bool takes(correlation const& c) {
  if (c.to.size() == 0) return true;
  return c.kernel.width <= widest_kernel && c.stride.width <= most_tile_stride &&
         c.places() <= most_places(c.wide()) && c.blocks().rows > 0;
}

template <after After>
void correlate(queue const& q, correlation const& c, int batch, activation f, correlation_memory m) {
  if (std::size_t(batch) * c.to.size() == 0) return;
  pixel_blocks b = c.blocks();
  b.share(batch, q.processors);
  auto const with = [&]<class T, int Wide> {
    m.weights_together = together<T>(m.weights, c.back ? c.from.channels : c.to.channels);
    m.to_together = together<T>(m.to, c.to.channels) && aligned(16, m.more, m.above);
    std::size_t const most = After == after::moments ? blocks_of_moments(q) : std::size_t(q.processors) * 8;
    dim3 const grid(unsigned(std::min(b.items(batch), most)),
                    unsigned(ceil_of(std::size_t(c.to.channels), std::size_t(Wide))));
    launch(q, "convolutions by tensor cores", correlate_kernel<T, Wide, After>, grid, warps * 32, c, b, batch,
           f == activation::relu, pixels_in_memory<T>(m.from, c.from), m);
  };
  by_type(q.half, [&]<class T>(T) {
    int const wide = c.wide();
    if (wide == side)
      with.template operator()<T, side>();
    else if (wide == 2 * side)
      with.template operator()<T, 2 * side>();
    else
      with.template operator()<T, 4 * side>();
  });
}

/// work(correlation) for each phase of an image's gradient.
template <class Work>
void for_each_phase(conv_geometry const& g, Work const& work) {
  for (int i = 0; i < g.stride.height; ++i)
    for (int j = 0; j < g.stride.width; ++j) work(correlation(g, {i, j}));
}

}  // namespace

bool tensor_conv2d_takes(conv_geometry const& g, bool data) {
  if (g.groups != 1 || g.stride.height > most_tile_stride || g.stride.width > most_tile_stride) return false;
  if (!data) return takes(correlation(g));
  bool all = true;
  for_each_phase(g, [&](correlation const& c) { all = all && takes(c); });
  return all;
}

void tensor_conv2d_forward(queue const& q, conv_geometry const& g, int batch, activation f, void const* x,
                           void const* kernel, bool half_kernel, float const* bias, void* y) {
  correlate<after::activation>(
      q, correlation(g), batch, f,
      {.from = x, .weights = kernel, .bias = bias, .to = y, .half_weights = half_kernel});
}

moments_in_parts tensor_conv2d_moments(queue const& q, conv_geometry const& g, int batch, void const* x,
                                       void const* kernel, bool half_kernel, float const* bias, void* y,
                                       float* moments) {
  correlation const c(g);
  if (std::size_t(batch) * c.to.size() == 0) return {};
  correlate<after::moments>(
      q, c, batch, activation::none,
      {.from = x, .weights = kernel, .bias = bias, .to = y, .half_weights = half_kernel, .moments = moments});
  pixel_blocks b = c.blocks();
  b.share(batch, q.processors);
  return {moments, unsigned(std::min(b.items(batch), blocks_of_moments(q))), true};
}

void tensor_conv2d_data(queue const& q, conv_geometry const& g, int batch, void const* kernel,
                        bool half_kernel, void const* dy, void* dx, void const* more, void const* above) {
  for_each_phase(g, [&](correlation const& c) {
    correlation_memory const m{
        .from = dy, .weights = kernel, .to = dx, .half_weights = half_kernel, .more = more, .above = above};
    if (more)
      correlate<after::addition>(q, c, batch, activation::none, m);
    else
      correlate<after::activation>(q, c, batch, activation::none, m);
  });
}

}  // namespace edl::cuda_kernels
