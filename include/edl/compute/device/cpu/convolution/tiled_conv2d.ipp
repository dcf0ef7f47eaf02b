// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/cpu/convolution/tiled_conv2d.hpp"
#include "edl/core/inline.hpp"

#ifdef __x86_64__

#include "edl/compute/device/cpu/convolution/tiled_passes.hpp"
#include "edl/compute/device/cpu/tile_unit.hpp"

namespace edl::detail::tiled {

EDL_INLINE bool fits(conv_geometry const& g) { return has_unit() && can_map(g); }

EDL_INLINE bool faster(conv_geometry const& g, int batch, bool of_kernel) {
  // Fewer samples or channels leave much of a tile empty. oneDNN's rows of a tile are places of one map.
  int const channels = std::min(g.in.channels, g.out.channels);
  return batch >= int(rows) && (channels >= 64 || (channels >= 32 && (of_kernel || g.stride != extent{1})));
}

EDL_INLINE void forward(basic_cpu<float>& cpu, conv_geometry const& g, int batch, activation f, view<float> x,
                        view<float> kernel, view<float> bias, std::span<float> y) {
  map_with<unit>(cpu, g, false, batch, f, halves(x.data()), kernel, bias, halves(y.data()));
}
EDL_INLINE void to_input(basic_cpu<float>& cpu, conv_geometry const& g, int batch, view<float> kernel,
                         view<float> dy, std::span<float> dx) {
  map_with<unit>(cpu, g, true, batch, activation::none, halves(dy.data()), kernel, {}, halves(dx.data()));
}
EDL_INLINE void to_kernel(basic_cpu<float>& cpu, conv_geometry const& g, int batch, view<float> x,
                          view<float> dy, std::span<float> dkernel, std::span<float> dbias) {
  sum_kernel<unit>(cpu, g, batch, halves(x.data()), halves(dy.data()), dkernel, dbias);
}

}  // namespace edl::detail::tiled

#else

namespace edl::detail::tiled {

EDL_INLINE bool fits(conv_geometry const&) { return false; }
EDL_INLINE bool faster(conv_geometry const&, int, bool) { return false; }
EDL_INLINE void forward(basic_cpu<float>&, conv_geometry const&, int, activation, view<float>, view<float>,
                        view<float>, std::span<float>) {}
EDL_INLINE void to_input(basic_cpu<float>&, conv_geometry const&, int, view<float>, view<float>,
                         std::span<float>) {}
EDL_INLINE void to_kernel(basic_cpu<float>&, conv_geometry const&, int, view<float>, view<float>,
                          std::span<float>, std::span<float>) {}

}  // namespace edl::detail::tiled

#endif
