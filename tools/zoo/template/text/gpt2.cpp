// SPDX-License-Identifier: Apache-2.0
// GPT-2 of 124 million parameters (Radford et al., "Language models are unsupervised multitask learners",
// 2019), with the names of its published weights: `--checkpoint_dir_for_init=model.safetensors` continues
// from them, and `generate
// --model_path=model.safetensors --tokenizer=tokenizer.json` writes texts. It trains on token files:
// --training_data=tokens:1024:FILE.
#include <edl/edl.hpp>

namespace nn = edl::nn;

/// GPT-2's approximation of gelu.
struct gelu_by_tanh {
  static constexpr std::string_view name = "gelu_by_tanh";
  constexpr auto forward(auto x, auto&) const {
    return 0.5f * x * (1 + nn::tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
  }
};

struct gpt2 {
  static constexpr int length = 1024, width = 768, heads = 12, blocks = 12, tokens = 50257;
  static constexpr nn::dropout dropout{.rate = 0.1f};
  static constexpr nn::layer_norm norm{.epsilon = 1e-5f};
  static constexpr nn::normal initial{.stddev = 0.02};

  static constexpr auto attention = nn::sequential(
      norm, nn::attention{.heads = heads, .causal = true, .dropout = 0.1f, .kernel_initializer = initial},
      dropout);
  static constexpr auto perceptron = nn::sequential(
      norm, nn::dense{.units = 4 * width, .each_place = true, .kernel_initializer = initial}, gelu_by_tanh{},
      nn::dense{.units = width, .each_place = true, .kernel_initializer = initial}, dropout);
  static constexpr auto network = nn::sequential(
      nn::ids{.count = length},
      nn::tied(nn::embedding{.vocabulary = tokens, .width = width, .initial = initial},
               nn::positions{.most = length, .initial = initial}, dropout,
               nn::repeat<blocks>(nn::sequential(nn::residual(attention), nn::residual(perceptron))), norm));
  static constexpr nn::sequence_cross_entropy loss{};
  static constexpr edl::adamw optimizer{.beta_2 = 0.95, .weight_decay = 0.1};
  static constexpr edl::warmup<edl::cosine_decay> schedule{
      .steps = 100, .then = {.rate = 6e-4f, .steps = 5000, .end = 6e-5f}};
  using metrics = edl::metrics<edl::mean_loss, edl::perplexity>;

  static constexpr edl::weight_name weight_names[] = {
      {"wte.weight", "embedding/embeddings"},
      {"wpe.weight", "positions/rows"},
      {"h.#.ln_1.weight", "repeat/sequential_#/residual/body/layer_normalization/gamma"},
      {"h.#.ln_1.bias", "repeat/sequential_#/residual/body/layer_normalization/beta"},
      {"h.#.attn.c_attn.weight", "repeat/sequential_#/residual/body/attention/query_key_value_kernel"},
      {"h.#.attn.c_attn.bias", "repeat/sequential_#/residual/body/attention/query_key_value_bias"},
      {"h.#.attn.c_proj.weight", "repeat/sequential_#/residual/body/attention/output_kernel"},
      {"h.#.attn.c_proj.bias", "repeat/sequential_#/residual/body/attention/output_bias"},
      {"h.#.ln_2.weight", "repeat/sequential_#/residual_1/body/layer_normalization/gamma"},
      {"h.#.ln_2.bias", "repeat/sequential_#/residual_1/body/layer_normalization/beta"},
      {"h.#.mlp.c_fc.weight", "repeat/sequential_#/residual_1/body/dense/kernel"},
      {"h.#.mlp.c_fc.bias", "repeat/sequential_#/residual_1/body/dense/bias"},
      {"h.#.mlp.c_proj.weight", "repeat/sequential_#/residual_1/body/dense_1/kernel"},
      {"h.#.mlp.c_proj.bias", "repeat/sequential_#/residual_1/body/dense_1/bias"},
      {"ln_f.weight", "layer_normalization/gamma"},
      {"ln_f.bias", "layer_normalization/beta"}};

  static void feed(edl::example const& record, edl::sample<gpt2>& into, edl::mode) {
    auto const ids = record.integers("tokens", {length + 1});  // of --training_data=tokens:1024:FILE
    for (std::size_t i = 0; i < length; ++i) {
      into.features(i) = float(ids[i]);
      into.label(i) = int(ids[i + 1]);
    }
  }
};

int main(int argc, char** argv) { return edl::run<gpt2>(argc, argv); }
