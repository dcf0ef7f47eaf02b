// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "resnet.hpp"

/// The networks that are measured, as peer.py has them; the residual ones are those of examples/cifar10.
namespace bench {

namespace nn = edl::nn;

constexpr auto convolution(int filters, int stride = 1, int kernel = 3, bool bias = false) {
  return nn::conv2d{
      .filters = filters, .kernel = kernel, .stride = stride, .padding = nn::padding::same, .use_bias = bias};
}

/// ElasticDL's functional MNIST model.
inline constexpr auto mnist = nn::sequential(
    nn::image{.height = 28, .width = 28, .channels = 1}, nn::conv2d{.filters = 32, .kernel = 3}, nn::relu{},
    nn::conv2d{.filters = 64, .kernel = 3}, nn::relu{}, nn::batch_norm{}, nn::max_pool{.window = 2},
    nn::dropout{.rate = 0.25f}, nn::dense{.units = 10});

inline constexpr auto mlp = nn::sequential(nn::features{.count = 784}, nn::dense{.units = 512}, nn::relu{},
                                           nn::dense{.units = 512}, nn::relu{}, nn::dense{.units = 10});

/// ElasticDL's functional CIFAR-10 model.
inline constexpr auto cifar = nn::sequential(
    nn::image{.height = 32, .width = 32, .channels = 3}, convolution(32, 1, 3, true),
    nn::batch_norm{.epsilon = 1e-6f}, nn::relu{}, convolution(32, 1, 3, true),
    nn::batch_norm{.epsilon = 1e-6f}, nn::relu{}, nn::max_pool{.window = 2}, nn::dropout{.rate = 0.2f},
    convolution(64, 1, 3, true), nn::batch_norm{.epsilon = 1e-6f}, nn::relu{}, convolution(64, 1, 3, true),
    nn::batch_norm{.epsilon = 1e-6f}, nn::relu{}, nn::max_pool{.window = 2}, nn::dropout{.rate = 0.3f},
    convolution(128, 1, 3, true), nn::batch_norm{.epsilon = 1e-6f}, nn::relu{}, convolution(128, 1, 3, true),
    nn::batch_norm{.epsilon = 1e-6f}, nn::relu{}, nn::max_pool{.window = 2}, nn::dropout{.rate = 0.4f},
    nn::dense{.units = 10});

/// DeepFM with 26 columns of ids: a vector of 16 and a weight for each of a million, in one row.
inline constexpr int deepfm_columns = 26, deepfm_ids = 1'000'000;
inline constexpr auto deepfm_inputs =
    nn::inputs(nn::input<"ids">(nn::served_embedding{.count = deepfm_columns, .width = 17}));
inline constexpr auto deepfm_weights =
    nn::sequential(nn::slice{.first = 16}, nn::global_average_pool{}, nn::scale{deepfm_columns});
inline constexpr auto deepfm_deep =
    nn::sequential(nn::flatten{}, nn::dense{.units = 400}, nn::relu{}, nn::dense{.units = 400}, nn::relu{},
                   nn::dense{.units = 1});
inline constexpr auto deepfm_vectors =
    nn::sequential(nn::slice{.count = 16}, nn::sum(nn::factorization_machine{}, deepfm_deep));
inline constexpr auto deepfm = nn::sequential(
    deepfm_inputs, nn::concat(deepfm_inputs.from<"ids">(nn::sum(deepfm_weights, deepfm_vectors))));

/// nanoGPT's transformer for 256 characters of 65.
inline constexpr int letters = 65;
inline constexpr nn::dropout letters_dropout{.rate = 0.2f};
inline constexpr auto attention_block = nn::residual(
    nn::sequential(nn::layer_norm{}, nn::attention{.heads = 6, .causal = true}, letters_dropout));
inline constexpr auto perceptron_block =
    nn::residual(nn::sequential(nn::layer_norm{}, nn::dense{.units = 1536, .each_place = true}, nn::gelu{},
                                nn::dense{.units = 384, .each_place = true}, letters_dropout));
inline constexpr auto transformer =
    nn::sequential(nn::ids{.count = 256}, nn::embedding{.vocabulary = letters, .width = 384}, nn::positions{},
                   letters_dropout, nn::repeat<6>(nn::sequential(attention_block, perceptron_block)),
                   nn::layer_norm{}, nn::dense{.units = letters, .each_place = true});

/// The same networks as functions, with expressions where containers have kernels beside products.
namespace functions {

struct gelu {
  static constexpr bool recomputes = true;
  constexpr auto forward(auto x, auto&) const { return x * nn::normal_cdf(x); }
};
/// A block's result beside what went into it, of which some is dropped.
struct sum_with_dropout {
  double rate = 0.2;

  constexpr auto forward(auto x, auto branch, auto& layer) const {
    auto const kept = layer.random_uniform() >= rate;
    return x + nn::where(layer.training(), branch * kept / (1 - rate), branch);
  }
};
struct sum_of_places {
  constexpr auto forward(auto x, auto&) const { return nn::sum(x); }
};
struct interactions {
  constexpr auto forward(auto x, auto&) const {
    return 0.5 *
           nn::sum(nn::square(nn::sum(x, nn::places)) - nn::sum(nn::square(x), nn::places), nn::channels);
  }
};

constexpr auto block(auto x) {
  auto const a =
      nn::apply(sum_with_dropout{}, x, x | nn::layer_norm{} | nn::attention{.heads = 6, .causal = true});
  return nn::apply(sum_with_dropout{}, a,
                   a | nn::layer_norm{} | nn::dense{.units = 1536, .each_place = true} | gelu{} |
                       nn::dense{.units = 384, .each_place = true});
}
inline constexpr auto transformer = nn::graph(nn::ids{.count = 256}, [](auto x) {
  auto a = block(x | nn::embedding{.vocabulary = letters, .width = 384} | nn::positions{} |
                 nn::dropout{.rate = 0.2f});
  for (int i = 1; i < 6; ++i) a = block(a);
  return a | nn::layer_norm{} | nn::dense{.units = letters, .each_place = true};
});

inline constexpr auto deepfm = nn::graph(deepfm_inputs, [](auto rows) {
  auto const vectors = rows | nn::slice{.count = 16};
  auto const deep = vectors | nn::flatten{} | nn::dense{.units = 400} | nn::relu{} | nn::dense{.units = 400} |
                    nn::relu{} | nn::dense{.units = 1};
  return nn::sum(rows | nn::slice{.first = 16} | sum_of_places{}, vectors | interactions{}, deep);
});

}  // namespace functions

/// An LSTM of about as many parameters.
inline constexpr auto lstm =
    nn::sequential(nn::ids{.count = 256}, nn::embedding{.vocabulary = letters, .width = 640},
                   nn::repeat<3>(nn::sequential(nn::lstm{.units = 640}, letters_dropout)),
                   nn::dense{.units = letters, .each_place = true});

/// Multiplications of a forward pass over one sample.
template <edl::nn::layer L>
constexpr double forward_of(L const& l, edl::shape in) {
  if constexpr (edl::nn::container<L>) {
    double sum = 0;
    l.children(in, [&](auto const& child, edl::shape s, std::string_view) {
      sum += forward_of(child, s);
      return true;
    });
    return sum;
  } else if constexpr (std::same_as<L, nn::conv2d>) {
    auto const g = l.geometry(in);
    return double(g.positions()) * double(g.patch()) * double(g.out.channels);
  } else if constexpr (std::same_as<L, nn::dense>) {
    return double(l.rows(in, 1)) * double(l.inputs(in)) * double(l.units);
  } else if constexpr (std::same_as<L, nn::attention>) {
    double const places = in.height * in.width, seen = l.causal ? (places + 1) / 2 : places;
    return places * double(in.channels) * (4 * double(in.channels) + 2 * seen);
  } else if constexpr (std::same_as<L, nn::lstm>) {
    return double(in.height * in.width) * 4 * double(l.units) * double(in.channels + l.units);
  } else {
    return 0;
  }
}

}  // namespace bench
