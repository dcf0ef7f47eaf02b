// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "edl/compute/device/any_device.hpp"
#include "edl/compute/nn/layer.hpp"
#include "edl/compute/nn/layer/conv2d.hpp"
#include "edl/compute/nn/layer/dense.hpp"
#include "edl/compute/nn/model.hpp"
#include "edl/compute/nn/naming.hpp"

namespace edl::nn {
namespace detail {

/// The printed line of a step.
struct step_line {
  std::size_t depth = 0, layers = 1;
  std::string name;
  shape in, out;
  std::size_t parameters = 0;
  std::size_t bytes = 0;  ///< its result and what it stores for the backward pass
  std::string kernel;
};

void write_head(std::ostream& to);
void write_line(std::ostream& to, step_line const& l);
void write_memory(std::ostream& to, model_memory const& m);

template <class L>
concept chained = requires(L const& l, shape in) { l.each_step(in, [](auto const&, shape) {}); };

struct explainer {
  std::ostream& to;
  backend& device;
  pass_size batch;

  template <layer L>
  static constexpr bool exact_products_of(L const& l) {
    if constexpr (requires { l.float32; })
      return l.float32;
    else
      return false;
  }
  template <layer L>
  std::string kernel_of(L const& l, shape in, bfloat16_io narrow) {
    exact_products const exact(device, exact_products_of(l));
    if constexpr (std::same_as<L, conv2d>)
      return device.describe_conv2d(l.geometry(in, narrow), batch);
    else if constexpr (std::same_as<L, dense>)
      return device.describe_dense(l.rows(in, batch), l.inputs(in), std::size_t(l.units));
    else
      return {};
  }

  /// `narrow`: the narrow sides of the container.
  template <layer L>
  void within(L const& l, shape in, std::size_t depth, bfloat16_io narrow = {}) {
    if constexpr (masks_places<L>)
      if (batch.narrow) return explainer{to, device, batch.all_wide()}.within(l, in, depth);
    if constexpr (chained<L>) {
      auto const memory = l.memory(in, batch.of_sides(narrow));
      std::size_t place = 0, index = 0;
      l.each_step(in, [&](auto const& s, shape from) {
        auto const sides = memory.narrow(index++, narrow);
        one(child_name(l, in, place), s.source(), from, s.output(from), s.saved(from, batch.of_sides(sides)),
            depth, s.width, sides);
        place += s.width;
      });
      if constexpr (requires { L::multiplies; }) {  // by the first line's table
        using body = L::body;
        shape const from = static_cast<body const&>(l).output(in);
        // The layers' result is in the last one's line; its gradient is as large.
        std::size_t const own = l.saved(in, batch) - static_cast<body const&>(l).saved(in, batch);
        line({depth, 1, "product with the table", from, l.output(in), 0, own / 2}, {});
      }
    } else if constexpr (requires { &L::joins_input; }) {
      std::size_t place = 0;
      l.each_node(in, batch.of_sides(narrow), [&]<class Kind>(Kind const& what, auto const& n) {
        if constexpr (requires { Kind::joins; })
          line({depth, 1, std::string(Kind::name), n.in, n.out, n.count.parameters, n.own_size}, {});
        else
          one(child_name(l, in, place++), what, n.in, n.out, n.own_size, depth, 1, {});
      });
    } else if constexpr (container<L>) {
      std::size_t place = 0;
      l.children(in, [&](auto const& child, shape from, std::string_view) {
        one(child_name(l, in, place++), child, from, child.output(from),
            saved_by(child, from, batch.of_sides(narrow)), depth, 1, narrow);
        return true;
      });
    }
  }

  template <layer L>
  void one(std::string name, L const& l, shape in, shape out, std::size_t saved, std::size_t depth,
           std::size_t layers, bfloat16_io narrow) {
    line({depth, layers, std::move(name), in, out, count(l, in).parameters, saved}, kernel_of(l, in, narrow),
         narrow.out);
    within(l, in, depth + 1, narrow);
  }

  void line(step_line l, std::string kernel, bool narrow = false) {
    l.bytes = (l.bytes + scalars_of(std::size_t(batch) * l.out.size(), narrow)) * sizeof(float);
    l.kernel = std::move(kernel);
    write_line(to, l);
  }
};

}  // namespace detail

/// Prints how a network is computed for `batch` samples: the steps with their layers, shapes, parameters,
/// memory, and the kernels that the device chose. With a memory budget it also prints which steps are
/// recomputed, and returns that line. Throws edl::usage_error if no plan meets the budget, or the device's
/// memory is not the host's (`model_options`).
template <auto const& Net>
std::string explain(std::ostream& to, backend& on, pass_size batch, std::size_t memory_budget = 0) {
  auto keep = on.in_host_memory() ? batch.keep : on_accelerator(batch.keep);
  using computed = model<Net, any_device>;
  pass_size const all(batch.samples, storage::float32, on.narrows());
  if (keep == storage::recomputed && detail::has_room(on, computed::memory(all).activations))
    keep = storage::float32;
  batch = {batch.samples, keep, on.narrows()};
  detail::write_head(to);
  detail::explainer{to, on, batch}.within(Net.body, Net.input, 0);
  if (memory_budget > 0 && !on.in_host_memory()) detail::refuse_budget_elsewhere();
  memory_plan const plan = memory_budget > 0 ? computed::plan(batch, memory_budget) : memory_plan{};
  detail::write_memory(to, computed::memory(plan.of(batch)));
  if (memory_budget == 0) return {};
  std::string price = text_of(plan);
  to << price << '\n';
  return price;
}

}  // namespace edl::nn

#ifdef EDL_HEADER_ONLY
#include "edl/compute/nn/explain.ipp"
#endif
