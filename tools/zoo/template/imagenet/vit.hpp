// SPDX-License-Identifier: Apache-2.0
// The vision transformer (Dosovitskiy et al., "An image is worth 16x16 words", 2021), with the names of
// Hugging Face's weights. Such a model is this struct with its sizes, as in imagenet_vit_b16.cpp.
#pragma once

#include <algorithm>
#include <edl/edl.hpp>
#include <string_view>

namespace nn = edl::nn;

/// Puts a trained token before the patches, and adds a trained row to each of them: (h, w, c) → (1, h · w +
/// 1, c). It runs on the processor.
struct patch_tokens {
  static constexpr std::string_view name = "patch_tokens";

  constexpr edl::fit check(edl::shape) const { return edl::fit::fits; }
  constexpr edl::shape output(edl::shape in) const { return {1, in.height * in.width + 1, in.channels}; }
  template <class Visit>
  constexpr void variables(edl::shape in, Visit&& visit) const {
    constexpr nn::normal initial{.stddev = 0.02};
    visit(nn::variable_spec{"token", {1, 1, in.channels}, initial});
    visit(nn::variable_spec{"rows", {1, in.height * in.width + 1, in.channels}, initial});
  }

  template <class D>
  void forward(nn::pass<D>&, nn::forward_args<typename D::scalar> const& a) const {
    std::size_t const c = std::size_t(a.in.channels), n = a.in.size();
    auto const rows = a.parameters.subspan(c);
    for (std::size_t from = 0, to = 0; from < a.x.size(); from += n, to += n + c)
      for (std::size_t i = 0; i < n + c; ++i)
        a.y[to + i] = rows[i] + (i < c ? a.parameters[i] : a.x[from + i - c]);
  }
  template <class D>
  void backward(nn::pass<D>&, nn::backward_args<typename D::scalar> const& a) const {
    std::size_t const c = std::size_t(a.in.channels), n = a.in.size();
    if (!a.dx.empty())
      for (std::size_t from = 0, to = 0; from < a.dx.size(); from += n, to += n + c)
        for (std::size_t i = 0; i < n; ++i) a.dx[from + i] = a.dy[to + c + i];
    if (a.gradients.empty()) return;
    std::ranges::fill(a.gradients, typename D::scalar(0));
    for (std::size_t to = 0; to < a.dy.size(); to += n + c)
      for (std::size_t i = 0; i < n + c; ++i) {
        a.gradients[c + i] += a.dy[to + i];
        if (i < c) a.gradients[i] += a.dy[to + i];
      }
  }
};

/// `Of` has the sizes: `side` and `patch` of pictures, `width`, `heads`, `blocks`, `hidden`, `classes`.
template <class Of>
struct vit {
  static constexpr int side = Of::side;
  static constexpr nn::layer_norm norm{.epsilon = 1e-12f};
  static constexpr nn::normal initial{.stddev = 0.02};
  static constexpr auto linear(int units) {
    return nn::dense{.units = units, .each_place = true, .kernel_initializer = initial};
  }

  static constexpr auto network = nn::sequential(
      nn::image{.height = side, .width = side, .channels = 3},
      nn::conv2d{
          .filters = Of::width, .kernel = Of::patch, .stride = Of::patch, .kernel_initializer = initial},
      patch_tokens{},
      nn::repeat<Of::blocks>(nn::sequential(
          nn::residual(
              nn::sequential(norm, nn::attention{.heads = Of::heads, .kernel_initializer = initial})),
          nn::residual(nn::sequential(norm, linear(Of::hidden), nn::gelu{}, linear(Of::width))))),
      norm, nn::slice{.count = 1, .along = nn::places}, nn::dense{.units = Of::classes});
  static constexpr nn::softmax_cross_entropy loss{.label_smoothing = 0.1f};
  static constexpr edl::adamw optimizer{.weight_decay = 0.05};
  static constexpr edl::warmup<edl::cosine_decay> schedule{.steps = 100,
                                                           .then = {.rate = 3e-4f, .steps = 50000}};
  using metrics = edl::metrics<edl::accuracy, edl::top_k<5>>;

  static constexpr edl::weight_name weight_names[] = {
      {"vit.embeddings.cls_token", "patch_tokens/token"},
      {"vit.embeddings.position_embeddings", "patch_tokens/rows"},
      {"vit.embeddings.patch_embeddings.projection.weight", "conv2d/kernel", edl::weight_order::pytorch},
      {"vit.embeddings.patch_embeddings.projection.bias", "conv2d/bias"},
      {"vit.encoder.layer.#.layernorm_before.{weight,bias}",
       "repeat/sequential_#/residual/body/layer_normalization/{gamma,beta}"},
      {"vit.encoder.layer.#.attention.attention.{query,key,value}.weight",
       "repeat/sequential_#/residual/body/attention/query_key_value_kernel", edl::weight_order::pytorch},
      {"vit.encoder.layer.#.attention.attention.{query,key,value}.bias",
       "repeat/sequential_#/residual/body/attention/query_key_value_bias"},
      {"vit.encoder.layer.#.attention.output.dense.weight",
       "repeat/sequential_#/residual/body/attention/output_kernel", edl::weight_order::pytorch},
      {"vit.encoder.layer.#.attention.output.dense.bias",
       "repeat/sequential_#/residual/body/attention/output_bias"},
      {"vit.encoder.layer.#.layernorm_after.{weight,bias}",
       "repeat/sequential_#/residual_1/body/layer_normalization/{gamma,beta}"},
      {"vit.encoder.layer.#.intermediate.dense.weight", "repeat/sequential_#/residual_1/body/dense/kernel",
       edl::weight_order::pytorch},
      {"vit.encoder.layer.#.intermediate.dense.bias", "repeat/sequential_#/residual_1/body/dense/bias"},
      {"vit.encoder.layer.#.output.dense.weight", "repeat/sequential_#/residual_1/body/dense_1/kernel",
       edl::weight_order::pytorch},
      {"vit.encoder.layer.#.output.dense.bias", "repeat/sequential_#/residual_1/body/dense_1/bias"},
      {"vit.layernorm.{weight,bias}", "layer_normalization/{gamma,beta}"},
      {"classifier.weight", "dense/kernel", edl::weight_order::pytorch},
      {"classifier.bias", "dense/bias"}};

  static void feed(edl::example const& record, edl::sample<vit>& into, edl::mode m) {
    std::size_t const own = record.count("image") == std::size_t(side) * side * 3 ? side : 32;
    auto const picture = record.floats("image", {own, own, 3});
    for (std::size_t y = 0; y < side; ++y)
      for (std::size_t x = 0; x < side; ++x)
        for (std::size_t c = 0; c < 3; ++c)
          into.features(y, x, c) = picture(y * own / side, x * own / side, c) / 127.5f - 1;
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }
};
