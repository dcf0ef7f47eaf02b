// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include "edl/compute/device/device.hpp"
#include "edl/compute/device/device_buffer.hpp"
#include "edl/compute/nn/input.hpp"
#include "edl/compute/nn/layer/lengths.hpp"
#include "edl/compute/nn/plan.hpp"
#include "edl/compute/nn/takes_ids.hpp"
#include "edl/core/error.hpp"

namespace edl::nn {

/// The first layer that needs more of a sequence than one place and its own cache of earlier ones; empty:
/// there is none. `in`: the layer's input for a whole sequence.
template <layer L>
constexpr std::string_view first_that_cannot_decode(L const& l, shape in) {
  if constexpr (requires { bool(l.decodes()); }) {
    return l.decodes() ? std::string_view{} : name_of<L>();
  } else if constexpr (masks_places<L>) {
    return name_of<L>();
  } else if constexpr (container<L>) {
    if constexpr (requires { l.mixes_places(in, 1); })
      if (l.mixes_places(in, int(in.size()))) return name_of<L>();
    std::string_view found;
    l.children(in, [&](auto const& child, shape s, std::string_view) {
      found = first_that_cannot_decode(child, s);
      return found.empty();
    });
    return found;
  } else if constexpr (takes_ids<L>) {
    return takes_weights<L> ? name_of<L>() : std::string_view{};
  } else if constexpr (requires { bool(l.treats_each_place()); }) {
    return l.treats_each_place() ? std::string_view{} : name_of<L>();
  } else if constexpr (requires { bool(l.each_place); }) {
    return l.each_place ? std::string_view{} : name_of<L>();
  } else {
    return name_of<L>();
  }
}

/// Scalars that the layers keep of each place of a sequence.
template <layer L>
constexpr std::size_t cached_by(L const& l, shape in) {
  std::size_t n = 0;
  if constexpr (requires { l.cached(in); })
    n = l.cached(in);
  else if constexpr (container<L>)
    l.children(in, [&](auto const& child, shape s, std::string_view) {
      n += cached_by(child, s);
      return true;
    });
  return n;
}

/// Why a network cannot say, place by place, which id comes next.
struct decoding_fault {
  enum kind {
    none,
    not_of_ids,         ///< it has another input than one of ids
    not_next_ids,       ///< its output is not a number for each id of the vocabulary, for each place
    looks_elsewhere,    ///< `layer` needs other places than its own and the cached ones
    sizes_of_variables  ///< a variable's size depends on the number of places
  };
  kind what = none;
  std::string_view layer{};
};

template <class Net>
constexpr decoding_fault fault_of_decoding(Net const& net) {
  using enum decoding_fault::kind;
  if constexpr (std::same_as<std::remove_cvref_t<decltype(net.start)>, ids>) {
    shape const out = net.body.output(net.input);
    if (auto const layer = first_that_cannot_decode(net.body, net.input); !layer.empty())
      return {looks_elsewhere, layer};
    int vocabulary = 0;
    for_each_ids(net.body, net.input, ids_of(net.input),
                 [&](id_range, int v, bool) { vocabulary = vocabulary == 0 ? v : std::min(vocabulary, v); });
    if (out.height * out.width != net.start.count || out.channels != vocabulary) return {not_next_ids, {}};
    if (detail::digest_of_variables(net.body, net.input) !=
        detail::digest_of_variables(net.body, shape{1, 1, 1}))
      return {sizes_of_variables, {}};
    return {};
  } else {
    return {not_of_ids, {}};
  }
}

/// The sizes of a decoder.
struct decoding_size {
  int rows = 1;       ///< most rows of a pass
  int sequences = 1;  ///< most sequences at once
};

/// A network that says which id comes next, bound to memory on a device: a pass computes single places of
/// sequences, with keys and values of earlier places from a cache. `Net` has no fault of decoding. After a
/// pass of some size, another of at most that size allocates nothing. Thread safety: distinct objects: safe.
/// Shared objects: unsafe.
template <auto const& Net, device Device>
class decoding_model {
  static constexpr shape one{1, 1, 1};
  static constexpr std::size_t of_place = cached_by(Net.body, Net.input);
  static constexpr variable_counts counts = count(Net.body, Net.input);

 public:
  using scalar = typename Device::scalar;
  static constexpr int places = Net.start.count, vocabulary = Net.body.output(Net.input).channels;

  /// `variables`, `frozen`: those of the network, which must outlive this.
  decoding_model(typename Device::options const& o, decoding_size const& most, hyperparameter_view set,
                 std::span<scalar> variables, view<scalar> frozen = {})
      : device_(Device::open(o)), most_(most), set_(set), variables_(variables), frozen_(frozen) {
    workspace_ = buffer(device_, Net.body.workspace(one, pass_size(most.rows)));
    x_ = buffer(device_, std::size_t(most.rows));
    y_ = buffer(device_, std::size_t(most.rows) * std::size_t(vocabulary));
    cache_ = buffer(device_, cache_size(most.sequences));
  }

  /// Scalars of the cache.
  static constexpr std::size_t cache_size(int sequences) {
    return std::size_t(sequences) * std::size_t(places) * of_place;
  }

  /// For each row, what the network makes of its id: (rows, vocabulary), valid until the next pass. Rows of
  /// one sequence ascend in place, and no place is left out. Throws error for a row that is out of range.
  view<scalar> operator()(std::span<std::int32_t const> ids, std::span<sequence_place const> rows) {
    std::size_t const n = rows.size();
    if (n == 0 || n > std::size_t(most_.rows) || ids.size() != n)
      throw error("a decoding pass has another number of rows than it may have");
    for (std::size_t i = 0; i < n; ++i) {
      if (ids[i] < 0 || ids[i] >= vocabulary || rows[i].place < 0 || rows[i].place >= places ||
          rows[i].sequence < 0 || rows[i].sequence >= most_.sequences)
        throw error("a row of a decoding pass is out of range");
      x_.span()[i] = scalar(ids[i]);
    }
    std::size_t const needed = Net.body.workspace(one, pass_size(int(n)));
    if (needed > workspace_.span().size()) {
      workspace_ = {};
      workspace_ = buffer(device_, needed);
    }
    decoding_rows<scalar> all{rows, most_.sequences, places, cache_.span()};
    pass<basic_backend<scalar>> p{*device_, mode::prediction, random_stream{0, 0}, {}, nullptr, nullptr,
                                  set_};
    p.decoding = &all;
    auto const y = y_.span().first(n * std::size_t(vocabulary));
    Net.body.forward(p, {one,
                         Net.body.output(one),
                         pass_size(int(n)),
                         x_.span().first(n),
                         variables_.first(counts.parameters),
                         variables_.subspan(counts.parameters, counts.state),
                         y,
                         workspace_.span(),
                         {},
                         frozen_});
    return y;
  }

 private:
  using buffer = device_buffer<scalar>;

  std::shared_ptr<typename Device::backend> device_;
  decoding_size most_;
  hyperparameter_view set_;
  std::span<scalar> variables_;
  view<scalar> frozen_;
  buffer workspace_, x_, y_, cache_;
};

}  // namespace edl::nn
