// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "edl/compute/device/accelerator.hpp"
#include "edl/compute/device/device.hpp"
#include "edl/compute/device/device_buffer.hpp"
#include "edl/compute/nn/inputs.hpp"
#include "edl/compute/nn/layer/sequential.hpp"
#include "edl/compute/nn/memory_plan.hpp"
#include "edl/compute/nn/plan.hpp"
#include "edl/core/layout.hpp"

namespace edl {

template <device Device>
struct model_options {
  int max_batch = 1;       ///< largest number of samples in a pass
  std::uint64_t seed = 1;  ///< of the initial variables and of dropout
  typename Device::options device{};
  nn::storage keep = nn::storage::recomputed;  ///< how results between layers are stored
  hyperparameter_view set{};                   ///< must outlive the model
  /// Variables to predict with, which must outlive the model: it then has none of its own, and no gradients.
  std::span<typename Device::scalar> predicts_with{};
  /// Values of the frozen variables, in host memory, which must outlive the model. Empty: drawn from the
  /// seed.
  view<typename Device::scalar> frozen{};
  /// Largest value of `memory().total()` in bytes: the backward pass recomputes results where that saves
  /// enough, with bitwise equal results. 0: no limit. On processors only.
  std::size_t memory_budget = 0;
};

/// The memory of a model, in bytes.
struct model_memory {
  std::size_t variables = 0, gradients = 0, activations = 0, scratch = 0, frozen = 0;

  constexpr std::size_t total() const { return variables + gradients + activations + scratch + frozen; }
};

namespace nn::detail {

/// Throws edl::error unless 1 ≤ batch ≤ max_batch and the number of elements is that of `batch` samples.
void check_input(int batch, int max_batch, std::size_t elements, shape sample);

/// Throws edl::error unless the batch is that of the forward pass before.
void check_backward(int batch, int forward_batch);

/// Throws edl::usage_error: memory budgets are supported on processors only.
[[noreturn]] void refuse_budget_elsewhere();

/// Throws edl::error unless [first, first + count) is within a model's variables.
void check_range(std::size_t first, std::size_t count, std::size_t variables);

/// Whether an accelerator should store all results between layers: a quarter of its free memory is enough.
/// Recomputing one is a pass over memory, which dominates the time of a step there.
template <class T>
bool has_room([[maybe_unused]] basic_backend<T>& on, [[maybe_unused]] std::size_t bytes) {
  if constexpr (std::same_as<T, float>)
    if (auto* const gpu = dynamic_cast<accelerator*>(&on)) return bytes <= gpu->free_memory() / 4;
  return false;
}

}  // namespace nn::detail

/// A network (a constexpr object with static storage) bound to memory on a device; all spans refer to it. All
/// variables are one arena, all gradients another; a pass allocates nothing. Movable; spans stay valid.
/// Thread safety: distinct objects: safe. Shared objects: unsafe. Static functions: safe.
template <auto const& Net, device Device>
class model {
  static constexpr bool fits() {
    using computes = basic_backend<typename Device::scalar>;
    if constexpr (!nn::can_compute<Net, computes>) nn::explain_network<Net, computes>();
    return nn::can_compute<Net, computes>;
  }
  static constexpr nn::variable_counts counts =
      fits() ? nn::count(Net.body, Net.input) : nn::variable_counts{};

 public:
  using scalar = typename Device::scalar;
  using options = model_options<Device>;

  static constexpr shape input = Net.input;
  static constexpr shape output = fits() ? Net.body.output(Net.input) : shape{};
  static constexpr std::size_t parameter_count = counts.parameters, state_count = counts.state,
                               frozen_count = counts.frozen;
  static constexpr bool has_input_gradient = nn::table_ids(Net.start) > 0;  ///< it trains rows of tables

  /// Allocates everything and draws the variables from the seed. Throws edl::error if max_batch < 1, and
  /// edl::usage_error if no plan meets the memory budget.
  explicit model(options o = {})
      : device_(Device::open(o.device)), max_batch_(o.max_batch), seed_(o.seed), keep_(o.keep), set_(o.set) {
    narrow_ = device_->narrows();
    if (!device_->in_host_memory()) keep_ = nn::on_accelerator(keep_);
    if (keep_ == nn::storage::recomputed && o.predicts_with.empty() &&
        nn::detail::has_room<scalar>(*device_,
                                     memory({max_batch_, nn::storage::float32, narrow_}).activations))
      keep_ = nn::storage::float32;
    nn::detail::check_input(max_batch_, max_batch_, input.size() * std::size_t(max_batch_), input);
    auto const batch = std::size_t(max_batch_);
    if (o.memory_budget > 0 && o.predicts_with.empty()) {
      if (!device_->in_host_memory()) nn::detail::refuse_budget_elsewhere();
      plan_ = plan(size_of(max_batch_), o.memory_budget);
    }
    workspace_ = buffer(device_, Net.body.workspace(input, size_of(max_batch_)));
    y_ = buffer(device_, batch * output.size());
    take_frozen(o);
    if (!o.predicts_with.empty()) {
      constexpr std::size_t n = parameter_count + state_count;
      nn::detail::check_range(0, n, o.predicts_with.size());
      all_ = o.predicts_with.first(n);
      return;
    }
    variables_ = buffer(device_, parameter_count + state_count);
    all_ = variables_.span();
    gradients_ = buffer(device_, parameter_count);
    dy_ = buffer(device_, batch * output.size());
    if (has_input_gradient) dx_ = buffer(device_, batch * input.size());
    initialise(o.seed);
  }

  /// Names, extents and offsets of the variables.
  static parameter_layout layout() { return nn::layout_of(Net.body, input); }
  /// Those of the frozen ones, which lie apart.
  static parameter_layout frozen_layout() { return nn::frozen_layout_of(Net.body, input); }

  std::span<scalar> variables() { return all_; }
  std::span<scalar> parameters() { return variables().first(parameter_count); }
  std::span<scalar> state() { return variables().subspan(parameter_count); }
  std::span<scalar> gradients() { return gradients_.span(); }

  /// Draws the variables anew.
  void initialise(std::uint64_t seed) {
    if (device_->in_host_memory()) {
      initialise(seed, 0, variables());
    } else {
      std::vector<scalar> host(variables().size());
      initialise(seed, 0, host);
      device_->write(host, variables());
    }
    device_->bind(parameters());
  }

  /// Draws only elements [first, first + range.size()) of the variables' arena, in host memory: bitwise equal
  /// to drawing the whole.
  static void initialise(std::uint64_t seed, std::size_t first, std::span<scalar> range) {
    nn::detail::check_range(first, range.size(), parameter_count + state_count);
    nn::draw(Net.body, input, random_stream{mix(seed, 0)}, first, range);
  }

  /// Draws the frozen variables.
  static void initialise_frozen(std::uint64_t seed, std::span<scalar> all) {
    nn::detail::check_range(0, all.size(), frozen_count);
    nn::draw(Net.body, input, random_stream{mix(seed, 0)}, 0, all, true);
  }

  /// The network's outputs for `batch` samples, valid until the next pass. In training, it updates the state,
  /// and draws from the stream of `step`. `of`: the extents of these samples. They may be smaller than the
  /// network's input if its variables are the same (`nn::planned_length`).
  view<scalar> forward(view<scalar> x, int batch, mode what, std::uint64_t step = 0, shape of = input) {
    nn::detail::check_input(batch, max_batch_, x.size(), of);
    batch_ = batch;
    bool const as_before = of == in_ && device_->narrows() == narrow_;
    narrow_ = device_->narrows();
    in_ = of;
    out_ = of == input ? output : Net.body.output(of);
    mode_ = what;
    step_ = step;
    if (!as_before) make_room();
    auto p = pass();
    auto const y = y_.span().first(std::size_t(batch) * out_.size());
    Net.body.forward(
        p, {in_, out_, size_of(batch), x, parameters(), state(), y, workspace_.span(), {}, frozen_});
    return y;
  }

  /// The extents of the last `forward`'s result.
  shape last_output() const { return out_; }

  /// The loss's gradient with respect to the result of `forward`; write it before `backward`.
  std::span<scalar> output_gradient() { return dy_.span().first(std::size_t(batch_) * out_.size()); }

  /// Overwrites `gradients()`. `x` and `batch` are those of the last `forward`. Calls `ready(first)`, unless
  /// it is empty, during the pass: gradients from number `first` on are final.
  void backward(view<scalar> x, int batch, std::function<void(std::size_t first)> const& ready = {}) {
    nn::detail::check_input(batch, max_batch_, x.size(), in_);
    nn::detail::check_backward(batch, batch_);
    auto p = pass();
    nn::gradient_watch<scalar> const watch{gradients_.span().data(), ready};
    if (ready) p.watch = &watch;
    view<scalar> const y = y_.span().first(std::size_t(batch) * out_.size());
    Net.body.backward(p, {in_,
                          out_,
                          size_of(batch),
                          x,
                          y,
                          output_gradient(),
                          parameters(),
                          state(),
                          dx_.span().first(has_input_gradient ? x.size() : 0),
                          gradients(),
                          workspace_.span(),
                          {},
                          frozen_});
  }

  /// The gradient of the last `backward` with respect to its `x`; empty without `has_input_gradient`.
  view<scalar> input_gradient() {
    return dx_.span().first(has_input_gradient ? std::size_t(batch_) * input.size() : 0);
  }

  /// The memory of a model for passes of this size.
  static constexpr model_memory memory(nn::pass_size most) {
    constexpr std::size_t s = sizeof(scalar);
    std::size_t const saved = nn::saved_by(Net.body, input, most);
    return {(parameter_count + state_count) * s, parameter_count * s,
            (saved + std::size_t(most) * (2 * output.size() + (has_input_gradient ? input.size() : 0))) * s,
            (Net.body.workspace(input, most) - saved) * s, frozen_count * s};
  }
  model_memory memory() const { return memory(size_of(max_batch_)); }

  /// The steps to recompute so that passes of this size take at most `budget` bytes. Throws edl::usage_error
  /// if that is impossible.
  static nn::memory_plan plan(nn::pass_size most, std::size_t budget) {
    std::size_t const planned = Net.body.workspace(input, most) * sizeof(scalar);
    return nn::plan_memory<scalar>(Net.body, input, most, budget, memory(most).total() - planned);
  }
  nn::memory_plan const& plan() const { return plan_; }

  /// Times passes from now on, layer by layer; null: stops that. `to` must outlive its use.
  void set_trace(nn::trace* to) { trace_ = to; }

  int max_batch() const { return max_batch_; }
  std::shared_ptr<typename Device::backend> const& device() const { return device_; }

 private:
  using buffer = device_buffer<scalar>;

  void take_frozen([[maybe_unused]] options const& o) {
    if constexpr (frozen_count > 0) {
      if (!o.frozen.empty()) nn::detail::check_range(0, frozen_count, o.frozen.size());
      if (!o.frozen.empty() && device_->in_host_memory()) {
        frozen_ = o.frozen.first(frozen_count);
        return;
      }
      std::vector<scalar> drawn(o.frozen.empty() ? frozen_count : 0);
      initialise_frozen(o.seed, drawn);
      own_frozen_ = buffer(device_, frozen_count);
      device_->write(o.frozen.empty() ? view<scalar>(drawn) : o.frozen.first(frozen_count),
                     own_frozen_.span());
      frozen_ = own_frozen_.span();
    }
  }
  nn::pass_size size_of(int batch) const { return plan_.of({batch, keep_, narrow_}); }
  /// Exact products, or a shape that is divided differently, may need more than was planned.
  void make_room() {
    std::size_t const needed = Net.body.workspace(in_, size_of(max_batch_));
    if (needed <= workspace_.span().size()) return;
    workspace_ = {};
    workspace_ = buffer(device_, needed);
  }
  nn::pass<basic_backend<scalar>> pass() {
    return {*device_, mode_, random_stream{mix(seed_, 1), step_}, {}, trace_, nullptr, set_};
  }

  std::shared_ptr<typename Device::backend> device_;
  int max_batch_ = 1, batch_ = 0;
  shape in_ = input, out_ = output;
  std::uint64_t seed_ = 1, step_ = 0;
  nn::storage keep_ = nn::storage::recomputed;
  nn::memory_plan plan_;
  bool narrow_ = false;  // whether the last forward pass passed samples between layers as bfloat16
  hyperparameter_view set_;
  mode mode_ = mode::training;
  nn::trace* trace_ = nullptr;
  buffer variables_, gradients_, workspace_, y_, dy_, dx_, own_frozen_;
  std::span<scalar> all_;  // of the variables
  view<scalar> frozen_;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/nn/model.ipp"
#endif
