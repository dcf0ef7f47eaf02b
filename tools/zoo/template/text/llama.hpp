// SPDX-License-Identifier: Apache-2.0
// The decoder of Llama (Touvron et al., "LLaMA: open and efficient foundation language models", 2023) and its descendants,
// with the names of their published weights. Such a model is this struct with its sizes, as in smollm2.cpp.
#pragma once

#include <edl/edl.hpp>
#include <iterator>
#include <span>

namespace nn = edl::nn;

/// `Of` has the sizes: `length`, `width`, `heads`, `key_value_heads`, `blocks`, `hidden`, `tokens`, `rotary_base`, `epsilon`,
/// whether queries, keys and values have a `bias`, and `scaling` of the rotary positions.
template <class Of>
struct llama {
  static constexpr int length = Of::length;
  static constexpr nn::rms_norm norm{.epsilon = Of::epsilon};
  static constexpr nn::normal initial{.stddev = 0.02};
  static constexpr auto linear(int units) {
    return nn::dense{.units = units, .each_place = true, .use_bias = false, .kernel_initializer = initial};
  }

  static constexpr auto attention = nn::sequential(norm, nn::attention{.heads = Of::heads,
                                                                       .key_value_heads = Of::key_value_heads,
                                                                       .causal = true,
                                                                       .rotary = true,
                                                                       .rotary_base = Of::rotary_base,
                                                                       .scaling = Of::scaling,
                                                                       .use_bias = Of::bias,
                                                                       .output_bias = false,
                                                                       .kernel_initializer = initial});
  static constexpr auto perceptron = nn::sequential(
      norm, nn::product(nn::named<"gate">(linear(Of::hidden), nn::silu{}), nn::named<"up">(linear(Of::hidden))),
      linear(Of::width));
  static constexpr auto network = nn::sequential(
      nn::ids{.count = length},
      nn::tied(nn::embedding{.vocabulary = Of::tokens, .width = Of::width, .initial = initial},
               nn::repeat<Of::blocks>(nn::sequential(nn::residual(attention), nn::residual(perceptron))), norm));
  static constexpr nn::sequence_cross_entropy loss{};
  static constexpr edl::adamw optimizer{.beta_2 = 0.95, .weight_decay = 0.1};
  static constexpr edl::warmup<edl::cosine_decay> schedule{.steps = 100,
                                                           .then = {.rate = 3e-4f, .steps = 5000, .end = 3e-5f}};
  using metrics = edl::metrics<edl::mean_loss, edl::perplexity>;

  static constexpr edl::weight_name published[] = {
      {"model.embed_tokens.weight", "embedding/embeddings"},
      {"model.layers.#.input_layernorm.weight", "repeat/sequential_#/residual/body/rms_normalization/gamma"},
      {"model.layers.#.self_attn.{q,k,v}_proj.weight",
       "repeat/sequential_#/residual/body/attention/query_key_value_kernel", edl::weight_order::pytorch},
      {"model.layers.#.self_attn.o_proj.weight", "repeat/sequential_#/residual/body/attention/output_kernel",
       edl::weight_order::pytorch},
      {"model.layers.#.post_attention_layernorm.weight",
       "repeat/sequential_#/residual_1/body/rms_normalization/gamma"},
      {"model.layers.#.mlp.gate_proj.weight", "repeat/sequential_#/residual_1/body/product/gate/dense/kernel",
       edl::weight_order::pytorch},
      {"model.layers.#.mlp.up_proj.weight", "repeat/sequential_#/residual_1/body/product/up/dense/kernel",
       edl::weight_order::pytorch},
      {"model.layers.#.mlp.down_proj.weight", "repeat/sequential_#/residual_1/body/dense/kernel",
       edl::weight_order::pytorch},
      {"model.norm.weight", "rms_normalization/gamma"},
      {"model.layers.#.self_attn.{q,k,v}_proj.bias",
       "repeat/sequential_#/residual/body/attention/query_key_value_bias"}};
  static constexpr std::span weight_names = std::span(published).first(std::size(published) - (Of::bias ? 0 : 1));

  static void feed(edl::example const& record, edl::sample<llama>& into, edl::mode) {
    auto const ids = record.integers("tokens", {length + 1});  // of --training_data=tokens:LENGTH:FILE
    for (std::size_t i = 0; i < length; ++i) {
      into.features(i) = float(ids[i]);
      into.label(i) = int(ids[i + 1]);
    }
  }
};
