// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/nn/expression/mistake.hpp"
#include "edl/compute/nn/layer.hpp"
#include "edl/compute/nn/layer/parallel.hpp"

namespace edl::nn {

/// A node's operands: numbers of nodes; -1: the graph's input.
using node_operands = std::array<std::int16_t, 16>;

/// What a joint is given in a pass over `batch` samples.
template <class T>
struct joint_args {
  std::span<shape const> in;
  shape out;
  std::size_t batch;
  std::span<view<T> const> x;  ///< in the backward pass only where the joint says `reads_operands`
  std::span<T> saved;
  view<T> parameters{};
};

/// A node of a graph that joins the results of others. Besides the members of `joint`, such a kind may have
/// `saved` and `scratch` of (operands' extents, samples).
template <class Kind>
concept is_joint = requires { requires Kind::joins; };

/// A joint that may have variables, like a layer whose input has the extents `whole`. Its `backward` gives
/// all operands their gradients at once.
template <class Kind>
concept is_joint_with_variables = is_joint<Kind> && requires(Kind const& k, std::span<shape const> in) {
  { k.whole(in) } -> std::same_as<shape>;
};

/// The joint that is a `merge`.
template <merge How>
struct joint {
  static constexpr std::string_view name = name_of(How);
  static constexpr bool joins = true, portable = How != merge::product;
  static constexpr bool reads_operands = How == merge::product;  ///< in the backward pass
  static constexpr bool reads_y = false, overwrites_dy = false;
  static constexpr bool mixes_places = false;  ///< a place sees others

  /// The extents of what it makes; where operands do not fit together, `wrong` is told.
  constexpr shape output(std::span<shape const> in, expression::mistake& wrong) const {
    using enum expression::mistake_kind;
    constexpr bool beside = How == merge::concat;
    shape const first = in[0];
    shape out = first;
    for (shape const other : in.subspan(1)) {
      if (beside) out.channels += other.channels;
      if (wrong.none() && (other.height != first.height || other.width != first.width ||
                           (!beside && other.channels != first.channels)))
        wrong = {beside ? shapes_beside : shapes_of_elements, 0, first, other};
    }
    return out;
  }

  template <class D, class T>
  void forward(pass<D>& p, joint_args<T> const& a, std::span<T> y) const {
    D& device = p.device;
    std::size_t const row = std::size_t(a.out.channels), rows = y.size() / row;
    std::size_t channel = 0;
    for (std::size_t i = 0; i < a.x.size(); ++i) {
      auto const x = a.x[i];
      if constexpr (How == merge::concat) {
        device.copy_columns(rows, x.size() / rows, x, 0, x.size() / rows, y, channel, row);
        channel += x.size() / rows;
      } else if (i == 0) {
        if (a.x.size() == 1) device.copy(x, y);
      } else {
        view<T> const before = i == 1 ? a.x[0] : view<T>(y);
        if constexpr (How == merge::product)
          device.multiply_elements(before, x, y);
        else
          device.add(activation::none, before, x, y);
      }
    }
  }

  /// The contribution of the gradient to operand number `i`. It is called for each, in order, with the same
  /// scratch; `dx` is empty for those that need none.
  template <class D, class T>
  void backward(pass<D>& p, joint_args<T> const& a, view<T>, view<T> dy, std::size_t i,
                std::span<T> dx) const {
    if (dx.empty()) return;
    D& device = p.device;
    if constexpr (How == merge::concat) {
      std::size_t const row = std::size_t(a.out.channels), rows = dy.size() / row;
      std::size_t first = 0;
      for (std::size_t j = 0; j < i; ++j) first += std::size_t(a.in[j].channels);
      device.copy_columns(rows, dx.size() / rows, dy, first, row, dx, 0, dx.size() / rows);
    } else {
      view<T> left = dy;
      for (std::size_t j = 0; How == merge::product && j < a.x.size(); ++j)
        if (j != i) device.multiply_elements(std::exchange(left, dx), a.x[j], dx);
      if (left.data() == dy.data()) device.copy(dy, dx);
    }
  }
};

/// y = a · b for each sample, a matrix having a row for each place and a column for each channel.
/// (h, w, k), k places of c channels → (h, w, c)
struct matrix_product {
  static constexpr std::string_view name = "matmul";
  static constexpr bool joins = true, portable = false;
  static constexpr bool reads_operands = true, reads_y = false, overwrites_dy = false, mixes_places = true;

  constexpr shape output(std::span<shape const> in, expression::mistake& wrong) const {
    if (in[0].channels != in[1].height * in[1].width)
      wrong = {expression::mistake_kind::shapes_of_matrices, 0, in[0], in[1]};
    return {in[0].height, in[0].width, in[1].channels};
  }
  template <class D, class T>
  void forward(pass<D>& p, joint_args<T> const& a, std::span<T> y) const {
    auto const [m, n, k] = extents_of(a);
    p.device.multiply_matrices({a.batch, m, k, n}, a.x[0], a.x[1], y);
  }
  template <class D, class T>
  void backward(pass<D>& p, joint_args<T> const& a, view<T>, view<T> dy, std::size_t i,
                std::span<T> dx) const {
    auto const [m, n, k] = extents_of(a);
    if (dx.empty()) return;
    if (i == 0)
      p.device.multiply_matrices({a.batch, m, n, k, false, true}, dy, a.x[1], dx);
    else
      p.device.multiply_matrices({a.batch, k, m, n, true, false}, a.x[0], dy, dx);
  }

 private:
  template <class T>
  static std::array<std::size_t, 3> extents_of(joint_args<T> const& a) {
    auto const k = std::size_t(a.in[0].channels);
    return {a.in[0].size() / k, std::size_t(a.out.channels), k};
  }
};

}  // namespace edl::nn
