// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>

#include "edl/compute/device/any_device.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/onnx/network.hpp"
#include "edl/compute/sparse/minibatch_rows.hpp"
#include "edl/compute/sparse/network_embeddings.hpp"
#include "edl/compute/sparse/table.hpp"
#include "measured.hpp"
#include "networks.hpp"

namespace bench {
namespace {

template <auto const& Net, class Loss = nn::softmax_cross_entropy>
class step_of final : public trainer {
 public:
  step_of(int batch, contest const& c)
      : batch_(batch),
        forward_(c.forward),
        cpu_(std::make_shared<edl::cpu>(c.device)),
        model_({.max_batch = batch, .device = cpu_, .keep = c.keep, .memory_budget = c.memory_budget}),
        x_(std::size_t(batch) * Net.input.size()),
        labels_(std::size_t(batch) * Loss::labels(model_.output)),
        velocity_(model_.gradients().size()) {
    edl::random_stream const random(1, 0);
    for (std::size_t i = 0; i < x_.size(); ++i)
      x_[i] = Net.of_ids ? float(random.below(letters, i)) : random.uniform(i);
    for (std::size_t i = 0; i < labels_.size(); ++i) labels_[i] = std::int32_t(i % 10);
    if (forward_) cpu_->kernels_written();  // as `evaluate` does
  }

  void step() override {
    if (forward_) return void(model_.forward(x_, batch_, edl::mode::evaluation, 0));
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
  bool forward_;
  std::shared_ptr<edl::cpu> cpu_;
  edl::model<Net, edl::any_device> model_;  // as programs compute
  std::vector<float> x_;
  std::vector<std::int32_t> labels_;
  std::vector<float> velocity_;
  Loss loss_;
  edl::rule<edl::sgd> rule_{edl::sgd{.learning_rate = 0.01f, .momentum = 0.9f}};
  std::uint64_t step_ = 0;
};

/// DeepFM, whose ids are drawn evenly and have their rows in tables.
template <auto const& Net>
class deepfm_step final : public trainer {
 public:
  deepfm_step(int batch, contest const& c)
      : batch_(batch),
        threads_(std::max(1, c.device.threads)),
        cpu_(std::make_shared<edl::cpu>(c.device)),
        model_({.max_batch = batch, .device = cpu_, .keep = c.keep, .memory_budget = c.memory_budget}),
        layout_(edl::sparse::embedding_layout_of(deepfm_inputs)),
        rows_(layout_) {
    edl::random_stream const random(1, 0);
    std::uint64_t drawn = 0;
    for (std::size_t t = 0; t < layout_.tables.size(); ++t)
      tables_.push_back(std::make_unique<edl::sparse::table>(
          edl::sparse::table_options{.width = layout_.tables[t].width,
                                     .seed = t,
                                     .share =
                                         [this](std::function<void(int)> const& work) {
                                           auto const n = std::size_t(threads_);
                                           cpu_->share(n, threads_,
                                                       [&](std::size_t, std::size_t, int i) { work(i); });
                                         }},
          rule_));
    std::vector<std::uint64_t> all(deepfm_ids);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    for (auto& t : tables_)  // all rows are there, as the peer's are
      t->push(all, std::vector<float>(all.size() * std::size_t(t->width())), 0, 0, 0);
    for (int i = 0; i < 32; ++i) {
      auto b = edl::data::make_batch(batch, model_.input.size(), 1, 0, layout_.ids);
      b.rows = batch;
      constexpr std::uint64_t own = deepfm_ids / deepfm_columns;
      for (int r = 0; r < batch; ++r) {
        auto const ids = b.id_row(r);
        for (std::size_t k = 0; k < std::size_t(deepfm_columns); ++k) {
          ids[k] = k * own + random.below(own, drawn++);
        }
        b.targets[std::size_t(r)] = float(random.below(2, drawn++));
      }
      batches_.push_back(std::move(b));
    }
  }

  void step() override {
    auto& b = batches_[step_ % batches_.size()];
    rows_.begin(b);
    for (std::size_t t = 0; t < tables_.size(); ++t) tables_[t]->pull(rows_.ids(t), rows_.rows(t));
    rows_.fill(b);
    auto const y = model_.forward(b.features, batch_, edl::mode::training, step_);
    loss_(model_.output, batch_, y, edl::view<float>(b.targets), model_.output_gradient());
    model_.backward(b.features, batch_);
    auto const sums = rows_.sum(b, model_.input_gradient());
    for (std::size_t t = 0; t < tables_.size(); ++t)
      tables_[t]->push(sums[t].ids, sums[t].gradients, 0.01f, step_, std::uint32_t(step_));
    rule_.apply(model_.parameters(), model_.gradients(), {}, 0.01f, step_);
    ++step_;
  }

  void trace(int steps) override {
    nn::trace all;
    model_.set_trace(&all);
    for (int i = 0; i < steps; ++i) step();
    all.write_table(std::cout);
  }

 private:
  int batch_, threads_;
  std::shared_ptr<edl::cpu> cpu_;
  edl::model<Net, edl::any_device> model_;
  edl::sparse::embedding_layout layout_;
  edl::sparse::minibatch_rows rows_;
  edl::rule<edl::sgd> rule_{edl::sgd{.learning_rate = 0.01f}};
  std::vector<std::unique_ptr<edl::sparse::table>> tables_;
  std::vector<edl::data::batch> batches_;
  nn::sigmoid_cross_entropy loss_;
  std::uint64_t step_ = 0;
};

template <auto const& Net, class Loss = nn::softmax_cross_entropy, auto const& Function = Net>
workload one(std::string name, std::vector<int> batches) {
  // Three passes, but nobody needs the gradient of what goes into the first layer.
  double first = 0;
  Net.body.children(Net.input, [&](auto const& child, edl::shape s, std::string_view) {
    first = Net.of_ids ? 0 : forward_of(child, s);  // an embedding multiplies nothing
    return first == 0;
  });
  double const forward = forward_of(Net.body, Net.input);
  return {std::move(name),
          std::move(batches),
          3 * forward - first,
          forward,
          [](int batch, contest const& c) -> std::unique_ptr<trainer> {
            if (!c.function) return std::make_unique<step_of<Net, Loss>>(batch, c);
            if constexpr (std::same_as<decltype(Net), decltype(Function)>)
              return nullptr;
            else
              return std::make_unique<step_of<Function, Loss>>(batch, c);
          },
          [](std::string const& file) {
            edl::model<Net, edl::any_device> drawn({.max_batch = 1, .device = std::make_shared<edl::cpu>()});
            auto const layout = drawn.layout();
            edl::onnx::graph g(layout, drawn.variables());
            edl::onnx::add_network(g, Net, {});
            g.write(file);
          }};
}

}  // namespace

std::vector<workload> const& workloads() {
  static std::vector<workload> const all{
      one<mnist>("mnist", {64}),
      one<mlp>("mlp", {64, 256}),
      one<cifar>("cifar", {128}),
      one<resnet::of_20_layers>("resnet20", {128}),
      one<resnet::of_18_layers>("resnet18", {64}),
      one<transformer, nn::sequence_cross_entropy, functions::transformer>("transformer", {12}),
      one<lstm, nn::sequence_cross_entropy>("lstm", {32}),
      {"deepfm",
       {512},
       3 * forward_of(deepfm.body, deepfm.input),
       0,
       [](int batch, contest const& c) -> std::unique_ptr<trainer> {
         if (c.function) return std::make_unique<deepfm_step<functions::deepfm>>(batch, c);
         return std::make_unique<deepfm_step<deepfm>>(batch, c);
       }}};
  return all;
}

}  // namespace bench
