// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "edl/app/model_feeder.hpp"
#include "edl/device/cpu.hpp"
#include "edl/device/placement.hpp"
#include "edl/nn/model.hpp"
#include "edl/nn/trace.hpp"

namespace edl::app {

/// A user's Model as the runtime's `trainer`, on the processor.
template <class Model>
class model_trainer final : public model_feeder<Model> {
  using feeder = model_feeder<Model>;
  using traits = model_traits<Model>;
  using network = model<Model::network, cpu>;
  using feeder::features, feeder::truth;

 public:
  /// `no_gpu`: why none computes, where somebody may have expected one.
  explicit model_trainer(worker::trainer_options const& o, std::string no_gpu = {})
      : feeder(o),
        net_({.max_batch = o.max_batch, .seed = o.seed, .device = o.device, .keep = o.keep}),
        no_gpu_(std::move(no_gpu)) {
    if (o.profile) net_.set_trace(&trace_.emplace(traced_calls));
  }

  std::string device() const override {
    return no_gpu_.empty() ? no_gpu_ : "the processor, as no GPU is to be had: " + no_gpu_;
  }

  std::span<float> variables() override { return net_.variables(); }
  view<float> gradients() const override { return const_cast<network&>(net_).gradients(); }

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
    view<float> const outputs = results(b, mode::evaluation);
    double const loss = traits::loss(network::output, b.rows, outputs, truth(b), std::span<float>{});
    traits::metrics::update(sums, network::output, b.rows, outputs, truth(b), loss);
  }

  view<float> predict(data::batch const& b) override {
    if (b.rows == 0) return {};
    return results(b, mode::prediction);
  }

 private:
  static constexpr std::size_t traced_calls = 20'000;

  /// What the network says, on all the looks that the model wants.
  view<float> results(data::batch const& b, mode what) {
    if constexpr (!traits::averages) {
      return net_.forward(features(b), b.rows, what);
    } else {
      constexpr std::size_t size = network::input.size();
      shown_.resize(std::size_t(b.rows) * size);
      std::size_t const n = std::size_t(b.rows) * network::output.size();
      said_.resize(n * traits::evaluation.looks.size());
      for (std::size_t i = 0; i < traits::evaluation.looks.size(); ++i) {
        placement const how = traits::evaluation.looks[i].placed();
        for (std::size_t row = 0; row < std::size_t(b.rows); ++row)
          place(network::input, features(b).subspan(row * size, size), how,
                std::span(shown_).subspan(row * size, size));
        std::ranges::copy(net_.forward(shown_, b.rows, what), said_.begin() + std::ptrdiff_t(i * n));
      }
      traits::evaluation.join(said_);
      return view<float>(said_).first(n);
    }
  }

  network net_;
  std::vector<float> shown_, said_;  // a look at a minibatch, and what is said on all of them
  std::string no_gpu_;
  std::optional<nn::trace> trace_;
};

}  // namespace edl::app
