// SPDX-License-Identifier: Apache-2.0
// Writes networks with random variables as models of ONNX, with records and what edl makes of them:
// onnx_networks DIR. There is one for each family of layers, and for each kind of network of the examples and
// the zoo. tests/onnx.mjs computes them with ONNX Runtime.
#include <array>
#include <cmath>
#include <edl/edl.hpp>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>
#include <xtensor/xview.hpp>

#include "edl/compute/onnx/batch_norm_folding.hpp"
#include "edl/compute/onnx/network.hpp"
#include "edl/job/train/setup/feed_arithmetic.hpp"

namespace nn = edl::nn;
using nlohmann::json;

namespace onnx_networks {

constexpr int samples = 5;

/// An own layer, with its function.
struct shifted {
  static constexpr std::string_view name = "shifted";
  constexpr edl::fit check(edl::shape) const { return edl::fit::fits; }
  constexpr edl::shape output(edl::shape in) const { return in; }
  template <class Visit>
  constexpr void variables(edl::shape in, Visit&& visit) const {
    visit(nn::variable_spec{"offset", {in.channels}, nn::constant{0}});
  }
  template <class D>
  void forward(nn::pass<D>&, nn::forward_args<typename D::scalar> const& a) const {
    for (std::size_t i = 0; i < a.x.size(); ++i) a.y[i] = a.x[i] + a.parameters[i % a.parameters.size()];
  }
  template <class D>
  void backward(nn::pass<D>&, nn::backward_args<typename D::scalar> const&) const {}
};
edl::onnx::value to_onnx(edl::onnx::graph& g, shifted const&, edl::onnx::value const& x) {
  auto const from = g.as(x, edl::onnx::form::rows);
  return {g.add("Add", {from.name, g.variable("offset")}), x.extents};
}

/// Own layers without one: all operations, and a number for each sample.
struct expression {
  constexpr auto forward(auto x, auto& layer) const {
    auto const one = layer.variable("one", nn::constant{1});
    auto const t = layer.variable("wide", x.channels(), nn::constant{1}) * x +
                   layer.variable("tall", x.places(), nn::constant{1});
    auto const r = nn::where(t > 0.1, nn::exp(t * 0.3), nn::expm1(t)) +
                   nn::log(t * t + 1) / (2 + nn::abs(t)) + nn::sqrt(nn::abs(t)) +
                   nn::max(t, one) * nn::min(t, 0.2) + nn::pow(nn::abs(t) + 0.5, 1.5) + nn::gelu(t) +
                   nn::softplus(t) + (t <= x) * nn::tanh(t) - nn::sigmoid(-t) * nn::equal(t, t);
    return r * nn::mean(x, nn::places) + nn::softmax(r) / (1 + nn::variance(x, nn::channels)) +
           nn::logsumexp(x, nn::places | nn::channels) + nn::max(x, nn::channels);
  }
};
struct energy {
  constexpr auto forward(auto x, auto& layer) const {
    auto const greatest = nn::one_hot(nn::argmax(x, nn::channels), x.channels());
    auto const noise = nn::where(layer.training(), layer.random_normal(), 0);  // none in a prediction
    auto const seen = layer.statistic("seen", x.places(), nn::uniform{}),
               wide = layer.statistic("wide", x.channels(), nn::uniform{});
    layer.update(seen, x - seen, 0.9);
    layer.update(wide, x, 0.9);
    return nn::mean(nn::pow(x, 2) + nn::norm(x, nn::channels) * greatest + noise) +
           0.1 * nn::mean(nn::argmax(x, nn::places)) +
           nn::mean(nn::cumsum(x, nn::channels) * nn::cumsum(x, nn::places)) + nn::mean(seen * wide * x);
  }
};

constexpr nn::image picture{.height = 7, .width = 9, .channels = 4};
constexpr nn::padding same = nn::padding::same;

constexpr auto dense = nn::sequential(nn::features{.count = 6}, nn::dense{.units = 5}, shifted{}, nn::relu{},
                                      nn::scale{.factor = 3}, nn::dense{.units = 4, .use_bias = false});
constexpr auto expressions = nn::sequential(picture, expression{}, nn::conv2d{.filters = 3}, nn::layer_norm{},
                                            nn::concat(expression{}, nn::tanh{}), energy{});
constexpr auto conv2d = nn::sequential(
    picture, nn::conv2d{.filters = 4, .kernel = {3, 2}, .stride = 2, .padding = nn::padding::half},
    nn::conv2d{.filters = 6, .kernel = {3, 2}, .stride = {2, 1}, .padding = same, .groups = 2}, nn::relu{},
    nn::conv2d{.filters = 3, .kernel = 2, .use_bias = false}, nn::flatten{}, nn::dense{.units = 3});
constexpr auto transpose =
    nn::sequential(picture, nn::conv2d_transpose{.filters = 3, .kernel = 3, .stride = 2, .padding = same},
                   nn::relu{}, nn::conv2d_transpose{.filters = 2, .kernel = 2, .stride = 3},
                   nn::conv2d_transpose{.filters = 2, .kernel = 4});
constexpr auto pools =
    nn::sequential(picture,
                   nn::concat(nn::max_pool{.window = 3, .stride = 2, .padding = same},
                              nn::average_pool{.window = 3, .stride = 2, .padding = same}),
                   nn::max_pool{.window = {2, 3}}, nn::upsample{.factor = {2, 3}}, nn::average_pool{},
                   nn::concat(nn::global_average_pool{}, nn::global_max_pool{}));
constexpr auto norms =
    nn::sequential(picture, nn::batch_norm{}, nn::conv2d{.filters = 8}, nn::group_norm{.groups = 4},
                   nn::batch_norm{.scale = false, .shift_gain = 4}, nn::layer_norm{},
                   nn::dense{.units = 5, .each_place = true}, nn::flatten{}, nn::batch_norm{});
/// Batch normalisation behind whatever it is folded into, and behind others.
constexpr auto foldable = nn::sequential(
    picture, nn::batch_norm{}, nn::conv2d{.filters = 6, .kernel = 3, .padding = same, .groups = 2},
    nn::batch_norm{}, nn::batch_norm{.scale = false, .shift_gain = 4}, nn::relu{},
    nn::conv2d_transpose{.filters = 5, .kernel = 2, .stride = 2, .use_bias = false}, nn::batch_norm{},
    nn::residual(nn::sequential(
        nn::batch_norm{}, nn::dense{.units = 5, .each_place = true, .use_bias = false}, nn::batch_norm{})),
    nn::dense{.units = 4, .each_place = true}, nn::batch_norm{}, nn::gelu{},
    nn::conv2d{.filters = 3, .kernel = {14, 18}, .use_bias = false}, nn::batch_norm{}, nn::silu{},
    nn::flatten{}, nn::batch_norm{}, nn::dense{.units = 4, .use_bias = false}, nn::batch_norm{},
    nn::dense{.units = 3}, nn::batch_norm{});
constexpr auto activations = nn::sequential(
    nn::features{.count = 9},
    nn::concat(nn::relu{}, nn::leaky_relu{}, nn::sigmoid{}, nn::tanh{}, nn::gelu{}, nn::silu{}, nn::elu{},
               nn::softplus{}, nn::scale{.factor = -2}, nn::slice{.first = 2, .count = 3}, nn::softmax{},
               nn::log_softmax{}, nn::dropout{}, nn::identity{}));
constexpr auto branches = nn::sequential(
    picture,
    nn::residual(nn::sequential(nn::conv2d{.filters = 4, .kernel = 3, .padding = same}, nn::batch_norm{})),
    nn::residual(nn::conv2d{.filters = 6, .stride = 2, .padding = same},
                 nn::conv2d{.filters = 6, .stride = 2, .padding = same}),
    nn::repeat<2>(nn::sum(nn::conv2d{.filters = 6}, nn::product(nn::identity{}, nn::sigmoid{}))),
    nn::softmax{}, nn::slice{.first = 1, .count = 4});
/// Functions: skips, layers that are shared, one of which is given an input and one a result, joints of
/// inputs.
constexpr auto functions = nn::graph(picture, [](auto x) {
  auto const norm =
      nn::shared<"norm/of/two">(nn::conv2d{.filters = 4, .kernel = 3, .padding = same}, nn::batch_norm{});
  auto const a = (x | norm | nn::relu{}) + x;
  auto const b = a | norm | nn::conv2d{.filters = 4} | nn::residual(nn::conv2d{.filters = 4});
  auto const gate = b | nn::global_average_pool{} | nn::dense{.units = 4} | nn::sigmoid{};
  auto const c = b * (gate | nn::upsample{.factor = {7, 9}});
  return nn::concat(c, a, x * x) | nn::graph([](auto in) { return in + (in | nn::tanh{}); }) |
         nn::dense{.units = 3};
});
/// Operations between results, of pictures whose channels come first as well.
constexpr auto operations = nn::graph(picture, [](auto x) {
  auto const a = x | nn::conv2d{.filters = 6, .kernel = 3};
  auto const scores = nn::matmul(a, a | nn::transpose{}) | nn::scale{.factor = 0.1f} | nn::softmax{};
  auto const mixed = nn::matmul(scores, a) | nn::reshape{.height = 7, .width = 0, .channels = 6};
  auto const b = mixed | nn::conv2d{.filters = 4, .kernel = 2} | nn::reshape{.width = 8, .channels = 12} |
                 nn::slice{.first = 2, .count = 5, .along = nn::places};
  return nn::concat(a | nn::reshape{.width = 5, .channels = 42} | nn::slice{.first = 7, .count = 3}, b,
                    a | nn::pad{.before = {1, 0}, .after = {0, 1}, .channels_before = 2, .value = -1} |
                        nn::conv2d{.filters = 5} | nn::reshape{.width = 5, .channels = 48}) |
         nn::transpose{} | nn::slice{.first = 1, .count = 3} | nn::flatten{} | nn::reshape{.width = 3} |
         nn::pad{.after = {0, 2}, .channels_after = 1, .value = 2};
});
constexpr auto decoder =
    nn::graph(nn::inputs(nn::input<"source">(nn::ids{.count = 6}), nn::input<"target">(nn::ids{.count = 4})),
              [](auto source, auto target) {
                auto const words = nn::shared<"words">(
                    nn::embedding{.vocabulary = 12, .width = 8, .initial = nn::normal{.stddev = 1}},
                    nn::positions{.most = 6});
                auto const memory = source | words | nn::residual(nn::attention{.heads = 2});
                auto const before = target | words | nn::residual(nn::attention{.heads = 2, .causal = true});
                auto const once = nn::cross_attention(before, memory, {.heads = 4}) + before;
                return nn::cross_attention(once | nn::layer_norm{}, memory, {.heads = 2, .use_bias = false}) |
                       nn::dense{.units = 5, .each_place = true};
              });
constexpr auto towers = nn::graph(
    nn::inputs(nn::input<"read">(nn::ids{.count = 3}), nn::input<"page">(nn::ids{.count = 1}),
               nn::input<"numbers">(nn::features{.count = 2})),
    [](auto read, auto page, auto numbers) {
      auto const titles = nn::shared<"titles">(nn::embedding{.vocabulary = 9, .width = 4});
      auto const tower = nn::shared<"tower">(nn::dense{.units = 5}, nn::relu{}, nn::dense{.units = 3});
      auto const user = read | titles | nn::global_average_pool{} | tower;
      auto const item = page | titles | nn::flatten{} | tower;
      return nn::concat(user * item, numbers, numbers | nn::dense{.units = 2}) | nn::dense{.units = 2};
    });
/// Of a picture whose channels come first, and of an input.
constexpr auto gathered = nn::graph(
    nn::inputs(nn::input<"picture">(picture), nn::input<"at">(nn::ids{.count = 4})), [](auto x, auto at) {
      auto const a = x | nn::conv2d{.filters = 3, .kernel = 2} | nn::relu{};
      auto const b = a | nn::dense{.units = 5, .each_place = true};
      return nn::concat(nn::gather(a, at), nn::gather(b, at)) | nn::dense{.units = 2, .each_place = true};
    });
constexpr auto bags = [] {
  constexpr auto in =
      nn::inputs(nn::input<"weighted">(nn::weighted_ids{.most = 4}), nn::input<"ids">(nn::ids{.count = 3}),
                 nn::input<"numbers">(nn::features{.count = 2}));
  return nn::sequential(
      in, nn::concat(in.from<"weighted">(
                         nn::embedding_bag{.vocabulary = 9, .width = 3, .combiner = nn::combiner::mean}),
                     in.from<"weighted">(
                         nn::embedding_bag{.vocabulary = 9, .width = 2, .combiner = nn::combiner::sqrtn}),
                     in.from<"ids">(nn::embedding_bag{.vocabulary = 5, .width = 3, .mask_zero = true}),
                     in.from<"ids">(nn::embedding{.vocabulary = 5, .width = 3}, nn::factorization_machine{}),
                     in.from<"numbers">()));
}();
constexpr auto products = nn::sequential(
    nn::ids{.count = 4}, nn::embedding{.vocabulary = 11, .width = 3},
    nn::concat(nn::cross{.layers = 2}, nn::cross{.layers = 2, .vectors = true},
               nn::compressed_interaction{.layers = 3, .maps = 4}, nn::factorization_machine{}));
constexpr auto served = [] {
  constexpr auto in =
      nn::inputs(nn::input<"words">(nn::served_embedding{.count = 3, .width = 4}),
                 nn::input<"numbers">(nn::features{.count = 2}),
                 nn::input<"history">(nn::served_embedding_bag{
                     .most = 4, .width = 2, .combiner = nn::combiner::mean, .initial = nn::constant{0.5}}));
  return nn::sequential(in, nn::concat(in.from<"words">(nn::factorization_machine{}), in.from<"numbers">(),
                                       in.from<"history">()));
}();
constexpr auto attention =
    nn::sequential(nn::ids{.count = 6}, nn::embedding{.vocabulary = 12, .width = 8}, nn::positions{.most = 9},
                   nn::sinusoidal_positions{}, nn::residual(nn::attention{.heads = 2, .causal = true}),
                   nn::attention{.heads = 4, .key_value_heads = 2, .rotary = true, .use_bias = false},
                   nn::attention{.heads = 2,
                                 .causal = true,
                                 .rotary = true,
                                 .interleaved = true,
                                 .window = 3,
                                 .softcap = 2,
                                 .qk_norm = true});
constexpr auto recurrent = nn::sequential(
    nn::ids{.count = 6}, nn::embedding{.vocabulary = 12, .width = 5, .initial = nn::normal{.stddev = 1}},
    nn::bidirectional(nn::lstm{.units = 4}), nn::bidirectional(nn::gru{.units = 3}),
    nn::concat(nn::lstm{.units = 4, .last = true}, nn::lstm{.units = 3, .reverse = true, .last = true},
               nn::gru{.units = 4, .last = true}));
/// Padding between ids, too.
constexpr auto padded = nn::sequential(
    nn::ids{.count = 6},
    nn::masked(
        nn::embedding{.vocabulary = 12, .width = 8, .initial = nn::normal{.stddev = 1}},
        nn::bidirectional(nn::lstm{.units = 4}), nn::residual(nn::attention{.heads = 2, .causal = true}),
        nn::attention{.heads = 2, .rotary = true},
        nn::concat(nn::global_average_pool{}, nn::global_max_pool{}, nn::lstm{.units = 3, .last = true},
                   nn::gru{.units = 3, .reverse = true, .last = true})));
constexpr auto lengths = [] {
  constexpr auto in =
      nn::inputs(nn::input<"words">(nn::ids{.count = 6}), nn::input<"length">(nn::length{.most = 6}));
  return nn::sequential(
      in, nn::masked(in.mask<"length">(), in.from<"words">(nn::embedding{.vocabulary = 12, .width = 4}),
                     nn::bidirectional(nn::gru{.units = 4}), nn::attention{}));
}();

/// Expressions of several results, which have some axes, and of the input.
struct blend {
  static constexpr nn::axes inputs[] = {nn::channels | nn::places, nn::channels | nn::places, nn::channels,
                                        nn::places};
  constexpr auto forward(auto a, auto b, auto scale, auto mask, auto& layer) const {
    auto const weights = nn::softmax(layer.variable("by", nn::constant{1}) * mask, nn::places);
    return a * weights + nn::tanh(b * scale) + layer.variable("shift", a.channels(), nn::constant{0});
  }
};
struct summary {
  constexpr auto forward(auto a, auto b, auto&) const { return nn::max(a * b, nn::places) + nn::mean(b); }
};
constexpr auto applied = nn::graph(picture, [](auto x) {
  auto const a = x | nn::conv2d{.filters = 4, .kernel = 3, .padding = same} | nn::relu{};
  auto const scale = x | nn::global_max_pool{} | nn::dense{.units = 4};
  auto const b = nn::apply(blend{}, a, x, scale, a | nn::conv2d{.filters = 1});
  auto const c = nn::apply(blend{}, b, a, scale, x | nn::conv2d{.filters = 1});
  return nn::concat(nn::apply(summary{}, b, c), scale) | nn::dense{.units = 3};
});
/// Masks of results, by a length and by ids.
constexpr auto words_of_length =
    nn::inputs(nn::input<"words">(nn::ids{.count = 6}), nn::input<"length">(nn::length{.most = 6}));
constexpr auto by_length = words_of_length.mask<"length">();
constexpr auto masked_by_length = nn::graph(words_of_length, [](auto words, auto) {
  auto const a = words | nn::embedding{.vocabulary = 12, .width = 4};
  auto const b = a | nn::masked(by_length, nn::attention{}) | nn::dense{.units = 4, .each_place = true};
  return nn::concat(a + b | nn::masked(by_length, nn::gru{.units = 4, .last = true}),
                    b | nn::masked(by_length, nn::global_average_pool{}));
});
constexpr auto masked_by_ids = nn::graph(nn::ids{.count = 6}, [](auto x) {
  auto const a = x | nn::masked(nn::embedding{.vocabulary = 12, .width = 8}, nn::attention{.heads = 2});
  return a * a | nn::masked(nn::bidirectional(nn::lstm{.units = 2, .last = true}));
});

/// Draws records of a network, and holds them as ONNX takes them, by name, and as rows of samples.
template <class Net>
class records {
 public:
  explicit records(Net const& net) : net_(net), row_(net.input.size()), rows_(samples * row_) {
    vocabularies(net.start);
    draw(net.start);
  }
  json const& inputs() const { return inputs_; }
  /// With rows of tables in place of their ids.
  json inputs_of_rows() const {
    json all = inputs_;
    for (auto const& [name, value] : rows_of_.items()) all.erase(name), all[name + "_rows"] = value;
    return all;
  }
  edl::view<float> rows() const { return rows_; }
  std::vector<edl::onnx::table_rows> const& tables() const { return tables_; }

 private:
  template <class Start>
  void vocabularies(Start const&) {
    nn::for_each_ids(net_.body, net_.input, nn::ids_of(net_.input),
                     [&](nn::id_range of, int vocabulary, bool) { below_[of.first] = vocabulary; });
  }
  template <class... Named>
  void vocabularies(nn::input_list<Named...> const&) {
    nn::for_each_ids(net_.body, net_.input, nn::id_range{},
                     [&](nn::id_range of, int vocabulary, bool) { below_[of.first] = vocabulary; });
  }
  template <class Start>
  void draw(Start const& start) {
    one("input", "input", start, 0);
  }
  template <class... Named>
  void draw(nn::input_list<Named...> const& all) {
    std::size_t first = 0;
    std::apply(
        [&](auto const&... n) {
          (...,
           (one(std::string(n.name), std::string(n.table), n.spec, first), first += n.spec.input().size()));
        },
        all.all);
  }

  int below(int n) { return std::uniform_int_distribution(0, n - 1)(random_); }
  float number() { return std::normal_distribution<float>()(random_); }
  template <class T>
  void add(std::string const& name, std::vector<int> dims, std::vector<T> const& data) {
    dims.insert(dims.begin(), samples);
    inputs_[name] = {{"type", std::is_same_v<T, float> ? "float32" : "int64"}, {"dims", dims}};
    if constexpr (std::is_same_v<T, float>)
      inputs_[name]["data"] = data;
    else
      for (T const id : data) inputs_[name]["data"].push_back(std::to_string(id));
  }

  template <class Kind>
  void one(std::string const& name, std::string const& table, Kind const& kind, std::size_t first) {
    std::size_t const size = kind.input().size();
    std::vector<float> numbers;
    std::vector<std::int64_t> ids;
    auto const row = [&](int sample) { return rows_.data() + std::size_t(sample) * row_ + first; };
    if constexpr (nn::holds_rows<Kind>) {
      auto const& t = known(table, kind);
      constexpr bool bag = std::is_same_v<Kind, nn::served_embedding_bag>;
      bool mean = false;
      if constexpr (bag) mean = kind.combiner == nn::combiner::mean;
      int const count = nn::ids_of_sample(kind);
      std::vector<float> looked_up;
      for (int s = 0; s < samples; ++s) {
        float sum = 0;
        for (int i = 0; i < count; ++i) {
          int const which = below(int(t.ids.size()) + 1);  // one of them has no row
          ids.push_back(which < int(t.ids.size()) ? t.ids[std::size_t(which)] : -7);
          for (int k = 0; k < kind.width; ++k) looked_up.push_back(row_of(t, which, k));
          float const weight = bag ? (s == 0 ? 0 : float(below(3))) : 1;
          sum += weight;
          numbers.push_back(weight);
          for (int k = 0; k < kind.width; ++k)
            row(s)[(bag ? 0 : i * kind.width) + k] += weight * row_of(t, which, k);
        }
        if (mean && sum > 0)
          for (int k = 0; k < kind.width; ++k) row(s)[k] /= sum;
      }
      add(name, {count}, ids);
      rows_of_[name] = {{"type", "float32"}, {"dims", {samples, count, kind.width}}, {"data", looked_up}};
      if (bag) add(name + "_weights", {count}, numbers);
    } else if constexpr (std::is_same_v<Kind, nn::weighted_ids>) {
      for (int s = 0; s < samples; ++s)
        for (int i = 0; i < kind.most; ++i) {
          ids.push_back(i < s ? below(below_.at(int(first))) : -1);
          numbers.push_back(i < s ? number() : 0);
          row(s)[i] = float(ids.back());
          row(s)[kind.most + i] = numbers.back();
        }
      add(name, {kind.most}, ids);
      add(name + "_weights", {kind.most}, numbers);
    } else if constexpr (nn::holds_ids<Kind>) {
      for (int s = 0; s < samples; ++s)
        for (std::size_t i = 0; i < size; ++i) {
          ids.push_back(s == 0 || below(3) == 0 ? 0 : below(below_.at(int(first))));
          row(s)[i] = float(ids.back());
        }
      add(name, {int(size)}, ids);
    } else {
      bool const ink =
          std::is_same_v<Kind, nn::image> && kind.input().channels == 1;  // which is not negative
      for (int s = 0; s < samples; ++s)
        for (std::size_t i = 0; i < size; ++i)
          numbers.push_back(row(s)[i] = ink ? std::abs(number()) : number());
      if constexpr (std::is_same_v<Kind, nn::image>)
        add(name, {kind.height, kind.width, kind.channels}, numbers);
      else
        add(name, {int(size)}, numbers);
    }
  }

  template <class Kind>
  edl::onnx::table_rows const& known(std::string const& table, Kind const& kind) {
    for (auto const& t : tables_)
      if (t.name == table) return t;
    edl::onnx::table_rows t{
        .name = table, .width = kind.width, .absent = 0.5f, .ids = {3, 1, -1, 1LL << 60}, .each = {}};
    t.each = [width = kind.width, n = t.ids.size()](edl::onnx::table_rows::sink const& to) {
      for (std::size_t r = 0; r < n; ++r)
        for (int k = 0; k < width; ++k) {
          float const one = float(r + 1) / float(k + 2);
          to({&one, 1});
        }
    };
    return tables_.emplace_back(std::move(t));
  }
  static float row_of(edl::onnx::table_rows const& t, int which, int k) {
    return which < int(t.ids.size()) ? float(which + 1) / float(k + 2) : t.absent;
  }

  Net const& net_;
  std::size_t row_;
  std::vector<float> rows_;
  std::mt19937 random_{7};
  std::map<int, int> below_;
  std::vector<edl::onnx::table_rows> tables_;
  json inputs_, rows_of_;
};

/// Writes DIR/NAME.onnx and DIR/NAME.json.
template <auto const& Net>
void write(std::string const& directory, std::string const& name, edl::onnx::output_names const& heads = {},
           edl::hyperparameter_view set = {}, std::uint64_t most = std::uint64_t(1) << 30) {
  using network = edl::model<Net, edl::any_device>;
  network net({.max_batch = samples,
               .device = std::make_shared<edl::cpu>(edl::cpu_options{.kernels = edl::kernels::fixed}),
               .set = set});
  std::mt19937 random(11);
  auto const layout = network::layout();
  for (edl::variable const& v : layout.variables)  // as after some training
    for (float& x : net.variables().subspan(v.offset, v.dims.size()))
      if (v.dims.rank == 1)
        x = 0.5f + std::uniform_real_distribution<float>()(random);
      else if (v.name.ends_with("embeddings"))
        x *= 20;
  records const given(Net);
  auto const y = net.forward(given.rows(), samples, edl::mode::prediction);
  auto const one = [&](std::string const& variant, json const& inputs, auto const& change) {
    edl::onnx::graph g(layout, net.variables(), given.tables());
    g.set(set);
    if (!change(g, false)) return;
    edl::onnx::add_network(g, Net, heads);
    if (!change(g, true)) return;
    g.write(directory + "/" + name + variant + ".onnx", most);
    std::ofstream(directory + "/" + name + variant + ".json")
        << json{{"inputs", inputs}, {"outputs", std::vector<float>(y.begin(), y.end())}};
  };
  one("", given.inputs(), [](auto&, bool) { return true; });
  one("_folded", given.inputs(),
      [](auto& g, bool added) { return !added || !edl::onnx::fold_batch_norms(g).gone.empty(); });
  one("_rows", given.inputs_of_rows(), [&](auto& g, bool) {
    g.leave_tables_out();
    return !given.tables().empty();
  });
}

/// Inputs that arithmetic makes of a record: a turned part of a picture by means of channels, numbers of
/// several features, and one that nothing changes.
struct prepared {
  static constexpr auto in =
      nn::inputs(nn::input<"picture">(nn::image{.height = 2, .width = 3, .channels = 2}),
                 nn::input<"numbers">(nn::features{.count = 4}), nn::input<"plain">(nn::features{.count = 3}),
                 nn::input<"word">(nn::ids{.count = 1}));
  static constexpr auto network = nn::sequential(
      in, nn::concat(in.from<"picture">(nn::conv2d{.filters = 2, .kernel = 2}, nn::flatten{}),
                     in.from<"numbers">(nn::dense{.units = 3}), in.from<"plain">(),
                     in.from<"word">(nn::embedding{.vocabulary = 9, .width = 2}, nn::flatten{})));
  static constexpr nn::mean_squared_error loss{};
  static void feed(edl::example const& record, edl::sample<prepared>& into, edl::mode) {
    static xt::xtensor_fixed<float, xt::xshape<2>> const mean{0.5f, 0.25f}, deviation{0.2f, 0.3f};
    into.input<"picture">() =
        (xt::view(record.floats("image", {4, 3, 2}), xt::range(1, 3)) / 255.0f - mean) / deviation;
    auto numbers = into.input<"numbers">();
    numbers(0) = (float(record.integer("year")) - 1990) / 12;
    numbers(1) = 1;
    numbers(2) = record.contains("height") ? record.floating("height") * -2 : 0;
    numbers(3) = record.floats("image", {4, 3, 2})(0, 1, 1);
    into.input<"plain">() = record.floats("plain");
    into.input<"word">()(0) = float(record.bytes("word").size());
  }
};

void write_prepared(std::string const& directory) {
  auto const p = edl::author::make_program<prepared>();
  std::vector<float> variables(p.layout.size());
  p.initialise(5, 0, variables);
  auto const trainer = p.make_trainer({.max_batch = samples, .predicts_with = variables});
  trainer->variables_written();
  auto batch = trainer->make_batch();
  json inputs;
  auto const input = [&](char const* name, char const* type, std::vector<int> dims) -> json& {
    inputs[name] = {{"type", type}, {"dims", dims}};
    return inputs[name]["data"];
  };
  json &image = input("image", "float32", {samples, 4, 3, 2}), &year = input("year", "float32", {samples, 1}),
       &height = input("height", "float32", {samples, 1}), &plain = input("plain", "float32", {samples, 3}),
       &word = input("word", "int64", {samples, 1});
  for (int s = 0; s < samples; ++s) {
    edl::example record;
    {
      edl::example_builder to(record);
      for (int i = 0; std::int64_t& x : to.integers("image", 24))
        image.push_back(x = (s * 91 + i++ * 37) % 256);
      year.push_back(to.integers("year", 1)[0] = 1980 + 7 * s);
      height.push_back(to.floats("height", 1)[0] = 0.3f * float(s) - 1);
      for (float i = 0; float& x : to.floats("plain", 3)) plain.push_back(x = float(s) - i++);
      to.bytes("word", std::string_view("abcdefgh").substr(0, std::size_t(s)));
      word.push_back(std::to_string(s));
    }
    trainer->feed(record, batch, s, edl::mode::prediction);
  }
  batch.rows = samples;
  auto const y = trainer->predict(batch);
  edl::onnx::graph g(p.layout, variables);
  for (auto const& [name, of] : edl::train::arithmetic_of_feed(p)) g.prepare(name, of);
  p.to_onnx(g);
  g.write(directory + "/prepared.onnx");
  std::ofstream(directory + "/prepared.json")
      << json{{"inputs", inputs}, {"outputs", std::vector<float>(y.begin(), y.end())}};
}

}  // namespace onnx_networks

namespace edl {

/// What main functions of the examples and the zoo call in place of `run`.
template <class Model>
int written(int, char** argv) {
  author::hyperparameters_of<Model> const set{};
  onnx_networks::write<Model::network>(argv[1], argv[0],
                                       author::head_names<typename model_traits<Model>::loss_type>(),
                                       hyperparameter_view(set));
  return 0;
}

}  // namespace edl

#define run written
namespace mnist_main {
#include "../../examples/mnist/main.cpp"
}
namespace mnist_accurate {
#include "../../examples/mnist/accurate.cpp"
}
namespace cifar10_resnet20 {
#include "../../tools/zoo/template/cifar10/cifar10_resnet20.cpp"
}
namespace cifar10_mobilenetv2 {
#include "../../tools/zoo/template/cifar10/cifar10_mobilenetv2.cpp"
}
namespace census_main {
#include "../../examples/census/main.cpp"
}
namespace criteo_dcn {
#include "../../tools/zoo/template/criteo/criteo_dcn.cpp"
}
namespace criteo_xdeepfm {
#include "../../tools/zoo/template/criteo/criteo_xdeepfm.cpp"
}
namespace criteo_wide_deep {
#include "../../tools/zoo/template/criteo/criteo_wide_deep.cpp"
}
namespace criteo_deepfm_served {
#include "../../tools/zoo/template/criteo/criteo_deepfm_served.cpp"
}
namespace char_lstm {
#include "../../tools/zoo/template/text/char_lstm.cpp"
}
namespace char_transformer {
#include "../../tools/zoo/template/text/char_transformer.cpp"
}
namespace sentence_classifier {
#include "../../tools/zoo/template/text/sentence_classifier.cpp"
}
namespace pictures_main {
#include "../../examples/pictures/main.cpp"
}
namespace mnist_subclass {
#include "../../tools/zoo/template/mnist/mnist_subclass.cpp"
}
namespace imagenet_resnet50 {
#include "../../tools/zoo/template/imagenet/imagenet_resnet50.cpp"
}
#undef run

int main(int, char** argv) {
  using namespace onnx_networks;
  std::string const to = argv[1];
  write<dense>(to, "dense", {{"first", 3}, {"second", 1}});
  write<onnx_networks::conv2d>(to, "conv2d");
  write<expressions>(to, "expressions");
  write<transpose>(to, "transpose");
  write<functions>(to, "functions");
  write<operations>(to, "operations");
  write<decoder>(to, "decoder");
  write<towers>(to, "towers");
  write<gathered>(to, "gathered");
  write<pools>(to, "pools");
  write<norms>(to, "norms");
  write<foldable>(to, "foldable");
  write_prepared(to);
  write<activations>(to, "activations");
  write<branches>(to, "branches");
  write<bags>(to, "bags");
  write<products>(to, "products");
  write<served>(to, "served");
  write<onnx_networks::attention>(to, "attention");
  write<recurrent>(to, "recurrent");
  write<padded>(to, "padded");
  write<lengths>(to, "lengths");
  write<applied>(to, "applied");
  write<masked_by_length>(to, "masked_by_length");
  write<masked_by_ids>(to, "masked_by_ids");
  write<onnx_networks::conv2d>(to, "external", {}, {}, 0);
  auto const one = [&](auto* of, char const* name) {
    char* words[] = {const_cast<char*>(name), argv[1], nullptr};
    of(1, words);
  };
#define ONE(name) one(name::main, #name)
  ONE(mnist_main), ONE(mnist_accurate), ONE(mnist_subclass), ONE(cifar10_resnet20), ONE(cifar10_mobilenetv2);
  ONE(imagenet_resnet50), ONE(pictures_main), ONE(census_main), ONE(criteo_dcn), ONE(criteo_xdeepfm);
  ONE(criteo_wide_deep), ONE(criteo_deepfm_served), ONE(char_lstm), ONE(char_transformer);
  ONE(sentence_classifier);
}
