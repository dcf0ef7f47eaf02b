// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/cpu/onednn/onednn_conv2d.hpp"
#include "edl/core/inline.hpp"

#ifdef EDL_ONEDNN

#include <algorithm>
#include <optional>

#include "edl/compute/device/cpu/onednn/onednn_work.hpp"
#include "edl/compute/device/cpu/rows.hpp"

namespace edl::detail {

EDL_INLINE conv_way onednn_conv2d_rule(conv_geometry const& g, int batch, int threads) {
  // Winograd's from 32 channels on, and by channels where a thread's share of the batch has so few tiles that
  // to transform the weights is most of the work.
  if (!winograd_fits(g) || g.in.channels < 32 || g.out.channels < 32 || g.positions() < 16)
    return conv_way::direct;
  int const tiles = (batch + threads - 1) / threads * ((g.out.height + 3) / 4) * ((g.out.width + 3) / 4);
  return tiles < std::min(g.in.channels, g.out.channels) && channels_of_piece(g.in.channels, threads) &&
                 channels_of_piece(g.out.channels, threads)
             ? conv_way::winograd_by_channels
             : conv_way::winograd;
}

/// Of a thread's rooms: what a kernel works in, kernels or their gradients, samples in and out, one piece's
/// gradients.
enum conv_room : std::size_t { scratch_room, weights_room, x_room, y_room, piece_room };

/// Where the samples from number `sample` on begin, on either side of a convolution.
inline std::size_t x_from(conv_geometry const& g, std::size_t sample) {
  return scalars_of(sample * g.in.size(), g.narrow.in);
}
inline std::size_t y_from(conv_geometry const& g, std::size_t sample) {
  return scalars_of(sample * g.out.size(), g.narrow.out);
}

EDL_INLINE bool onednn_conv2d_forward(basic_cpu<float>& cpu, conv_geometry const& g, int batch, activation f,
                                      view<float> x, view<float> kernel, view<float> bias, std::span<float> y,
                                      conv_way way) {
  conv_work work(cpu, g, conv_pass::forward, !bias.empty(), f, batch, way);
  if (!work) return false;
  work.lay_out(cpu, kernel);
  cpu.share(std::size_t(work.pieces), work.parts, [&](std::size_t first, std::size_t last, int t) {
    for (std::size_t i = first; i < last; ++i) {
      auto const [k, sample, channel] = work.at(i);
      float const* const in = x.data() + x_from(g, sample);
      float* const out = y.data() + y_from(g, sample) + channel;
      float *const its_in = k.x_side->place(in, cpu.room(t, x_room, k.x_side->room())),
                   *const its_out = k.y_side->place(out, cpu.room(t, y_room, k.y_side->room()));
      if (i == first || !work.by_channels) k.x_side->bring(t, in, its_in);
      float* const weights = work.by_channels ? k.laid_out(t, kernel.data() + channel,
                                                           cpu.room(t, weights_room, k.packed_size).data())
                                              : work.weights_of(k);
      k.run(t, its_in, weights, bias.empty() ? nullptr : bias.data() + channel, its_out,
            cpu.room(t, scratch_room, k.scratch_size));
      k.y_side->send(t, its_out, out);
    }
  });
  return true;
}

EDL_INLINE bool onednn_conv2d_backward(basic_cpu<float>& cpu, conv_geometry const& g, int batch,
                                       view<float> x, view<float> kernel, view<float> dy, std::span<float> dx,
                                       std::span<float> dkernel, std::span<float> dbias, conv_way weights_way,
                                       conv_way data_way) {
  std::optional<conv_work> weights, data;
  if (!dkernel.empty()) {
    weights.emplace(cpu, g, conv_pass::weights, !dbias.empty(), activation::none, batch, weights_way);
    if (!*weights || !weights->one_layout()) return false;
  }
  if (!dx.empty()) {
    data.emplace(cpu, g, conv_pass::data, false, activation::none, batch, data_way);
    if (!*data) return false;
    data->lay_out(cpu, kernel);
  }
  auto const filters = std::size_t(g.out.channels);
  std::size_t const size = weights ? weights->kernel().packed_size : 0;
  bool const plain = weights && weights->kernel().packed == weights->kernel().plain;
  auto const sums = [&](int t) {
    return t == 0 && plain ? dkernel.data() : cpu.room(t, weights_room, size + filters).data();
  };
  auto const bias_sums = [&](int t) {
    return t == 0 ? dbias.data() : cpu.room(t, weights_room, size + filters).data() + size;
  };
  auto const weigh = [&](int t, std::size_t i, bool first) {
    auto const [k, sample, channel] = weights->at(i);
    float const *const in = x.data() + x_from(g, sample), *const out =
                                                              dy.data() + y_from(g, sample) + channel;
    float *const its_in = k.x_side->place(in, cpu.room(t, x_room, k.x_side->room())),
                 *const its_out = k.y_side->place(out, cpu.room(t, y_room, k.y_side->room()));
    if (first || !weights->by_channels) k.x_side->bring(t, in, its_in);
    k.y_side->bring(t, out, its_out);
    auto const scratch = cpu.room(t, scratch_room, k.scratch_size);
    if (weights->by_channels) {
      float* const room = cpu.room(t, weights_room, k.packed_size).data();
      float* const to = k.packed == k.plain ? dkernel.data() + channel : room;
      k.run(t, its_in, to, dbias.empty() ? nullptr : dbias.data() + channel, its_out, scratch);
      k.lay_back(t, to, dkernel.data() + channel);
    } else if (first) {
      k.run(t, its_in, sums(t), bias_sums(t), its_out, scratch);
    } else {
      float* const piece = cpu.room(t, piece_room, size + filters).data();
      k.run(t, its_in, piece, piece + size, its_out, scratch);
      float* __restrict const sum = sums(t);
      for (std::size_t j = 0; j < size; ++j) sum[j] += piece[j];
      float* __restrict const bias_sum = bias_sums(t);
      for (std::size_t j = 0; j < dbias.size(); ++j) bias_sum[j] += piece[size + j];
    }
  };
  auto const pass_on = [&](int t, std::size_t i, bool bring) {
    auto const [k, sample, channel] = data->at(i);
    float const* const out = dy.data() + y_from(g, sample);
    float* const to = dx.data() + x_from(g, sample) + channel;
    float *const its_out = k.y_side->place(out, cpu.room(t, y_room, k.y_side->room())),
                 *const its_to = k.x_side->place(to, cpu.room(t, x_room, k.x_side->room()));
    if (bring) k.y_side->bring(t, out, its_out);
    float* const laid = data->by_channels ? k.laid_out(t, kernel.data() + channel * filters,
                                                       cpu.room(t, weights_room, k.packed_size).data())
                                          : data->weights_of(k);
    k.run(t, its_to, laid, nullptr, its_out, cpu.room(t, scratch_room, k.scratch_size));
    k.x_side->send(t, its_to, to);
  };
  // Piece by piece, what both passes read is still in the cache, in the layout that both like.
  bool const together = weights && data && weights->same_pieces(*data);
  bool const alike = together && weights->kernel().key.winograd == data->kernel().key.winograd &&
                     weights->kernel().key.type == data->kernel().key.type;
  if (weights) {
    cpu.share(std::size_t(weights->pieces), weights->parts, [&](std::size_t first, std::size_t last, int t) {
      for (std::size_t i = first; i < last; ++i) {
        weigh(t, i, i == first);
        if (together) pass_on(t, i, !alike);
      }
    });
    if (!weights->by_channels) {
      detail::add_parts(cpu, weights->parts, size, sums);
      if (!dbias.empty()) detail::add_parts(cpu, weights->parts, filters, bias_sums);
      weights->kernel().lay_back(0, sums(0), dkernel.data());
    }
  }
  if (data && !together)
    cpu.share(std::size_t(data->pieces), data->parts, [&](std::size_t first, std::size_t last, int t) {
      for (std::size_t i = first; i < last; ++i) pass_on(t, i, i == first || !data->by_channels);
    });
  return true;
}

}  // namespace edl::detail

#else

namespace edl::detail {

EDL_INLINE conv_way onednn_conv2d_rule(conv_geometry const&, int, int) { return conv_way::own; }
EDL_INLINE bool onednn_conv2d_forward(basic_cpu<float>&, conv_geometry const&, int, activation, view<float>,
                                      view<float>, view<float>, std::span<float>, conv_way) {
  return false;
}
EDL_INLINE bool onednn_conv2d_backward(basic_cpu<float>&, conv_geometry const&, int, view<float>, view<float>,
                                       view<float>, std::span<float>, std::span<float>, std::span<float>,
                                       conv_way, conv_way) {
  return false;
}

}  // namespace edl::detail

#endif
