// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

#include "edl/compute/device/geometry.hpp"
#include "edl/compute/device/kept_places.hpp"
#include "edl/compute/nn/initializer.hpp"
#include "edl/compute/nn/storage.hpp"
#include "edl/compute/nn/trace.hpp"
#include "edl/core/hyperparameter.hpp"
#include "edl/core/mode.hpp"
#include "edl/core/random.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::nn {

/// One variable of a layer: trained, carried (running means), or frozen (`frozen_layer`).
struct variable_spec {
  std::string_view name;  ///< within the layer, e.g. "kernel"
  extents dims;
  initializer initial = constant{0};
  bool trained = true;
  bool frozen = false;  ///< not in the arena, and not trained
};

/// Observes the progress of a backward pass: `tell(first)` is called when all gradients from number `first`
/// of the arena on are final. It is called between two layers, never with a higher number than before.
template <class T>
struct gradient_watch {
  T const* arena = nullptr;
  std::function<void(std::size_t first)> const& tell;

  /// Reports that these and all later gradients are final.
  void final_from(std::span<T> gradients) const { tell(std::size_t(gradients.data() - arena)); }
};

/// The random numbers of a pass on a device.
template <class Device>
struct random_numbers {
  using type = random_stream;
};

/// The rows of a decoding pass, each one place of a sequence. Layers that look at earlier places find them in
/// `cache`, from which each takes its own part, in the order of the layers.
template <class T>
struct decoding_rows {
  std::span<sequence_place const> rows;
  int sequences = 0, places = 0;  ///< that the cache has room for; places: of a sequence
  std::span<T> cache;
  std::size_t used = 0;

  /// The part of the next layer, which keeps this many scalars for each place.
  std::span<T> next(std::size_t of_place) {
    std::size_t const n = std::size_t(sequences) * std::size_t(places) * of_place;
    used += n;
    return cache.subspan(used - n, n);
  }
};

/// The context of a layer's call besides its data: the device, the mode, its own random stream, and scratch
/// memory for this call.
template <class Device>
struct pass {
  Device& device;
  edl::mode mode = edl::mode::training;
  typename random_numbers<Device>::type random;
  std::span<typename Device::scalar> scratch;
  nn::trace* trace = nullptr;  ///< records the time of the layers within; may be null
  /// In the backward pass. Containers that process their children from the last to the first pass it on.
  gradient_watch<typename Device::scalar> const* watch = nullptr;
  hyperparameter_view set{};  ///< hyperparameters, for options that are settings
  kept_places places{};       ///< within `masked`: which places count
  /// If samples are single places of sequences (`decodes`); null: they are whole.
  decoding_rows<typename Device::scalar>* decoding = nullptr;
  /// Within an `nn::graph` that is a network: the network's input, for masks of it.
  view<typename Device::scalar> input{};

  /// The same for a layer within, with its own random stream and scratch, and without a watch.
  pass child(random_stream own, std::span<typename Device::scalar> memory) const {
    return {device, mode, own, memory, trace, nullptr, set, places, decoding, input};
  }

  /// Which places of an input count; all if the mask has another number of places.
  kept_places places_of(shape in) const {
    return in.height * in.width == places.places ? places : kept_places{};
  }
};

/// Data of a forward pass over `batch` samples. Parameters and state are in the order of the layer's
/// `variables`.
template <class T>
struct forward_args {
  shape in, out;
  pass_size batch;
  view<T> x;  ///< (batch, in)
  view<T> parameters;
  std::span<T> state;
  std::span<T> y;        ///< (batch, out)
  std::span<T> saved;    ///< kept for `backward`
  bfloat16_io narrow{};  ///< of x and y; only if the layer supports it
  view<T> frozen{};      ///< values of frozen variables, in the same order
};

/// Data of a backward pass after a forward pass over the same samples.
template <class T>
struct backward_args {
  shape in, out;
  pass_size batch;
  view<T> x, y;     ///< `y` may be empty if the layer declares `reads_y = false`
  std::span<T> dy;  ///< only a layer that declares `overwrites_dy` may change it
  view<T> parameters, state;
  std::span<T> dx;         ///< to be overwritten; empty if it is not needed
  std::span<T> gradients;  ///< to be overwritten; as long as `parameters`
  std::span<T> saved;      ///< as `forward` left it
  bfloat16_io narrow{};    ///< of x and dx, of y and dy, as in `forward`
  view<T> frozen{};
};

/// A layer is a value: options in, shapes out. It owns no memory and knows no device. Besides these two
/// members, it has `forward` and `backward` templates over the device, and optionally `variables`, `saved`,
/// `scratch` and `name`.
template <class L>
concept layer = std::copyable<L> && requires(L const& l, shape in) {
  { l.check(in) } -> std::same_as<fit>;
  { l.output(in) } -> std::same_as<shape>;
};

/// A layer's name: its `name`, or "layer".
template <class L>
constexpr std::string_view name_of() {
  if constexpr (requires { std::string_view(L::name); })
    return L::name;
  else
    return "layer";
}

/// A layer made of layers: `children(in, visit)` calls visit(layer, its input, its role) in order, while
/// visit returns true. `child<I>` is the type of the I-th. A role is a name, or empty to use the type's name.
template <class L>
concept container = layer<L> && requires(L const& l, shape in) {
  l.children(in, [](auto const&, shape, std::string_view) { return true; });
};

/// A layer that can run on a device.
template <class L, class Device>
concept runs_on =
    layer<L> && requires(L const& l, pass<Device>& p, forward_args<typename Device::scalar> const& f,
                         backward_args<typename Device::scalar> const& b) {
      l.forward(p, f);
      l.backward(p, b);
    };

/// Scalars that a layer stores in forward for backward.
template <layer L>
constexpr std::size_t saved_by(L const& l, shape in, pass_size batch) {
  if constexpr (requires { l.saved(in, batch); })
    return l.saved(in, batch);
  else
    return 0;
}

/// Scalars that a layer uses within one call.
template <layer L>
constexpr std::size_t scratch_of(L const& l, shape in, pass_size batch) {
  if constexpr (requires { l.scratch(in, batch); })
    return l.scratch(in, batch);
  else
    return 0;
}

/// Whether a layer's `backward` overwrites `dy`.
template <layer L>
constexpr bool overwrites_dy = [] {
  if constexpr (requires { L::overwrites_dy; })
    return bool(L::overwrites_dy);
  else
    return false;
}();

/// Whether a layer's `backward` reads `y`; true by default.
template <layer L>
constexpr bool reads_y = [] {
  if constexpr (requires { L::reads_y; })
    return bool(L::reads_y);
  else
    return true;
}();

/// Whether a layer's `backward` can leave out the gradients of its variables; it then gets no memory for
/// them.
template <layer L>
constexpr bool skips_gradients = [] {
  if constexpr (requires { L::skips_gradients; })
    return bool(L::skips_gradients);
  else
    return false;
}();

/// Whether a layer's result may be recomputed for the backward pass instead of being stored. Such a layer
/// declares `recomputes = true`, and its `forward` is very cheap.
template <class L>
constexpr bool recomputes = [] {
  if constexpr (requires { L::recomputes; })
    return bool(L::recomputes);
  else
    return false;
}();

/// The sides of a layer whose samples may be narrow. The layer defines `narrows(shape in)`.
template <layer L>
constexpr bfloat16_io narrows(L const& l, shape in) {
  if constexpr (requires { l.narrows(in); })
    return l.narrows(in);
  else
    return {};
}

/// Whether a layer, and all layers within, access elements only through the device's operations. Then it runs
/// on any device, and declares `portable = true`. Others run on the processor.
template <layer L>
constexpr bool is_portable(L const& l, shape in) {
  if constexpr (container<L>) {
    bool all = true;
    if constexpr (requires { L::portable; }) all = L::portable;  // for its work on its children's results
    l.children(
        in, [&](auto const& child, shape s, std::string_view) { return all = all && is_portable(child, s); });
    return all;
  } else if constexpr (requires { L::portable; }) {
    return bool(L::portable);
  } else {
    return false;
  }
}

/// Whether a container tells its layers which places are padding (`masked`).
template <class L>
constexpr bool masks_places = requires { requires L::masks_places; };

/// Whether a layer may get padding among its places. It treats each place separately, and declares
/// `each_place = true` or a `treats_each_place()` that is, or it skips padding, and declares `knows_padding =
/// true`. `masked`: it is within `masked`, which tells it where the padding is.
template <layer L>
constexpr bool takes_padding(L const& l, bool masked) {
  if constexpr (requires { requires L::knows_padding; })
    return masked;
  else if constexpr (requires { bool(l.treats_each_place()); })
    return l.treats_each_place();
  else if constexpr (requires { bool(l.each_place); })
    return bool(l.each_place);
  else
    return container<L>;  // the layers within are checked themselves
}

/// The callback type for a layer's `variables`.
template <class Visit>
struct variable_visitor {
  Visit& visit;

  explicit constexpr variable_visitor(Visit& v) : visit(v) {}
  constexpr void operator()(variable_spec const& v) const { visit(v); }
  template <class... Wrong>
    requires(sizeof...(Wrong) != 1 || !(std::convertible_to<Wrong, variable_spec> && ...))
  constexpr void operator()(Wrong&&...) const {
    static_assert(sizeof...(Wrong) == std::size_t(-1),
                  "edl: `variables` of an own layer calls `visit(edl::nn::variable_spec{\"name\", {extents}, "
                  "edl::nn::constant{0}})` for each of its variables");
  }
};

/// The children of a container that have variables of their own: all, unless it has `owners`, which is called
/// as `children` is.
template <container L, class Visit>
constexpr void for_each_owner(L const& l, shape in, Visit&& visit) {
  if constexpr (requires { l.owners(in, visit); })
    l.owners(in, visit);
  else
    l.children(in, visit);
}

/// Whether the container `L` adds nothing to the names of the variables within.
template <class L>
constexpr bool is_spliced = [] {
  if constexpr (requires { L::spliced; })
    return bool(L::spliced);
  else
    return false;
}();

/// Calls visit(variable_spec) for every variable of a layer and of the layers within, in the order of the
/// arena.
template <layer L, class Visit>
constexpr void for_each_variable(L const& l, shape in, Visit&& visit) {
  if constexpr (container<L>)
    for_each_owner(l, in, [&](auto const& child, shape s, std::string_view) {
      for_each_variable(child, s, visit);
      return true;
    });
  else if constexpr (requires { l.variables(in, variable_visitor{visit}); })
    l.variables(in, variable_visitor{visit});
}

/// Numbers of trained, carried and frozen elements of a layer.
struct variable_counts {
  std::size_t parameters = 0, state = 0, frozen = 0;
};

template <layer L>
constexpr variable_counts count(L const& l, shape in) {
  variable_counts n;
  for_each_variable(l, in, [&](variable_spec const& v) {
    (v.frozen ? n.frozen : v.trained ? n.parameters : n.state) += v.dims.size();
  });
  return n;
}

}  // namespace edl::nn
