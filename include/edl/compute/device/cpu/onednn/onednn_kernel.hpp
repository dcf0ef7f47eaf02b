// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef EDL_ONEDNN

#include <algorithm>
#include <array>
#include <dnnl.hpp>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/device/cpu/onednn/onednn.hpp"
#include "edl/compute/device/cpu/onednn/onednn_packing.hpp"
#include "edl/compute/device/cpu/onednn/onednn_types.hpp"
#include "edl/compute/device/geometry.hpp"
#include "edl/core/span.hpp"

namespace edl::detail {

enum class conv_pass { forward, data, weights };

struct conv_key {
  conv_geometry g;
  int samples, channels;  // of one piece; the channels are those that the pass writes
  conv_pass pass;
  bool bias;
  activation f;
  bool winograd;
  factors type;

  friend bool operator==(conv_key const&, conv_key const&) = default;
};

/// Samples as they are, in float32 or narrow and with channels last, and as a kernel wants them.
class sample_layout {
 public:
  sample_layout(dnnl::engine const& on, dnnl::memory::desc const& ours, dnnl::memory::desc const& its,
                int threads)
      : same_(ours == its), size_((its.get_size() + sizeof(float) - 1) / sizeof(float)) {
    if (same_) return;
    in_ = reorder_of(on, ours, its);
    out_ = reorder_of(on, its, ours);
    for (int t = 0; t < threads; ++t)
      threads_.push_back({dnnl::stream(on), dnnl::memory(ours, on, nullptr), dnnl::memory(its, on, nullptr)});
  }

  /// Floats of memory that the kernel's layout takes; 0 where it is ours.
  std::size_t room() const { return same_ ? 0 : size_; }

  /// Where the kernel finds, or is to leave, samples: in place, or in `room`.
  float* place(float const* ours, std::span<float> room) const {
    return same_ ? const_cast<float*>(ours) : room.data();
  }
  void bring(int thread, float const* ours, float* place) const { move(in_, thread, ours, place, true); }
  void send(int thread, float const* place, float* ours) const { move(out_, thread, ours, place, false); }

 private:
  struct own {
    mutable dnnl::stream stream;
    mutable dnnl::memory ours, its;
  };
  void move(dnnl::reorder const& how, int thread, float const* ours, float const* its, bool in) const {
    if (same_) return;
    own const& o = threads_[std::size_t(thread)];
    o.ours.set_data_handle(const_cast<float*>(ours));
    o.its.set_data_handle(const_cast<float*>(its));
    onednn_alone const here;
    in ? how.execute(o.stream, o.ours, o.its) : how.execute(o.stream, o.its, o.ours);
  }

  bool same_;
  std::size_t size_;
  dnnl::reorder in_, out_;
  std::vector<own> threads_;
};

/// One pass of one convolution over a piece of the work.
class conv_kernel {
 public:
  conv_kernel(conv_key const& k, dnnl::engine const& on, int threads) : key(k), engine_(on) {
    using dnnl::memory, dnnl::algorithm, dnnl::prop_kind;
    using tag = memory::format_tag;
    constexpr auto type = memory::data_type::f32;
    auto const factor = data_type_of(k.type);
    // The one of x, weights and y that is the sum of products.
    auto const of = [&](conv_pass sums) { return k.pass == sums ? type : factor; };
    auto const& g = k.g;
    bool const back = k.pass == conv_pass::data;
    memory::dim const inputs = back ? k.channels : g.in.channels,
                      filters = back ? g.out.channels : k.channels, all = g.out.channels,
                      inner = g.in.channels / g.groups, row = g.kernel.width * inner * all;
    memory::dims const in{k.samples, inputs, g.in.height, g.in.width},
        out{k.samples, filters, g.out.height, g.out.width}, stride{g.stride.height, g.stride.width},
        before{g.before.height, g.before.width},
        after{rest(g.in.height, g.out.height, g.kernel.height, g.stride.height, g.before.height),
              rest(g.in.width, g.out.width, g.kernel.width, g.stride.width, g.before.width)};
    memory::dims dims{filters, inputs, g.kernel.height, g.kernel.width}, strides{1, all, row, inner * all};
    if (g.groups > 1) {
      dims = {g.groups, all / g.groups, inner, g.kernel.height, g.kernel.width};
      strides = {all / g.groups, 1, all, row, inner * all};
    }
    plain = memory::desc(dims, type, strides);
    auto const ours = [&](memory::dims const& d, shape s, memory::data_type t) {
      return memory::desc(d, t, {memory::dim(s.size()), 1, s.width * s.channels, s.channels});
    };
    auto const how = k.winograd ? algorithm::convolution_winograd : algorithm::convolution_direct;
    auto const its = [&](memory::dims const& d, shape s, memory::data_type t) {
      return k.winograd ? memory::desc(d, type, tag::nChw16c) : ours(d, s, t);
    };
    auto const x_type = g.narrow.in ? factor : of(conv_pass::data),
               y_type = g.narrow.out ? factor : of(conv_pass::forward);
    memory::desc const our_x = ours(in, g.in, g.narrow.in ? factor : type),
                       our_y = ours(out, g.out, g.narrow.out ? factor : type), x = its(in, g.in, x_type),
                       y = its(out, g.out, y_type), any(dims, of(conv_pass::weights), tag::any),
                       b = k.bias ? memory::desc({filters}, type, tag::x) : memory::desc();
    auto const attributes = attributes_of(k.f == activation::relu);
    // The hint of a backward pass is a forward one, of the same factors.
    auto const f = described<dnnl::convolution_forward>(
        engine_, attributes, prop_kind::forward_training, how, its(in, g.in, factor),
        memory::desc(dims, factor, tag::any), b,
        its(out, g.out, k.pass == conv_pass::forward ? y_type : factor), stride, before, after);
    if (k.pass == conv_pass::forward) {
      take(f, f.weights_desc(), {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST}, x, b, y,
           threads);
    } else if (k.pass == conv_pass::data) {
      auto const d = described<dnnl::convolution_backward_data>(engine_, attributes, f, how, x, any, y,
                                                                stride, before, after);
      take(d, d.weights_desc(), {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, 0, DNNL_ARG_DIFF_DST}, x, b, y,
           threads);
    } else {
      auto const d = described<dnnl::convolution_backward_weights>(engine_, attributes, f, how, x, any, b, y,
                                                                   stride, before, after);
      take(d, d.diff_weights_desc(),
           {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS, DNNL_ARG_DIFF_DST}, x, b, y, threads);
    }
    x_side = std::make_unique<sample_layout>(engine_, our_x, x, threads);
    y_side = std::make_unique<sample_layout>(engine_, our_y, y, threads);
  }

  /// Input or its gradient, kernel or its gradient, bias or its gradient, output or its gradient: all in this
  /// kernel's layouts.
  void run(int thread, float const* x, float* weights, float const* bias, float const* y,
           std::span<float> scratch) {
    own& o = threads_[std::size_t(thread)];
    o.memories[0].set_data_handle(const_cast<float*>(x));
    o.memories[1].set_data_handle(weights);
    if (key.bias) o.memories[2].set_data_handle(const_cast<float*>(bias));
    o.memories[3].set_data_handle(const_cast<float*>(y));
    o.memories[4].set_data_handle(scratch.data());
    onednn_alone const here;
    primitive_.execute(o.stream, o.arguments);
  }

  /// The kernel as this convolution likes it: the caller's, or made of it in `room`, `packed_size` floats.
  float* laid_out(int thread, float const* kernel, float* room) {
    if (packed == plain) return const_cast<float*>(kernel);
    if (!packing_.by_library()) {
      packing_.pack(kernel, room);
      return room;
    }
    own& o = threads_[std::size_t(thread)];
    reorder(o, o.to, plain, kernel, packed, room);
    return room;
  }
  /// The backward pass, for gradients.
  void lay_back(int thread, float const* from, float* kernel) {
    own& o = threads_[std::size_t(thread)];
    if (!packing_.by_library()) return packing_.unpack(from, kernel);
    if (packed != plain) reorder(o, o.back, packed, from, plain, kernel);
  }

  conv_key const key;
  dnnl::memory::desc plain, packed;
  std::size_t packed_size = 0, scratch_size = 0;  // floats
  std::unique_ptr<sample_layout> x_side, y_side;

 private:
  struct reordering {
    dnnl::memory from, to;
    dnnl::reorder work;
  };
  struct own {
    dnnl::stream stream;
    std::array<dnnl::memory, 5> memories;
    std::unordered_map<int, dnnl::memory> arguments;
    std::unique_ptr<reordering> to, back;
  };

  static dnnl::memory::dim rest(int in, int out, int kernel, int stride, int before) {
    return std::max(0, (out - 1) * stride + kernel - in - before);
  }

  template <class Descriptor>
  void take(Descriptor const& d, dnnl::memory::desc const& weights, std::array<int, 4> const& names,
            dnnl::memory::desc const& x, dnnl::memory::desc const& bias, dnnl::memory::desc const& y,
            int threads) {
    primitive_ = dnnl::primitive(d);
    packed = weights;
    packed_size = (packed.get_size() + sizeof(float) - 1) / sizeof(float);
    if (packed != plain) packing_ = weight_packing(engine_, plain, packed);
    scratch_size = (d.scratchpad_desc().get_size() + sizeof(float) - 1) / sizeof(float);
    dnnl::memory::desc const descriptors[5] = {x, packed, bias, y, d.scratchpad_desc()};
    int const all[5] = {names[0], names[1], names[2], names[3], DNNL_ARG_SCRATCHPAD};
    threads_.resize(std::size_t(threads));
    for (own& o : threads_) {
      o.stream = dnnl::stream(engine_);
      for (std::size_t i = 0; i < 5; ++i) {
        if (i == 2 && !key.bias) continue;
        o.memories[i] = dnnl::memory(descriptors[i], engine_, nullptr);
        o.arguments.emplace(all[i], o.memories[i]);
      }
    }
  }

  void reorder(own& o, std::unique_ptr<reordering>& kept, dnnl::memory::desc const& a, float const* from,
               dnnl::memory::desc const& b, float* to) const {
    onednn_alone const here;
    if (!kept) {
      dnnl::memory const x(a, engine_, nullptr), y(b, engine_, nullptr);
      kept = std::make_unique<reordering>(reordering{x, y, dnnl::reorder(x, y)});
    }
    kept->from.set_data_handle(const_cast<float*>(from));
    kept->to.set_data_handle(to);
    kept->work.execute(o.stream, kept->from, kept->to);
  }

  dnnl::engine engine_;
  dnnl::primitive primitive_;
  weight_packing packing_;
  std::vector<own> threads_;
};

}  // namespace edl::detail

#endif
