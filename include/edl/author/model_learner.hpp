// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "edl/author/model_traits.hpp"
#include "edl/author/sample.hpp"
#include "edl/author/shortened.hpp"
#include "edl/compute/device/any_device.hpp"
#include "edl/compute/nn/layer/lengths.hpp"
#include "edl/compute/nn/loss/on_accelerator.hpp"
#include "edl/compute/nn/model.hpp"
#include "edl/compute/nn/takes_ids.hpp"
#include "edl/compute/optim/decay.hpp"
#include "edl/compute/optim/on_accelerator.hpp"
#include "edl/compute/optim/optimizer.hpp"
#include "edl/compute/optim/part_rates.hpp"
#include "edl/compute/sparse/network_embeddings.hpp"
#include "edl/core/options_fit.hpp"
#include "edl/core/partition.hpp"
#include "edl/job/train/trainers/learner.hpp"
#include "edl/job/train/trainers/trainers.hpp"
#include "edl/job/worker/trainer.hpp"

namespace edl::author {

namespace detail {

/// Throws data_error: a label is not one of the network's outputs, or the loss does not take it. Also for a
/// weight that is below 0 or not a number.
[[noreturn]] void refuse_label(std::int64_t label, std::size_t outputs);
[[noreturn]] void refuse_label(std::int64_t label, std::size_t outputs, std::size_t place);
[[noreturn]] void refuse_label(float label);
[[noreturn]] void refuse_padding_label(std::int64_t label, std::size_t place);
[[noreturn]] void refuse_weight(float weight);

/// Throws usage_error: the user's settings put an option of this member of the model out of range.
[[noreturn]] void refuse_options(char const* member);

/// Throws error: there is not enough memory for `most` samples at a time.
[[noreturn]] void refuse_memory(model_memory const& of_one, model_memory const& of_all, int most);

/// Throws data_error unless all ids of the range are whole numbers below the vocabulary, or, with `none`, -1.
void check_ids(view<float> features, nn::id_range ids, int vocabulary, bool none);

/// Throws error if `feed` never names an input that a record may leave empty, or that starts as padding.
template <class Model>
void check_names() {
  constexpr auto& net = Model::network;
  auto const inputs = nn::input_places(net.start);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    bool empty = inputs[i].list;
    nn::for_each_padding(net.body, net.input, nn::id_range{}, [&](nn::id_range of, int) {
      empty = empty || (of.count > 0 && std::size_t(of.first) == inputs[i].first);
    });
    if (empty && !inputs[i].name.empty() && !edl::detail::names_input<Model>[i])
      refuse_unused_input(inputs[i].name);
  }
}

/// The name of one of a sample's labels.
template <class Loss>
std::string label_name([[maybe_unused]] std::size_t place, [[maybe_unused]] std::size_t labels) {
  if constexpr (requires(Loss const& l) { std::tuple_size<decltype(l.all)>::value; }) {
    std::string name;
    std::size_t first = 0;
    [&]<class... Heads>(std::type_identity<std::tuple<Heads...>>) {
      (..., [&] {
        if (place >= first && place < first + Heads::labels)
          name = "`into.head<\"" + std::string(Heads::name) + "\">()`";
        first += Heads::labels;
      }());
    }(std::type_identity<std::remove_cvref_t<decltype(std::declval<Loss const&>().all)>>{});
    return name;
  } else {
    return labels == 1 ? "`into.label`" : "`into.label(" + std::to_string(place) + ")`";
  }
}

/// Throws usage_error if these values put an option of a member of the model out of range. The compiler has
/// checked members that are constants.
template <class Model>
void check_options(hyperparameters_of<Model> const& set) {
  constexpr shape output = model<Model::network, any_device>::output;
  if (!nn::options_fit(edl::detail::loss_of<Model>(set), output)) refuse_options("loss");
  if (!options_fit(edl::detail::optimizer_of<Model>(set))) refuse_options("optimizer");
  if (!options_fit(edl::detail::schedule_of<Model>(set))) refuse_options("schedule");
  if (!options_fit(edl::detail::augmentation_of<Model>(set))) refuse_options("augmentation");
}

/// Whether a loss takes a label; that may depend on its position among the sample's labels.
template <class Loss>
bool valid_label(float label, shape output, std::size_t place) {
  if constexpr (requires { Loss::valid(label, output, place); })
    return Loss::valid(label, output, place);
  else
    return Loss::valid(label, output);
}

}  // namespace detail

/// A user's Model as a `learner`.
template <class Model>
class model_learner final : public train::learner {
  using traits = model_traits<Model>;
  using network = model<Model::network, any_device>;
  using sample_type = sample<Model>;
  static constexpr shape input = network::input, output = network::output;
  static constexpr bool weighted = sample_type::weighted;
  static constexpr std::size_t labels = traits::loss_type::labels(output);
  static constexpr bool classes = traits::loss_type::class_labels;
  static constexpr bool steps_whole = whole_optimizer<typename traits::optimizer_type>;
  static constexpr bool optimizer_on_gpu =
      steps_whole ? optimizes_whole_on_accelerator<typename traits::optimizer_type>
                  : optimizes_on_accelerator<typename traits::optimizer_type>;
  static constexpr bool plans_lengths = nn::plans_lengths(Model::network.start);

 public:
  using hyperparameters = typename traits::hyperparameters;

  model_learner(std::shared_ptr<backend> on, worker::trainer_options const& o,
                hyperparameters const& set = {})
      : train::learner({.input = input,
                        .output = output,
                        .parameters = network::parameter_count,
                        .state = network::state_count,
                        .labels = labels,
                        .class_labels = classes,
                        .of_ids = Model::network.of_ids,
                        .embeddings = sparse::embedding_layout_of(Model::network.start),
                        .totals = traits::metrics::totals,
                        .augments = traits::augments,
                        .places = traits::places,
                        .averages = traits::averages,
                        .views = traits::evaluation.views,
                        .views_share = traits::evaluation.share,
                        .loss_on_gpu = nn::runs_on_accelerator(edl::detail::loss_of<Model>(set)),
                        .optimizer_on_gpu = optimizer_on_gpu}),
        set_(set),
        rated_(o.rated),
        net_({.max_batch = o.max_batch,
              .seed = o.seed,
              .device = std::move(on),
              .keep = o.keep,
              .set = hyperparameter_view(set_),
              .predicts_with = o.predicts_with,
              .frozen = o.frozen,
              .memory_budget = o.memory_budget}) {
    detail::check_options<Model>(set_);
    detail::check_names<Model>();
  }

  void feed(example const& record, data::batch& b, int row, mode m) const override {
    static constexpr auto inputs = nn::input_places(Model::network.start);
    std::optional<sample_type> fed;
    auto const feed_over = [&](std::uint64_t poison) {
      fed.emplace(b.feature_row(row), b.target_row(row), b.id_row(row), b.weight_row(row), b.class_row(row),
                  poison);
      call_feed([&] { Model::feed(record, *fed, m); });
    };
    feed_over(unfed_id);
    std::uint64_t const poison = poison_for(inputs, b.id_row(row));
    if (poison != unfed_id) feed_over(poison);
    check_inputs(record, inputs, b.feature_row(row), b.id_row(row), poison);
    sample_type const& s = *fed;
    nn::for_each_ids(Model::network.body, input, Model::network.of_ids ? nn::ids_of(input) : nn::id_range{},
                     [&](nn::id_range of, int vocabulary, bool none) {
                       detail::check_ids(b.feature_row(row), of, vocabulary, none);
                     });
    if (m == mode::prediction) return;
    if constexpr (classes && labels > 1) {
      std::size_t place = 0;
      auto const all = b.class_row(row);
      if (std::ranges::count(all, unfed_class) == std::ptrdiff_t(labels)) refuse_unfed_places();
      std::ranges::replace(all, unfed_class, std::int32_t(-1));
      for (std::int32_t const label : all) {
        if (!traits::loss_type::valid(label, output))
          detail::refuse_label(label, output.size() / labels, place);
        ++place;
      }
      if constexpr (plans_lengths)
        for (auto i = std::size_t(longest(b.feature_row(row))); i < labels; ++i)
          if (std::int32_t const label = b.class_row(row)[i]; label != traits::loss_type::ignored)
            detail::refuse_padding_label(label, i);
    } else if constexpr (classes) {
      if (!s.label.set()) refuse_unfed_label("`into.label`");
      auto const label = std::int64_t(s.label);
      if (label < 0 || label > std::numeric_limits<std::int32_t>::max() ||
          !traits::loss_type::valid(std::int32_t(label), output))
        detail::refuse_label(label, output.size());
      b.class_row(row)[0] = std::int32_t(label);
    } else {
      if constexpr (std::same_as<typename sample_type::label_type, edl::detail::class_label>)
        if (!s.label.set()) refuse_unfed_label("`into.label`");
      if constexpr (sample_type::labels == 1) b.target_row(row)[0] = as_target(s.label);
      for (std::size_t i = 0; i < sample_type::labels; ++i)
        if (is_unfed(b.target_row(row)[i]))
          refuse_unfed_label(detail::label_name<typename traits::loss_type>(i, sample_type::labels));
      if constexpr (weighted) {
        if (!traits::loss_type::valid_weight(s.weight)) detail::refuse_weight(s.weight);
        b.target_row(row)[labels - 1] = s.weight;
      }
      std::size_t place = 0;
      for (float const label : b.target_row(row))
        if (!detail::valid_label<typename traits::loss_type>(label, output, place++))
          detail::refuse_label(label);
    }
  }

  void augment([[maybe_unused]] out features, [[maybe_unused]] record_stream const& random) const override {
    if constexpr (traits::augments) augmentation_(input, features, random);
  }
  void place([[maybe_unused]] record_stream const& random, [[maybe_unused]] placement& at) const override {
    if constexpr (traits::places) augmentation_.place(input, random, at);
  }

  out variables() override { return net_.variables(); }
  out gradients() override { return net_.gradients(); }
  in forward(in x, int rows, mode what, std::uint64_t step) override {
    if constexpr (plans_lengths) {
      shape const of{1, 1, nn::planned_length(Model::network.start, longest(x))};
      x_ = shorter_x_(x, input.size(), of.size());
      in const y = net_.forward(x_, rows, what, step, of);
      // Predictions are as long as the network's outputs, for any length of the minibatch.
      return what == mode::prediction ? whole_y_(y, net_.last_output().size(), output.size()) : y;
    } else {
      return net_.forward(x, rows, what, step);
    }
  }
  out output_gradient() override { return net_.output_gradient(); }
  void backward(in x, int rows, std::function<void(std::size_t first)> const& ready) override {
    net_.backward(plans_lengths ? x_ : x, rows, ready);
  }
  in input_gradient() override { return net_.input_gradient(); }
  std::string plan() const override {
    return net_.plan().steps > 0 ? nn::text_of(net_.plan()) : std::string();
  }
  void set_trace(nn::trace* to) override { net_.set_trace(to); }

  double loss(int rows, in outputs, data::batch const& b, out gradients) const override {
    return loss_(outputs_now(), rows, outputs, truth(b), gradients);
  }
  void measure(std::span<double> totals, int rows, in outputs, data::batch const& b,
               double loss) const override {
    if constexpr (weighted)
      traits::metrics::update(totals, output, rows, outputs, view<typename traits::label>(own_labels(b)),
                              loss);
    else
      traits::metrics::update(totals, outputs_now(), rows, outputs, truth(b), loss);
  }

  void compute_loss([[maybe_unused]] accelerator& gpu, [[maybe_unused]] int rows, [[maybe_unused]] in outputs,
                    [[maybe_unused]] in labels_there, [[maybe_unused]] out gradients,
                    [[maybe_unused]] out loss) const override {
    if constexpr (nn::computes_on_accelerator<typename traits::loss_type>)
      nn::loss_on(gpu, loss_, output, rows, outputs, labels_there, gradients, loss);
  }
  void apply_optimizer([[maybe_unused]] accelerator& gpu, [[maybe_unused]] out weights,
                       [[maybe_unused]] in gradients, [[maybe_unused]] std::span<out const> slots,
                       [[maybe_unused]] float rate, [[maybe_unused]] std::uint64_t step) const override {
    if constexpr (optimizer_on_gpu && steps_whole) {
      std::vector<variable_step> all;
      for (variable const& v : layout_.variables) {
        std::size_t const n = v.dims.size();
        if (v.offset >= layout_.parameters) continue;
        std::vector<out> own(slots.begin(), slots.end());
        for (out& s : own) s = s.subspan(v.offset, n);
        bool const spared = std::ranges::any_of(
            spared_, [&](element_range r) { return r.first <= v.offset && v.offset + n <= r.last; });
        for_each_rate(rated_, {v.offset, v.offset + n}, step, [&](element_range, float factor) {
          all.push_back(
              {v, weights.subspan(v.offset, n), gradients.subspan(v.offset, n), own, factor * rate, !spared});
        });
      }
      apply_whole(gpu, optimizer_, all, step);
    } else if constexpr (optimizer_on_gpu)
      for_each_rate(rated_, {0, weights.size()}, step, [&](element_range r, float factor) {
        std::vector<out> own(slots.begin(), slots.end());
        for (out& s : own) s = s.subspan(r.first, r.size());
        step_in_parts(optimizer_, spared_, r.first, weights.subspan(r.first, r.size()),
                      gradients.subspan(r.first, r.size()), own, [&](auto const& o, out w, in g, auto s) {
                        step_on(gpu, o, w, g, s, factor * rate, step);
                      });
      });
  }

 private:
  /// A label that is a float.
  template <class Label>
  static float as_target(Label const& label) {
    if constexpr (std::same_as<Label, edl::detail::class_label>) {
      auto const number = std::int64_t(label);
      if (number < 0 || number >= std::int64_t(output.size())) detail::refuse_label(number, output.size());
      return float(number);
    } else {
      return label;
    }
  }

  /// Labels without weights, which metrics do not read.
  static std::vector<typename traits::label> own_labels(data::batch const& b) {
    std::vector<typename traits::label> own;
    own.reserve(std::size_t(b.rows) * sample_type::labels);
    for (std::size_t row = 0; row < std::size_t(b.rows); ++row)
      for (std::size_t i = 0; i < sample_type::labels; ++i)
        own.push_back(typename traits::label(b.targets[row * labels + i]));
    return own;
  }

  /// Places of the longest of these samples.
  static int longest(in x) {
    return nn::longest_of(nn::mask_of_lengths(Model::network), x, int(input.size()));
  }

  /// The outputs of a sample in the current minibatch.
  shape outputs_now() const { return plans_lengths ? net_.last_output() : output; }

  auto truth(data::batch const& b) const {
    if constexpr (classes && labels > 1 && plans_lengths)
      return shorter_classes_(view<std::int32_t>(b.classes).first(std::size_t(b.rows) * labels), labels,
                              traits::loss_type::labels(outputs_now()));
    else if constexpr (classes)
      return view<std::int32_t>(b.classes).first(std::size_t(b.rows) * labels);
    else
      return view<float>(b.targets).first(std::size_t(b.rows) * labels);
  }

  hyperparameters set_;
  std::vector<rated_range> rated_;
  typename traits::loss_type loss_ = edl::detail::loss_of<Model>(set_);
  typename traits::optimizer_type optimizer_ = edl::detail::optimizer_of<Model>(set_);
  parameter_layout layout_ = network::layout();
  std::vector<element_range> spared_ = spared_from_decay(optimizer_, layout_);
  typename traits::augmentation_type augmentation_ = edl::detail::augmentation_of<Model>(set_);
  network net_;
  in x_;  // where lengths are planned: of the forward pass
  shortened<float> shorter_x_, whole_y_;
  mutable shortened<std::int32_t> shorter_classes_;
};

template <class Model>
constexpr bool is_portable = nn::is_portable(Model::network.body, Model::network.input);

/// A model's trainer, on the device that the options select.
template <class Model>
std::unique_ptr<worker::trainer> make_trainer(worker::trainer_options const& o,
                                              hyperparameters_of<Model> const& set = {}) try {
  return train::make_trainer(o, is_portable<Model>, [&](std::shared_ptr<backend> on) {
    return std::make_unique<model_learner<Model>>(std::move(on), o, set);
  });
} catch (std::bad_alloc const&) {
  using network = model<Model::network, any_device>;
  bool const narrow = o.on == worker::device_kind::cpu && o.device.precision == precision::bfloat16;
  detail::refuse_memory(network::memory({1, o.keep, narrow}), network::memory({o.max_batch, o.keep, narrow}),
                        o.max_batch);
}

}  // namespace edl::author

#ifdef EDL_HEADER_ONLY
#include "edl/author/model_learner.ipp"
#endif
