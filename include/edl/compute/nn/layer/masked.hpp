// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "edl/compute/device/kept_places.hpp"
#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/expression/layer.hpp"
#include "edl/compute/nn/layer/sequential.hpp"
#include "edl/compute/nn/padding_mask.hpp"

namespace edl::nn {

/// Layers one after the other, for which some places of a sample are padding. Write it as `masked(…)`.
///
/// Among layers with as many places as the mask, `attention`, `lstm`, `gru` and the global pools skip the
/// padding. It does not affect other places, and its own values are zeros. Other layers must treat each place
/// separately, or the model does not compile. Once only one place is left, any layer may follow. A sample of
/// only padding gives zeros. It runs on the processor. Nothing within is narrow, because layers that skip
/// padding do not support that.
template <layer... Layers>
struct masked_chain : chain<Layers...> {
  padding_mask mask;
  /// The function of a network applies it to a result: the mask is of the network's input, not of its own.
  bool of_network = false;

  using body = chain<Layers...>;
  static constexpr std::string_view name = "masked";
  static constexpr bool masks_places = true, portable = false, adds = false;

  constexpr int places(shape in) const {
    return mask.count == 0 && !in.flat() ? in.height * in.width : mask.places(in);
  }
  constexpr fit check(shape in) const {
    if (mask.id < 0) return fit::option_out_of_range;  // no id is below 0, so nothing would be padding
    return of_network || mask.fits(in) ? body::check(in) : fit::not_at_the_start;
  }

  /// The lists of counted places, which live for both passes. A scalar has room for several numbers.
  constexpr std::size_t lists(shape in, pass_size batch) const {
    return rounded(numbers_of_places(std::size_t(batch), std::size_t(places(in))));
  }
  constexpr std::size_t saved(shape in, pass_size batch) const {
    return lists(in, batch) + body::saved(in, batch.all_wide());
  }
  constexpr std::size_t workspace(shape in, pass_size batch) const {
    return lists(in, batch) + body::workspace(in, batch.all_wide());
  }
  constexpr std::size_t scratch(shape in, pass_size batch) const {
    return body::scratch(in, batch.all_wide());
  }
  constexpr bfloat16_io narrows(shape) const { return {}; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> a) const {
    auto const batch = std::size_t(a.batch);
    auto const rows = of_network ? p.input : a.x;
    std::size_t const row = rows.size() / std::max<std::size_t>(batch, 1);
    pass<D> own = p;
    own.places =
        find_places(numbers_in(a.saved), batch, places(a.in), [&](std::size_t sample, std::size_t place) {
          return mask.counts(rows.data() + sample * row, place);
        });
    a.saved = a.saved.subspan(lists(a.in, a.batch));
    a.batch = a.batch.all_wide();
    body::forward(own, a);
  }

  /// Uses the lists of the forward pass: the input may have been rounded in between.
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> a) const {
    pass<D> own = p;
    own.places = places_in(numbers_in(a.saved), std::size_t(a.batch), places(a.in));
    a.saved = a.saved.subspan(lists(a.in, a.batch));
    a.batch = a.batch.all_wide();
    body::backward(own, a);
  }

 private:
  template <class T>
  static std::span<std::int32_t> numbers_in(std::span<T> memory) {
    static_assert(sizeof(T) >= sizeof(std::int32_t));
    return {reinterpret_cast<std::int32_t*>(memory.data()), memory.size()};
  }
};

/// Layers that skip places with padding, e.g. `masked(padding_mask{.id = 3}, embedding{…}, lstm{…})` on ids,
/// or `masked(in.mask<"length">(), …)` on several inputs. In the function of a network it follows any result
/// with as many places as the mask.
template <class... Layers>
constexpr auto masked(padding_mask mask, Layers... layers) {
  static_assert(sizeof...(Layers) > 0, "edl: a chain has layers");
  if constexpr ((is_expression<Layers> || ...)) {
    return masked(mask, as_layer(layers)...);
  } else if constexpr ((layer<Layers> && ...)) {
    return masked_chain<Layers...>{{{layers...}}, mask, false};
  } else {
    detail::explain_layers<Layers...>();
    return masked_chain<no_layer>{};
  }
}

/// The same on ids; id 0 is padding.
template <class First, class... Layers>
  requires(!std::same_as<First, padding_mask>)
constexpr auto masked(First first, Layers... layers) {
  return masked(padding_mask{}, first, layers...);
}

}  // namespace edl::nn
