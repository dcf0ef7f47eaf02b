// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/nn/chain.hpp"
#include "edl/compute/nn/child.hpp"
#include "edl/compute/nn/expression/mistake.hpp"
#include "edl/compute/nn/layer/graph_node.hpp"
#include "edl/compute/nn/layer/graph_places.hpp"
#include "edl/compute/nn/layer/lengths.hpp"
#include "edl/compute/nn/layer/parallel.hpp"
#include "edl/compute/nn/memory_plan.hpp"

namespace edl::nn {

/// A graph of layers without cycles. Write it as `graph(…)` of a function. Its nodes stand in the order in
/// which the last one, the result, needs them. Results that the backward pass reads are kept; others, and
/// gradients, lie in scratch where none is that lives at the same time. The gradients of a result that
/// several nodes read are added up, as are those of shared variables. `Whole`: it is all of a network.
template <bool Whole, class... Kinds>
struct graph_layer {
  static constexpr std::size_t most = 64;
  template <class T>
  using of_nodes = std::array<T, most>;
  using operands = std::array<std::int16_t, graph_node<Kinds...>::most_operands>;

  of_nodes<graph_node<Kinds...>> nodes{};
  int size = 0;
  expression::mistake mistaken{};  ///< of the function
  int mistaken_kind = -1;

  static constexpr std::string_view name = "graph";
  static constexpr bool spliced = Whole;
  static constexpr bool portable = !(std::same_as<Kinds, joint<merge::product>> || ...);
  static constexpr bool reads_y = (nn::reads_result<Kinds> || ...);
  static constexpr bool overwrites_dy = (nn::overwrites_gradient<Kinds> || ...);
  /// By the code of `child_code`: a type for each kind of node.
  template <std::size_t I>
  using child = std::tuple_element_t<I, std::tuple<Kinds...>>;

  // ---- Shapes ----

  using sizes = graph_sizes<most>;
  using places = graph_places<most>;
  constexpr sizes measure(shape in) const {
    using enum expression::mistake_kind;
    sizes s{.wrong = mistaken};
    for (int k = 0; k < size && s.why == fit::fits && s.wrong.none(); ++k) {
      auto const of = [&](int operand) { return extents(s, in, node(k).from[at(operand)]); };
      s.in[at(k)] = of(0);
      node(k).what.visit([&]<class Kind>(Kind const& what) {
        if constexpr (is_joint<Kind>) {
          s.out[at(k)] = of(0);
          for (int i = 1; i < node(k).operands && s.wrong.none(); ++i) {
            shape other = of(i);
            if (Kind::how == merge::concat) {
              s.out[at(k)].channels += other.channels;
              other.channels = of(0).channels;
            }
            if (other != of(0))
              s.wrong = {Kind::how == merge::concat ? shapes_beside : shapes_of_elements, 0, of(0), of(i)};
          }
        } else {
          s.why = what.check(s.in[at(k)]);
          if (s.why != fit::fits) return;
          s.out[at(k)] = what.output(s.in[at(k)]);
          int const first = node(k).owner;
          if (first != k && variables_of(k, s.in[at(k)]) != variables_of(first, s.in[at(first)]))
            s.wrong = {shapes_of_shared, 0, s.in[at(first)], s.in[at(k)]};
        }
      });
      s.known += s.why == fit::fits && s.wrong.none();
    }
    if (!s.wrong.none()) s.why = fit::tensors_do_not_fit;
    return s;
  }
  constexpr fit check(shape in) const { return measure(in).why; }
  constexpr expression::mistake wrong(shape in) const { return measure(in).wrong; }
  /// The kind of the node that is wrong; -1: it is none of them.
  constexpr int wrong_child(shape in) const {
    return mistaken.none() ? node(measure(in).known).what.index() : mistaken_kind;
  }
  constexpr shape output(shape in) const { return extents(measure(in), in, size - 1); }

  // ---- What it is made of ----

  /// All nodes of layers, each with what is given to it.
  template <class Visit>
  constexpr void children(shape in, Visit&& visit) const {
    auto const s = measure(in);
    bool more = true;
    for (int k = 0; more && k < size && k < s.known + s.wrong.none(); ++k)
      node(k).what.visit([&]<class Kind>(Kind const& what) {
        if constexpr (!is_joint<Kind>) more = visit(what, s.in[at(k)], role_of<Kind>);
      });
  }
  /// Those whose variables are no other's. Of one layer with a name, that layer.
  template <class Visit>
  constexpr void owners(shape in, Visit&& visit) const {
    auto const s = measure(in);
    bool more = true;
    for (int k = 0; more && k < s.known; ++k)
      if (node(k).owner == k)
        node(k).what.visit([&]<class Kind>(Kind const& what) {
          if constexpr (is_joint<Kind>)
            return;
          else if constexpr (names_one_layer<Kind>)
            more = visit(std::get<Kind::slices>(what.layers), shape_before_last(what, s.in[at(k)]),
                         role_of<Kind>);
          else
            more = visit(what, s.in[at(k)], role_of<Kind>);
        });
  }
  /// Child number `index`, as `children` has them, is given the graph's input.
  constexpr bool sees_input(std::size_t index) const { return node(node_of_child(index)).from[0] < 0; }
  /// The input goes into something that is no layer.
  constexpr bool joins_input() const {
    bool any = false;
    for (int k = 0; k < size; ++k)
      node(k).what.visit([&]<class Kind>(Kind const&) {
        for (int i = 0; is_joint<Kind> && i < node(k).operands; ++i) any = any || node(k).from[at(i)] < 0;
      });
    return any;
  }
  constexpr int child_code(std::size_t index) const { return node(node_of_child(index)).what.index(); }
  constexpr int node_of_child(std::size_t index) const {
    int k = 0;
    for (std::size_t before = 0; k < size; ++k)
      if (is_layer(k) && before++ == index) break;
    return k;
  }
  constexpr graph_node<Kinds...> const& node(int k) const { return nodes[at(k)]; }

  template <class Kind>
  static constexpr bool names_one_layer = [] {
    if constexpr (requires { Kind::slices; })
      return Kind::depth == Kind::slices + 1;
    else
      return false;
  }();

  // ---- Memory ----

  constexpr std::size_t saved(shape in, pass_size batch) const {
    return place(*this, measure(in), batch).saved;
  }
  constexpr std::size_t scratch(shape in, pass_size batch) const {
    auto const m = place(*this, measure(in), batch);
    return std::max(m.results, m.gradients + m.other + m.twice) + m.spare + m.layer;
  }

  /// What may be computed again: nodes of layers, each as a whole.
  planned_chain stretches(shape in, pass_size batch, double whole) const {
    of_nodes<std::uint16_t> all{};
    all.fill(1);
    batch.again = nullptr;
    auto const s = measure(in);
    auto const keep = place(*this, s, batch);
    batch.again = all.data();
    auto const lean = place(*this, s, batch);
    planned_chain plan{0, at(size), {}};
    for (int k = 0; k < size; ++k) {
      auto const next = [&](places const& m) { return k + 1 < size ? m.begins[at(k + 1)] : m.saved; };
      std::size_t const kept = next(keep) - keep.begins[at(k)], left = next(lean) - lean.begins[at(k)];
      plan.all.push_back({at(k), at(k) + 1, false, kept, kept, 0});
      if (left < kept)
        node(k).what.visit([&]<class Kind>(Kind const& what) {
          if constexpr (!is_joint<Kind>)
            plan.all.push_back({at(k), at(k) + 1, true, left, kept, work_of(what, s.in[at(k)]) / whole});
        });
    }
    return plan;
  }

  // ---- Passes ----

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    auto const s = measure(a.in);
    auto const m = place(*this, s, a.batch);
    carver scratch(p.scratch);
    auto const results = scratch.next(m.results), spare = scratch.next(m.spare);
    auto const result = [&](int k) { return result_of(s, m, a.batch, k, a.y, a.saved, results); };
    auto const operand = [&](int k, int i) {
      int const from = node(k).from[at(i)];
      return from < 0 ? a.x : view<T>(result(from));
    };
    for (int k = 0; k < size; ++k)
      node(k).what.visit([&]<class Kind>(Kind const& what) {
        if constexpr (is_joint<Kind>) {
          join<Kind::how>(p, s, k, a.in, result(k), operand);
        } else {
          auto const own = a.saved.subspan(m.state_kept[at(k)], m.again[at(k)] ? m.state_size[at(k)] : 0);
          auto const state = a.state.subspan(m.state[at(k)], m.state_size[at(k)]);
          if (!own.empty()) p.device.copy(state, own);
          run(p, what, k, a.in, scratch.rest(),
              forward_args<T>{s.in[at(k)], s.out[at(k)], a.batch.of_sides({}), operand(k, 0),
                              a.parameters.subspan(m.parameters[at(k)], m.parameter_size[at(k)]), state,
                              result(k), saved_of(m, k, a.saved, spare)});
        }
      });
  }

  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    auto const s = measure(a.in);
    auto const m = place(*this, s, a.batch);
    carver scratch(p.scratch);
    auto const gradients = scratch.next(m.gradients), other = scratch.next(m.other),
               twice = scratch.next(m.twice), spare = scratch.next(m.spare);
    auto const result = [&](int k) { return result_of(s, m, a.batch, k, {}, a.saved, std::span<T>{}); };
    auto const operand = [&](int k, int i) {
      int const from = node(k).from[at(i)];
      return from < 0 ? a.x : view<T>(result(from));
    };
    auto const gradient = [&](int k) {
      if (k < 0) return a.dx;
      return k + 1 == size ? a.dy : gradients.subspan(m.gradient[at(k)], s.elements(a.batch, k));
    };
    std::array<bool, most + 1> wanted{!a.dx.empty()}, written{};  // by number + 1
    of_nodes<bool> begun{};                                       // of owners: their gradients are there
    for (int k = 0; k < size; ++k) {
      wanted[at(k + 1)] = m.parameter_size[at(k)] > 0;
      for (int i = 0; i < node(k).operands; ++i)
        wanted[at(k + 1)] = wanted[at(k + 1)] || wanted[at(node(k).from[at(i)] + 1)];
    }
    for (int k = size; k-- > 0;) {
      if (!wanted[at(k + 1)]) continue;
      // Lets `give` write what belongs to the gradient of an operand.
      auto const contribute = [&](int i, auto const& give) {
        int const from = node(k).from[at(i)];
        if (!wanted[at(from + 1)]) return give(std::span<T>{});
        auto const to = gradient(from);
        if (!std::exchange(written[at(from + 1)], true)) return give(to);
        give(other.first(to.size()));
        p.device.add(activation::none, to, other.first(to.size()), to);
      };
      node(k).what.visit([&]<class Kind>(Kind const& what) {
        if constexpr (is_joint<Kind>) {
          for (int i = 0; i < node(k).operands; ++i)
            contribute(i, [&](std::span<T> to) {
              if (!to.empty()) part<Kind::how>(p, s, k, a.in, i, gradient(k), to, operand);
            });
        } else {
          auto const own = a.gradients.subspan(m.parameters[at(k)], m.parameter_size[at(k)]);
          bool const again = m.shared[at(k)] && std::exchange(begun[at(node(k).owner)], true);
          auto const parameters = a.parameters.subspan(m.parameters[at(k)], own.size());
          backward_args<T> call{s.in[at(k)],
                                s.out[at(k)],
                                a.batch.of_sides({}),
                                operand(k, 0),
                                k + 1 == size ? a.y : view<T>(result(k)),
                                gradient(k),
                                parameters,
                                a.state.subspan(m.state[at(k)], m.state_size[at(k)]),
                                {},
                                again ? twice.first(own.size()) : own,
                                saved_of(m, k, a.saved, spare)};
          if (m.again[at(k)])  // the state as it was: that of the pass before has moved
            run(p, what, k, a.in, scratch.rest(),
                forward_args<T>{call.in, call.out, call.batch, call.x, parameters,
                                a.saved.subspan(m.state_kept[at(k)], m.state_size[at(k)]), result(k),
                                call.saved});
          contribute(0, [&](std::span<T> to) {
            call.dx = to;
            run(p, what, k, a.in, scratch.rest(), call, !m.shared[at(k)]);
          });
          if (again && !own.empty()) p.device.add(activation::none, own, twice.first(own.size()), own);
          if (p.watch && m.shared[at(k)] && node(k).owner == k && !own.empty()) p.watch->final_from(own);
        }
      });
    }
  }

 private:
  static constexpr std::size_t at(int k) { return std::size_t(k); }

  static constexpr shape extents(sizes const& s, shape in, int k) { return k < 0 ? in : s.out[at(k)]; }
  template <class Kind>
  static constexpr std::string_view role_of = [] {
    if constexpr (requires { Kind::role; })
      return Kind::role;
    else
      return std::string_view{};
  }();
  constexpr bool is_layer(int k) const {
    bool is = false;
    node(k).what.visit([&]<class Kind>(Kind const&) { is = !is_joint<Kind>; });
    return is;
  }
  template <class Kind>
  static constexpr shape shape_before_last(Kind const& of, shape in) {
    if constexpr (Kind::slices > 0) in = std::get<0>(of.layers).output(in);
    return in;
  }
  constexpr std::uint64_t variables_of(int k, shape in) const {
    std::uint64_t digest = 0;
    node(k).what.visit([&]<class Kind>(Kind const& what) {
      if constexpr (!is_joint<Kind>) digest = detail::digest_of_variables(what, in);
    });
    return digest;
  }

  template <class T>
  std::span<T> result_of(sizes const& s, places const& m, pass_size batch, int k, std::span<T> y,
                         std::span<T> saved, std::span<T> results) const {
    if (k + 1 == size) return y;
    std::size_t const n = s.elements(batch, k);
    if (m.kept[at(k)]) return saved.subspan(m.result[at(k)], n);
    return results.empty() ? results : results.subspan(m.in_scratch[at(k)], n);
  }
  template <class T>
  static std::span<T> saved_of(places const& m, int k, std::span<T> saved, std::span<T> spare) {
    return (m.again[at(k)] ? spare : saved.subspan(m.own[at(k)])).first(m.own_size[at(k)]);
  }

  /// Runs a node of layers as `forward_child` and `backward_child` do, with random numbers of its own.
  template <class D, class Kind, class Args>
  void run(pass<D> const& p, Kind const& what, int k, shape in, std::span<typename D::scalar> scratch,
           Args const& a, bool watched = false) const {
    constexpr bool back = requires { a.dy; };
    if constexpr (back)
      if (a.dx.empty() && a.gradients.empty()) return;
    auto const called = [&] {
      std::size_t index = 0;
      for (int i = 0; i < k; ++i) index += is_layer(i);
      return child_name(*this, in, index);
    };
    trace::scope const timed(p.trace, back ? trace::direction::backward : trace::direction::forward, called,
                             a.in, a.out);
    pass<D> own = p.child(p.random.child(at(k)), scratch);
    if (watched) own.watch = p.watch;
    if constexpr (back)
      what.backward(own, a);
    else
      what.forward(own, a);
    if (p.trace) p.device.synchronize();
    if constexpr (back)
      if (own.watch && !a.gradients.empty()) own.watch->final_from(a.gradients);
  }

  template <merge How, class D, class Operand>
  void join(pass<D>& p, sizes const& s, int k, shape in, std::span<typename D::scalar> y,
            Operand const& operand) const {
    std::size_t channel = 0;
    for (int i = 0; i < node(k).operands; ++i) {
      auto const x = operand(k, i);
      if constexpr (How == merge::concat) {
        auto const c = std::size_t(extents(s, in, node(k).from[at(i)]).channels);
        p.device.copy_columns(x.size() / c, c, x, 0, c, y, channel, std::size_t(s.out[at(k)].channels));
        channel += c;
      } else if (i == 0) {
        if (How != merge::sum || node(k).operands == 1) p.device.copy(x, y);
      } else if constexpr (How == merge::product) {
        for (std::size_t j = 0; j < y.size(); ++j) y[j] *= x[j];
      } else {
        p.device.add(activation::none, i == 1 ? operand(k, 0) : y, x, y);
      }
    }
  }

  /// What belongs to operand number `i` of the gradient of a joint.
  template <merge How, class D, class Operand>
  void part(pass<D>& p, sizes const& s, int k, shape in, int i, view<typename D::scalar> dy,
            std::span<typename D::scalar> to, Operand const& operand) const {
    if constexpr (How == merge::concat) {
      auto const width = [&](int j) { return std::size_t(extents(s, in, node(k).from[at(j)]).channels); };
      std::size_t first = 0;
      for (int j = 0; j < i; ++j) first += width(j);
      p.device.copy_columns(to.size() / width(i), width(i), dy, first, std::size_t(s.out[at(k)].channels), to,
                            0, width(i));
    } else {
      p.device.copy(dy, to);
      for (int j = 0; How == merge::product && j < node(k).operands; ++j)
        for (std::size_t n = 0; j != i && n < to.size(); ++n) to[n] *= operand(k, j)[n];
    }
  }
};

}  // namespace edl::nn
