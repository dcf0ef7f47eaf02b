// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef EDL_ONEDNN

#include <algorithm>
#include <cstddef>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/onednn/onednn_conv2d.hpp"
#include "edl/compute/device/cpu/onednn/onednn_store.hpp"

namespace edl::detail {

/// Whether Winograd's algorithm computes it rightly.
inline bool winograd_fits(conv_geometry const& g) {
  // With less of a border after than before, oneDNN 2.6 gets the input's gradient wrong.
  auto const even = [](int in, int out, int before) { return before <= 1 && in + 2 * before - 2 == out; };
  return g.kernel == extent{3} && g.stride == extent{1} && g.groups == 1 && g.in.channels % 16 == 0 &&
         g.out.channels % 16 == 0 && even(g.in.height, g.out.height, g.before.height) &&
         even(g.in.width, g.out.width, g.before.width);
}

/// Channels of one piece where they are cut. They are as many as divide them, at most 128, so that what a
/// piece works in stays small. They are so few that every thread gets a piece. 0: they cannot be cut so.
inline int channels_of_piece(int channels, int threads) {
  for (int some = 128; some >= 16; some -= 16)
    if (channels % some == 0 && channels / some >= threads) return some;
  return 0;
}

/// A pass over a batch, cut into pieces, several for each thread, one after the other.
class conv_work {
 public:
  struct piece {
    conv_kernel& kernel;
    std::size_t sample, channel;  // where it begins
  };

  conv_work(basic_cpu<float>& cpu, conv_geometry const& g, conv_pass pass, bool bias, activation f, int batch,
            conv_way way)
      : by_channels(way == conv_way::winograd_by_channels), batch_(std::size_t(batch)) {
    bool const bfloat16 = cpu.rounds() && way == conv_way::direct;
    factors const type = bfloat16 ? factors::bfloat16 : factors::float32;
    int const channels = pass == conv_pass::data ? g.in.channels : g.out.channels;
    int const some = by_channels ? channels_of_piece(channels, cpu.threads()) : channels;
    if (some == 0 || (way != conv_way::direct && !winograd_fits(g))) return;
    if (g.narrow.any() && type != factors::bfloat16) return;
    if (by_channels) {
      pieces = channels / some;
      parts = cpu.parts(std::size_t(pieces), 1);
    } else {
      parts = cpu.parts(batch_, 1);
      bool const converts = bfloat16 || way == conv_way::winograd;
      pieces = parts * (converts ? pieces_of(g, (batch + parts - 1) / parts, bfloat16) : 1);
      pieces = std::min(pieces, batch);
    }
    auto const sized = [&](int samples) {
      return store_of(cpu).find({g, samples, some, pass, bias, f, way != conv_way::direct, type},
                                cpu.threads());
    };
    small_ = sized(by_channels ? batch : batch / pieces);
    large_ = sized(by_channels ? batch : (batch + pieces - 1) / pieces);
    // For hundreds of channels it works in a hundred megabytes per thread.
    constexpr std::size_t most = 10 << 20;
    if (large_ && large_->scratch_size > most) large_ = nullptr;
  }

  /// False: oneDNN has no such kernels.
  explicit operator bool() const { return small_ && large_; }

  piece at(std::size_t i) const {
    if (by_channels) return {*large_, 0, i * std::size_t(large_->key.channels)};
    auto const n = std::size_t(pieces);
    std::size_t const begin = batch_ * i / n, end = batch_ * (i + 1) / n;
    return {end - begin == std::size_t(small_->key.samples) ? *small_ : *large_, begin, 0};
  }
  conv_kernel& kernel() const { return *large_; }
  /// All pieces sum into kernels of one layout.
  bool one_layout() const { return small_->packed == large_->packed; }
  bool same_pieces(conv_work const& other) const {
    return !by_channels && !other.by_channels && pieces == other.pieces;
  }

  /// Lays the kernel out for all pieces, where it is the same for all.
  void lay_out(basic_cpu<float>& cpu, view<float> kernel) {
    if (by_channels) return;
    constexpr std::size_t few = 4;  // samples, for more of which a layout is little of the work
    bool const keeps = cpu.keeps() && batch_ <= few;
    auto& rooms = store_of(cpu).rooms;
    auto const lay = [&](conv_kernel& k, aligned_buffer<float>& room) {
      if (keeps)
        if (float* const kept = store_of(cpu).kept(cpu, k, kernel.data())) return kept;
      if (room.size() < k.packed_size && k.packed != k.plain) room = aligned_buffer<float>(k.packed_size);
      return k.laid_out(0, kernel.data(), room.span().data());
    };
    for_small_ = lay(*small_, rooms[0]);
    for_large_ = large_ == small_ ? for_small_ : lay(*large_, rooms[1]);
  }
  float* weights_of(conv_kernel const& k) const { return &k == small_ ? for_small_ : for_large_; }

  bool by_channels;
  int parts = 1, pieces = 1;

 private:
  /// Pieces of a share of the batch that a core's cache holds, in both layouts or precisions. The sizes are
  /// those that were fastest on the machines tried. Each piece adds a gradient of the kernel to the sum. In
  /// bfloat16 that counts for more, so that a piece is no smaller than the kernel.
  static int pieces_of(conv_geometry const& g, int samples, bool bfloat16) {
    std::size_t const kernel = g.patch() * std::size_t(g.out.channels) * sizeof(float),
                      held = bfloat16 ? std::max<std::size_t>(512 << 10, kernel) : 2 << 20;
    std::size_t const bytes =
        (scalars_of(g.in.size(), g.narrow.in) + scalars_of(g.out.size(), g.narrow.out)) * sizeof(float) *
        std::size_t(samples);
    return int(std::clamp<std::size_t>((bytes + held / 2) / held, 1, std::size_t(samples)));
  }

  std::size_t batch_;
  conv_kernel *small_ = nullptr, *large_ = nullptr;
  float *for_small_ = nullptr, *for_large_ = nullptr;
};

}  // namespace edl::detail

#endif
