// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/inline.hpp"
#include "edl/device/cpu/onednn_conv2d.hpp"

#ifdef EDL_ONEDNN

#include <algorithm>
#include <array>
#include <deque>
#include <dnnl.hpp>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "edl/device/cpu/rows.hpp"

namespace edl::detail {

enum class conv_pass { forward, data, weights };

struct conv_key {
  conv_geometry g;
  int samples;
  conv_pass pass;
  bool bias;
  activation f;
  bool winograd;

  friend bool operator==(conv_key const& a, conv_key const& b) {
    return a.g.in == b.g.in && a.g.out == b.g.out && a.g.kernel == b.g.kernel && a.g.stride == b.g.stride &&
           a.g.before == b.g.before && a.g.groups == b.g.groups && a.samples == b.samples &&
           a.pass == b.pass && a.bias == b.bias && a.f == b.f && a.winograd == b.winograd;
  }
};

/// Whether Winograd's algorithm (Lavin and Gray, 2015: tiles of 4 x 4) is worth its detour over another
/// layout: it computes a 3 x 3 convolution with a quarter of the multiplications. A rule, not a measurement:
/// what is chosen by the clock gives other bits in the next run. From 32 channels on it took half the time on
/// the machines tried.
inline bool worth_winograd(conv_geometry const& g) {
  // With less of a border after than before, oneDNN 2.6 gets the input's gradient wrong.
  auto const even = [](int in, int out, int before) { return before <= 1 && in + 2 * before - 2 == out; };
  return g.kernel == extent{3} && g.stride == extent{1} && g.groups == 1 && g.in.channels % 16 == 0 &&
         g.out.channels % 16 == 0 && g.in.channels >= 32 && g.out.channels >= 32 && g.positions() >= 16 &&
         even(g.in.height, g.out.height, g.before.height) && even(g.in.width, g.out.width, g.before.width);
}

/// Samples in the layout of ours, channels last, and in that of a kernel.
class sample_layout {
 public:
  sample_layout(dnnl::engine const& on, dnnl::memory::desc const& ours, dnnl::memory::desc const& its,
                int threads)
      : same_(ours == its), size_(its.get_size() / sizeof(float)) {
    if (same_) return;
    dnnl::memory const a(ours, on, nullptr), b(its, on, nullptr);
    in_ = dnnl::reorder(a, b);
    out_ = dnnl::reorder(b, a);
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

/// One pass of one convolution over some samples.
class conv_kernel {
 public:
  conv_kernel(conv_key const& k, dnnl::engine const& on, int threads) : key(k), engine_(on) {
    using dnnl::memory, dnnl::algorithm, dnnl::prop_kind;
    using tag = memory::format_tag;
    constexpr auto type = memory::data_type::f32;
    auto const& g = k.g;
    memory::dims const in{k.samples, g.in.channels, g.in.height, g.in.width},
        out{k.samples, g.out.channels, g.out.height, g.out.width}, stride{g.stride.height, g.stride.width},
        before{g.before.height, g.before.width},
        after{rest(g.in.height, g.out.height, g.kernel.height, g.stride.height, g.before.height),
              rest(g.in.width, g.out.width, g.kernel.width, g.stride.width, g.before.width)};
    memory::dim const all = g.out.channels, inner = g.in.channels / g.groups,
                      row = g.kernel.width * inner * all;
    memory::dims dims{all, inner, g.kernel.height, g.kernel.width}, strides{1, all, row, inner * all};
    if (g.groups > 1) {
      dims = {g.groups, all / g.groups, inner, g.kernel.height, g.kernel.width};
      strides = {all / g.groups, 1, all, row, inner * all};
    }
    plain = memory::desc(dims, type, strides);
    auto const how = k.winograd ? algorithm::convolution_winograd : algorithm::convolution_direct;
    auto const layout = k.winograd ? tag::nChw16c : tag::nhwc;
    memory::desc const our_x(in, type, tag::nhwc), our_y(out, type, tag::nhwc), x(in, type, layout),
        y(out, type, layout), any(dims, type, tag::any),
        b = k.bias ? memory::desc({all}, type, tag::x) : memory::desc();
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (k.f == activation::relu) {
      dnnl::post_ops then;
      then.append_eltwise(1, algorithm::eltwise_relu, 0, 0);
      attributes.set_post_ops(then);
    }
    dnnl::convolution_forward::desc const forward(prop_kind::forward_training, how, x, any, b, y, stride,
                                                  before, after);
    dnnl::convolution_forward::primitive_desc const f(forward, attributes, engine_);
    if (k.pass == conv_pass::forward) {
      take(f, f.weights_desc(), {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST}, x, b, y,
           threads);
    } else if (k.pass == conv_pass::data) {
      dnnl::convolution_backward_data::primitive_desc const d({how, x, any, y, stride, before, after},
                                                              attributes, engine_, f);
      take(d, d.weights_desc(), {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, 0, DNNL_ARG_DIFF_DST}, x, b, y,
           threads);
    } else {
      dnnl::convolution_backward_weights::primitive_desc const d({how, x, any, b, y, stride, before, after},
                                                                 attributes, engine_, f);
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

  /// The kernel as this convolution likes it: the caller's, or made of it in `room`.
  float* laid_out(view<float> kernel, aligned_buffer<float>& room) {
    if (packed == plain) return const_cast<float*>(kernel.data());
    if (room.size() < packed_size) room = aligned_buffer<float>(packed_size);
    reorder(plain, kernel.data(), packed, room.span().data(), to_);
    return room.span().data();
  }
  /// The way back, for gradients.
  void lay_back(float const* from, std::span<float> kernel) {
    if (packed != plain) reorder(packed, from, plain, kernel.data(), back_);
  }

  conv_key const key;
  std::string name;  // oneDNN's, of the implementation
  dnnl::memory::desc plain, packed;
  std::size_t packed_size = 0, scratch_size = 0;  // floats
  std::unique_ptr<sample_layout> x_side, y_side;

 private:
  struct own {
    dnnl::stream stream;
    std::array<dnnl::memory, 5> memories;
    std::unordered_map<int, dnnl::memory> arguments;
  };

  static dnnl::memory::dim rest(int in, int out, int kernel, int stride, int before) {
    return std::max(0, (out - 1) * stride + kernel - in - before);
  }

  template <class Descriptor>
  void take(Descriptor const& d, dnnl::memory::desc const& weights, std::array<int, 4> const& names,
            dnnl::memory::desc const& x, dnnl::memory::desc const& bias, dnnl::memory::desc const& y,
            int threads) {
    primitive_ = dnnl::primitive(d);
    name = d.impl_info_str();
    packed = weights;
    packed_size = (packed.get_size() + sizeof(float) - 1) / sizeof(float);
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

  struct reordering {
    dnnl::memory from, to;
    dnnl::reorder work;
  };
  void reorder(dnnl::memory::desc const& a, float const* from, dnnl::memory::desc const& b, float* to,
               std::unique_ptr<reordering>& kept) {
    onednn_alone const here;
    if (!kept) {
      dnnl::memory const x(a, engine_, nullptr), y(b, engine_, nullptr);
      kept = std::make_unique<reordering>(reordering{x, y, dnnl::reorder(x, y)});
    }
    kept->from.set_data_handle(const_cast<float*>(from));
    kept->to.set_data_handle(to);
    kept->work.execute(threads_[0].stream, kept->from, kept->to);
  }

  dnnl::engine engine_;
  dnnl::primitive primitive_;
  std::vector<own> threads_;
  std::unique_ptr<reordering> to_, back_;
};

struct onednn_store final : kernel_store {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  std::deque<conv_kernel> convolutions;
  std::array<aligned_buffer<float>, 2> rooms;  // for a kernel in its convolution's layout, during a call
  std::vector<conv_key> without_winograd;      // oneDNN has it for other processors or shapes

  conv_kernel* find(conv_key key, int threads) {
    if (std::ranges::find(without_winograd, key) != without_winograd.end()) key.winograd = false;
    for (conv_kernel& k : convolutions)
      if (k.key == key) return &k;
    onednn_alone const here;
    if (key.winograd) try {
        return &convolutions.emplace_back(key, engine, threads);
      } catch (dnnl::error const&) {
        without_winograd.push_back(key);
        key.winograd = false;
        return find(key, threads);
      }
    return &convolutions.emplace_back(key, engine, threads);
  }
};

inline onednn_store& store_of(basic_cpu<float>& cpu) {
  if (!cpu.kernels()) cpu.kernels() = std::make_unique<onednn_store>();
  return static_cast<onednn_store&>(*cpu.kernels());
}

/// The kernels for the shares of a batch: two sizes at most.
struct conv_shares {
  conv_shares(basic_cpu<float>& cpu, conv_geometry const& g, conv_pass pass, bool bias, activation f,
              int batch)
      : parts(cpu.parts(std::size_t(batch), 1)) {
    auto const sized = [&](int samples) {
      return store_of(cpu).find({g, samples, pass, bias, f, cpu.winograd() && worth_winograd(g)},
                                cpu.threads());
    };
    small = sized(batch / parts);
    large = sized((batch + parts - 1) / parts);
  }
  /// Lays the kernel out for both.
  void lay_out(basic_cpu<float>& cpu, view<float> kernel) {
    auto& rooms = store_of(cpu).rooms;
    for_small = small->laid_out(kernel, rooms[0]);
    for_large = large == small ? for_small : large->laid_out(kernel, rooms[1]);
  }
  conv_kernel& of(std::size_t samples) const {
    return std::size_t(small->key.samples) == samples ? *small : *large;
  }
  float* weights_of(conv_kernel const& k) const { return &k == small ? for_small : for_large; }

  int parts;
  conv_kernel *small = nullptr, *large = nullptr;
  float *for_small = nullptr, *for_large = nullptr;
};

EDL_INLINE bool onednn_conv2d_forward(basic_cpu<float>& cpu, conv_geometry const& g, int batch, activation f,
                                      view<float> x, view<float> kernel, view<float> bias,
                                      std::span<float> y) {
  if (!cpu.libraries()) return false;
  conv_shares shares(cpu, g, conv_pass::forward, !bias.empty(), f, batch);
  shares.lay_out(cpu, kernel);
  cpu.share(std::size_t(batch), shares.parts, [&](std::size_t begin, std::size_t end, int t) {
    conv_kernel& k = shares.of(end - begin);
    float const* const in = x.data() + begin * g.in.size();
    float* const out = y.data() + begin * g.out.size();
    float *const its_in = k.x_side->place(in, cpu.room(t, 2, k.x_side->room())),
                 *const its_out = k.y_side->place(out, cpu.room(t, 3, k.y_side->room()));
    k.x_side->bring(t, in, its_in);
    k.run(t, its_in, shares.weights_of(k), bias.data(), its_out, cpu.room(t, 0, k.scratch_size));
    k.y_side->send(t, its_out, out);
  });
  return true;
}

EDL_INLINE bool onednn_conv2d_backward(basic_cpu<float>& cpu, conv_geometry const& g, int batch,
                                       view<float> x, view<float> kernel, view<float> dy, std::span<float> dx,
                                       std::span<float> dkernel, std::span<float> dbias) {
  if (!cpu.libraries()) return false;
  conv_shares const shares(cpu, g, conv_pass::weights, !dbias.empty(), activation::none, batch);
  // Both sizes of share must sum in one layout.
  if (shares.small->packed != shares.large->packed) return false;
  std::size_t const size = shares.small->packed_size, filters = std::size_t(g.out.channels);
  bool const direct = shares.small->packed == shares.small->plain;
  auto const sums = [&](int t) {
    return t == 0 && direct ? dkernel.data() : cpu.room(t, 1, size + filters).data();
  };
  auto const bias_sums = [&](int t) {
    return t == 0 ? dbias.data() : cpu.room(t, 1, size + filters).data() + size;
  };
  std::optional<conv_shares> data;
  if (!dx.empty()) {
    data.emplace(cpu, g, conv_pass::data, false, activation::none, batch);
    data->lay_out(cpu, kernel);
  }
  cpu.share(std::size_t(batch), shares.parts, [&](std::size_t begin, std::size_t end, int t) {
    conv_kernel& k = shares.of(end - begin);
    float const *const in = x.data() + begin * g.in.size(), *const out = dy.data() + begin * g.out.size();
    float *const its_in = k.x_side->place(in, cpu.room(t, 2, k.x_side->room())),
                 *const its_out = k.y_side->place(out, cpu.room(t, 3, k.y_side->room()));
    k.x_side->bring(t, in, its_in);
    k.y_side->bring(t, out, its_out);
    k.run(t, its_in, sums(t), bias_sums(t), its_out, cpu.room(t, 0, k.scratch_size));
    if (!data) return;
    conv_kernel& d = data->of(end - begin);
    float* const to = dx.data() + begin * g.in.size();
    float* const its_to = d.x_side->place(to, cpu.room(t, 2, d.x_side->room()));
    float* const its_from = d.y_side->place(out, cpu.room(t, 3, d.y_side->room()));
    if (d.key.winograd != k.key.winograd) d.y_side->bring(t, out, its_from);
    d.run(t, its_to, data->weights_of(d), nullptr, its_from, cpu.room(t, 0, d.scratch_size));
    d.x_side->send(t, its_to, to);
  });
  add_parts(cpu, shares.parts, size, sums);
  if (!dbias.empty()) add_parts(cpu, shares.parts, filters, bias_sums);
  shares.small->lay_back(sums(0), dkernel);
  return true;
}

EDL_INLINE std::string onednn_describe_conv2d(basic_cpu<float>& cpu, conv_geometry const& g, int batch) {
  if (!cpu.libraries()) return {};
  auto const name = [&](conv_pass pass) {
    return conv_shares(cpu, g, pass, false, activation::none, batch).large->name;
  };
  std::string const forward = name(conv_pass::forward), data = name(conv_pass::data),
                    weights = name(conv_pass::weights);
  return forward == data && data == weights ? "oneDNN " + forward
                                            : "oneDNN " + forward + " | " + data + " | " + weights;
}

}  // namespace edl::detail

#else

namespace edl::detail {

EDL_INLINE bool onednn_conv2d_forward(basic_cpu<float>&, conv_geometry const&, int, activation, view<float>,
                                      view<float>, view<float>, std::span<float>) {
  return false;
}
EDL_INLINE bool onednn_conv2d_backward(basic_cpu<float>&, conv_geometry const&, int, view<float>, view<float>,
                                       view<float>, std::span<float>, std::span<float>, std::span<float>) {
  return false;
}
EDL_INLINE std::string onednn_describe_conv2d(basic_cpu<float>&, conv_geometry const&, int) { return {}; }

}  // namespace edl::detail

#endif
