// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <iostream>
#include <memory>

#include "edl/device/any_device.hpp"
#include "edl/device/cpu/basic_cpu.hpp"
#include "measured.hpp"
#include "networks.hpp"

namespace bench {
namespace {

template <auto const& Net>
class step_of final : public trainer {
 public:
  step_of(int batch, contest const& c)
      : batch_(batch),
        cpu_(std::make_shared<edl::cpu>(c.device)),
        model_({.max_batch = batch, .device = cpu_, .keep = c.keep}),
        x_(std::size_t(batch) * Net.input.size()),
        labels_(std::size_t(batch)),
        velocity_(model_.gradients().size()) {
    edl::random_stream const random(1, 0);
    for (std::size_t i = 0; i < x_.size(); ++i) x_[i] = random.uniform(i);
    for (std::size_t i = 0; i < labels_.size(); ++i) labels_[i] = std::int32_t(i % 10);
  }

  void step() override {
    auto const y = model_.forward(x_, batch_, edl::mode::training, step_);
    loss_(model_.output, batch_, y, edl::view<std::int32_t>(labels_), model_.output_gradient());
    model_.backward(x_, batch_);
    auto& device = *cpu_;
    std::size_t const n = model_.gradients().size();
    device.share(n, device.parts(n, 16 * 1024), [&](std::size_t begin, std::size_t end, int) {
      std::span<float> slots[] = {std::span(velocity_).subspan(begin, end - begin)};
      rule_.apply(model_.parameters().subspan(begin, end - begin),
                  model_.gradients().subspan(begin, end - begin), slots, 0.01f, step_);
    });
    ++step_;
  }

  void trace(int steps) override {
    nn::trace all;
    model_.set_trace(&all);
    for (int i = 0; i < steps; ++i) step();
    all.write_table(std::cout);
  }

 private:
  int batch_;
  std::shared_ptr<edl::cpu> cpu_;
  edl::model<Net, edl::any_device> model_;  // as programs compute
  std::vector<float> x_;
  std::vector<std::int32_t> labels_;
  std::vector<float> velocity_;
  nn::softmax_cross_entropy loss_;
  edl::rule<edl::sgd> rule_{edl::sgd{.learning_rate = 0.01f, .momentum = 0.9f}};
  std::uint64_t step_ = 0;
};

template <auto const& Net>
workload one(std::string name, std::vector<int> batches) {
  // Three passes, but nobody needs the gradient of what goes into the first layer.
  double first = 0;
  Net.body.children(Net.input, [&](auto const& child, edl::shape s, std::string_view) {
    first = forward_of(child, s);
    return first == 0;
  });
  return {std::move(name), std::move(batches), 3 * forward_of(Net.body, Net.input) - first,
          [](int batch, contest const& c) -> std::unique_ptr<trainer> {
            return std::make_unique<step_of<Net>>(batch, c);
          }};
}

}  // namespace

std::vector<workload> const& workloads() {
  static std::vector<workload> const all{
      one<mnist>("mnist", {64}), one<mlp>("mlp", {64, 256}), one<cifar>("cifar", {128}),
      one<resnet::of_20_layers>("resnet20", {128}), one<resnet::of_18_layers>("resnet18", {64})};
  return all;
}

}  // namespace bench
