// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "edl/app/model_traits.hpp"
#include "edl/app/sample.hpp"
#include "edl/core/error.hpp"
#include "edl/core/random.hpp"
#include "edl/data/example.hpp"
#include "edl/device/cpu.hpp"
#include "edl/nn/model.hpp"
#include "edl/nn/trace.hpp"
#include "edl/worker/trainer.hpp"

namespace edl::app {

namespace detail {

/// Throws data_error: a label is not one of the network's outputs.
[[noreturn]] void refuse_label(std::int64_t label, std::size_t outputs);
[[noreturn]] void refuse_label(float label);
[[noreturn]] void refuse_features(std::size_t got, std::size_t wanted);

/// Throws data_error: the feed failed with an error that names neither the record nor the model.
[[noreturn]] void refuse_feed(char const* why, std::size_t wanted);

}  // namespace detail

/// A user's Model as the runtime's `trainer`.
template <class Model>
class model_trainer final : public worker::trainer {
  using traits = model_traits<Model>;
  using network = model<Model::network, cpu>;
  using sample_type = sample<Model>;
  static constexpr bool classes = traits::loss_type::class_labels;
  static constexpr std::size_t labels = sample_type::labels;

 public:
  explicit model_trainer(worker::trainer_options const& o)
      : seed_(o.seed), net_({.max_batch = o.max_batch, .seed = o.seed, .device = o.device, .keep = o.keep}) {
    if (o.profile) net_.set_trace(&trace_.emplace(traced_calls));
  }

  data::batch make_batch() const override {
    return data::make_batch(net_.max_batch(), network::input.size(), classes ? 0 : labels,
                            classes ? labels : 0);
  }

  void feed(example const& record, data::batch& b, int row, mode m) const override {
    sample_type s(b.feature_row(row), b.target_row(row));
    try {
      Model::feed(record, s, m);
    } catch (error const&) {
      throw;
    } catch (std::exception const& e) {
      detail::refuse_feed(e.what(), network::input.size());
    }
    if (s.features.size() != network::input.size())
      detail::refuse_features(s.features.size(), network::input.size());
    if constexpr (traits::augments)
      if (m == mode::training) Model::augmentation(network::input, b.feature_row(row), stream_of(b, row));
    if (m == mode::prediction) return;
    if constexpr (classes) {
      auto const label = std::int64_t(s.label);
      if (label < 0 || label > std::numeric_limits<std::int32_t>::max() ||
          !traits::loss_type::valid(std::int32_t(label), network::output))
        detail::refuse_label(label, network::output.size());
      b.class_row(row)[0] = std::int32_t(label);
    } else {
      if constexpr (labels == 1) b.target_row(row)[0] = s.label;
      for (float label : b.target_row(row))
        if (!traits::loss_type::valid(label, network::output)) detail::refuse_label(label);
    }
  }

  std::span<float> variables() override { return net_.variables(); }
  view<float> gradients() const override { return const_cast<network&>(net_).gradients(); }
  std::size_t totals() const override { return traits::metrics::totals; }

  void share(std::function<void(int)> const& work) override {
    auto& team = net_.device().team();
    team.run(team.size(), work);
  }

  nn::trace const* profile() const override { return trace_ ? &*trace_ : nullptr; }

  double train(data::batch const& b, std::uint64_t step, worker::gradients_ready const& ready) override {
    if (b.rows == 0) {
      for (float& g : net_.gradients()) g = 0;
      return 0;
    }
    view<float> const outputs = net_.forward(features(b), b.rows, mode::training, step);
    double const loss = traits::loss(network::output, b.rows, outputs, truth(b), net_.output_gradient());
    if (std::isfinite(loss)) net_.backward(features(b), b.rows, ready);
    return loss;
  }

  void evaluate(data::batch const& b, std::span<double> sums) override {
    if (b.rows == 0) return;
    view<float> const outputs = net_.forward(features(b), b.rows, mode::evaluation);
    double const loss = traits::loss(network::output, b.rows, outputs, truth(b), std::span<float>{});
    traits::metrics::update(sums, network::output, b.rows, outputs, truth(b), loss);
  }

  view<float> predict(data::batch const& b) override {
    if (b.rows == 0) return {};
    return net_.forward(features(b), b.rows, mode::prediction);
  }

 private:
  /// A record's own random numbers in an epoch, whoever reads it and whenever.
  random_stream stream_of(data::batch const& b, int row) const {
    task_key const& t = b.identity.key.task;
    return {mix(mix(seed_, 2), mix(t.epoch, t.index)), b.records[std::size_t(row)]};
  }
  static view<float> features(data::batch const& b) {
    return view<float>(b.features).first(std::size_t(b.rows) * b.feature_size);
  }
  static auto truth(data::batch const& b) {
    if constexpr (classes)
      return view<std::int32_t>(b.classes).first(std::size_t(b.rows) * labels);
    else
      return view<float>(b.targets).first(std::size_t(b.rows) * labels);
  }

  static constexpr std::size_t traced_calls = 20'000;

  std::uint64_t seed_;
  network net_;
  std::optional<nn::trace> trace_;
};

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/model_trainer.ipp"
#endif
