// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
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
#include "edl/compute/nn/layer/graph_memory.hpp"
#include "edl/compute/nn/layer/graph_node.hpp"
#include "edl/compute/nn/layer/lengths.hpp"
#include "edl/compute/nn/layer/parallel.hpp"
#include "edl/compute/nn/memory_plan.hpp"
#include "edl/compute/nn/padding_mask.hpp"
#include "edl/core/unpack.hpp"

namespace edl::nn {

/// An acyclic graph of layers. Write it as `graph(…)` of a function. Its nodes are in the order in which the
/// last one, the result, needs them. Results that the backward pass reads are stored; others, and gradients,
/// share scratch memory with values that are not live at the same time. The gradients of a result that
/// several nodes read are summed, and so are those of shared variables. `Whole`: it is the whole network.
template <bool Whole, class... Kinds>
struct graph_layer {
  static constexpr int most = graph_memory::most;
  template <class T>
  using of_nodes = std::array<T, std::size_t(most)>;

  of_nodes<graph_node<Kinds...>> nodes{};
  int size = 0;
  expression::mistake mistaken{};  ///< in the function
  int mistaken_kind = -1;

  static constexpr std::string_view name = "graph";
  static constexpr bool spliced = Whole;
  static constexpr bool portable = (Kinds::portable && ...);
  static constexpr bool reads_y = (Kinds::reads_y || ...);
  static constexpr bool overwrites_dy = (Kinds::overwrites_dy || ...);
  /// By the code of `child_code`: a type for each kind of node.
  template <std::size_t I>
  using child = std::tuple_element_t<I, std::tuple<Kinds...>>;

  constexpr graph_node<Kinds...> const& node(int k) const { return nodes[at(k)]; }
  constexpr int operand(int k, int i) const { return node(k).from[at(i)]; }

  // ---- Shapes ----

  /// The shapes of the nodes' inputs and results.
  constexpr graph_memory measure(shape in) const {
    using enum expression::mistake_kind;
    graph_memory m{.wrong = mistaken};
    m[0].in = in;
    for (int k = 0; k < size && m.why == fit::fits && m.wrong.none(); ++k) {
      shape& out = m[k].out;
      shape const first = m[k].in = m.out_of(operand(k, 0));
      node(k).what.visit([&]<class Kind>(Kind const& what) {
        if constexpr (is_joint<Kind>) {
          out = first;
          auto const given = operands(k, [&](int from) { return m.out_of(from); });
          out = what.output(given, m.wrong);
          if (m.wrong.line == 0) m.wrong.line = node(k).line;
          if constexpr (is_joint_with_variables<Kind>)
            if (m.wrong.none()) m[k].in = what.whole(given);
        } else {
          m.why = what.check(first);
          if (m.why != fit::fits) return;
          out = what.output(first);
          what.children(first, [&](auto const& l, shape s, std::string_view) {
            if constexpr (masks_places<std::remove_cvref_t<decltype(l)>>) {
              bool const known = l.mask.count > 0 || in.flat();  // otherwise the input is no ids
              int const places = l.mask.count > 0 ? l.mask.count : in.channels;
              if (l.of_network && known && places != (s.flat() ? s.channels : s.height * s.width))
                m.wrong = {places_of_mask, 0, {1, places, 1}, s};
            }
            return m.wrong.none();
          });
          if (int const owner = node(k).owner; owner != k) {
            std::uint64_t digest = 0;
            node(owner).visit_layers(
                [&](auto const& l) { digest = detail::digest_of_variables(l, m[owner].in); });
            if (detail::digest_of_variables(what, first) != digest)
              m.wrong = {shapes_of_shared, 0, m[owner].in, first};
          }
        }
      });
      m.known += m.why == fit::fits && m.wrong.none();
    }
    if (!m.wrong.none()) m.why = fit::tensors_do_not_fit;
    return m;
  }
  constexpr fit check(shape in) const { return measure(in).why; }
  constexpr expression::mistake wrong(shape in) const { return measure(in).wrong; }
  /// The kind of the wrong node; -1: none is wrong.
  constexpr int wrong_child(shape in) const {
    return mistaken.none() ? node(measure(in).known).what.index() : mistaken_kind;
  }
  constexpr shape output(shape in) const { return measure(in).out_of(size - 1); }

  // ---- What it is made of ----

  /// All nodes of layers, each with its input.
  template <class Visit>
  constexpr void children(shape in, Visit&& visit) const {
    auto const m = measure(in);
    bool more = true;
    for (int k = 0; more && k < size && k < m.known + m.wrong.none(); ++k)
      node(k).visit_layers([&](auto const& l) { more = visit(l, m[k].in, l.role); });
  }
  /// Those that own their variables, and joints that may have some. For a single named layer, that layer.
  template <class Visit>
  constexpr void owners(shape in, Visit&& visit) const {
    auto const m = measure(in);
    bool more = true;
    for (int k = 0; more && k < m.known; ++k)
      if (node(k).owner == k)
        node(k).what.visit([&]<class Kind>(Kind const& l) {
          shape from = m[k].in;
          if constexpr (is_joint_with_variables<Kind>) {
            more = visit(l, from, std::string_view{});
          } else if constexpr (is_joint<Kind>) {
          } else if constexpr (!Kind::names_layer) {
            more = visit(l, from, l.role);
          } else {
            if constexpr (Kind::slices > 0) from = std::get<0>(l.layers).output(from);
            more = visit(std::get<Kind::slices>(l.layers), from, l.role);
          }
        });
  }
  /// Whether child number `index`, in the order of `children`, gets the graph's input.
  constexpr bool sees_input(std::size_t index) const { return operand(node_of_child(index), 0) < 0; }
  /// Whether the input is an operand of a join.
  constexpr bool joins_input() const {
    bool any = false;
    for (int k = 0; k < size; ++k)
      for (int i = 0; !is_layer(k) && i < node(k).operands; ++i) any = any || operand(k, i) < 0;
    return any;
  }
  /// Calls visit(mask) for each mask of the network's input.
  template <class Visit>
  constexpr void masks(Visit&& visit) const {
    for (int k = 0; k < size; ++k)
      node(k).visit_layers([&](auto const& of) {
        auto const one = [&]<class L>(L const& l) {
          if constexpr (masks_places<L>)
            if (l.of_network) visit(l.mask);
        };
        edl::unpack([&](auto const&... l) { (one(l), ...); }, of.layers);
      });
  }
  /// One of them reads ids, which are all that the input is.
  constexpr bool masks_ids() const {
    bool any = false;
    masks([&](padding_mask const& m) { any = any || m.count == 0; });
    return any;
  }
  /// Something that is no layer is given so many places, and looks at several of them.
  constexpr bool mixes_places(shape in, int places) const {
    auto const m = measure(in);
    bool any = false;
    for (int k = 0; k < m.known; ++k)
      node(k).what.visit([&]<class Kind>(Kind const&) {
        if constexpr (is_joint<Kind>)
          for (int i = 0; i < node(k).operands; ++i) {
            shape const s = m.out_of(operand(k, i));
            any = any || (Kind::mixes_places && s.height * s.width == places);
          }
      });
    return any;
  }
  /// Calls visit(layers or joint, memory) for each node.
  template <class Visit>
  constexpr void each_node(shape in, pass_size batch, Visit&& visit) const {
    auto const m = memory(in, batch);
    for (int k = 0; k < size; ++k) node(k).what.visit([&](auto const& what) { visit(what, m[k]); });
  }
  constexpr int child_code(std::size_t index) const { return node(node_of_child(index)).what.index(); }

  // ---- Memory ----

  constexpr std::size_t saved(shape in, pass_size batch) const { return memory(in, batch).saved; }
  constexpr std::size_t scratch(shape in, pass_size batch) const {
    auto const m = memory(in, batch);
    return std::max(m.results, m.gradients + m.other + m.twice) + m.spare + m.layer;
  }

  /// The nodes of layers that may be recomputed, each as a whole.
  planned_chain stretches(shape in, pass_size batch, double whole) const {
    of_nodes<std::uint16_t> all{};
    all.fill(1);
    batch.again = nullptr;
    auto const keep = memory(in, batch);
    batch.again = all.data();
    auto const lean = memory(in, batch);
    planned_chain plan{0, at(size), {}};
    for (int k = 0; k < size; ++k) {
      auto const taken = [&](graph_memory const& m) {
        return (k + 1 < size ? m[k + 1].begins : m.saved) - m[k].begins;
      };
      std::size_t const kept = taken(keep), left = taken(lean);
      plan.all.push_back({at(k), at(k) + 1, false, kept, kept, 0});
      if (left < kept)
        node(k).visit_layers([&](auto const& l) {
          plan.all.push_back({at(k), at(k) + 1, true, left, kept, work_of(l, keep[k].in) / whole});
        });
    }
    return plan;
  }

  // ---- Passes ----

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    auto const m = memory(a.in, a.batch);
    carver scratch(p.scratch);
    auto const others = scratch.next(m.results), spare = scratch.next(m.spare);
    results<T> const all{m, size, a.x, a.y, a.saved, others};
    pass<D> own = p.child(p.random, scratch.rest());
    if constexpr (Whole) own.input = a.x;
    std::size_t index = 0;
    for (int k = 0; k < size; ++k) {
      auto const& n = m[k];
      node(k).what.visit([&]<class Kind>(Kind const& what) {
        if constexpr (is_joint<Kind>) {
          pass<D> joins = own.child(own.random.child(std::uint64_t(most + k)), own.scratch);
          auto const in = operands(k, [&](int from) { return m.out_of(from); });
          auto const x = operands(k, [&](int from) { return all.input(from); });
          what.forward(joins,
                       {in, n.out, std::size_t(a.batch), x, kept_by(n, a.saved, spare),
                        a.parameters.subspan(n.at.parameters, n.count.parameters)},
                       all.of(k));
        } else {
          auto const state = a.state.subspan(n.at.state, n.count.state);
          if (n.again) p.device.copy(state, a.saved.subspan(n.state, state.size()));
          forward_child(own, child_of{*this, a.in, index++}, what,
                        {n.in, n.out, a.batch.of_sides({}), all.input(operand(k, 0)),
                         a.parameters.subspan(n.at.parameters, n.count.parameters), state, all.of(k),
                         kept_by(n, a.saved, spare)});
        }
      });
    }
  }

  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    auto const m = memory(a.in, a.batch);
    carver scratch(p.scratch);
    auto const gradients = scratch.next(m.gradients), other = scratch.next(m.other),
               twice = scratch.next(m.twice), spare = scratch.next(m.spare);
    results<T> const all{m, size, a.x, {}, a.saved, {}};
    auto const gradient = [&](int k) {
      if (k < 0) return a.dx;
      return k + 1 == size ? a.dy : gradients.subspan(m[k].gradient, m[k].size);
    };
    pass<D> own = p.child(p.random, scratch.rest());
    if constexpr (Whole) own.input = a.x;
    std::array<bool, std::size_t(most) + 1> wanted{!a.dx.empty()}, written{};  // by number + 1
    of_nodes<bool> begun{};  // of owners: their gradients exist
    std::size_t index = 0;   // of a child
    for (int k = 0; k < size; ++k) {
      wanted[at(k + 1)] = m[k].count.parameters > 0;
      for (int i = 0; i < node(k).operands; ++i)
        wanted[at(k + 1)] = wanted[at(k + 1)] || wanted[at(operand(k, i) + 1)];
      index += is_layer(k);
    }
    for (int k = size; k-- > 0;) {
      index -= is_layer(k);
      if (!wanted[at(k + 1)]) continue;
      auto const y = k + 1 == size ? a.y : view<T>(all.of(k));
      auto const& n = m[k];
      auto const ours = a.gradients.subspan(n.at.parameters, n.count.parameters);
      auto const parameters = a.parameters.subspan(n.at.parameters, ours.size());
      // Lets `give` write its contribution to an operand's gradient.
      auto const contribute = [&](int i, auto const& give) {
        int const from = operand(k, i);
        if (!wanted[at(from + 1)]) return give(std::span<T>{});
        auto const to = gradient(from);
        if (!std::exchange(written[at(from + 1)], true)) return give(to);
        give(other.first(to.size()));
        p.device.add(activation::none, to, other.first(to.size()), to);
      };
      node(k).what.visit([&]<class Kind>(Kind const& what) {
        if constexpr (is_joint<Kind>) {
          pass<D> joins = own.child(own.random.child(std::uint64_t(most + k)), own.scratch);
          auto const in = operands(k, [&](int from) { return m.out_of(from); });
          auto const x = operands(k, [&](int from) { return all.input(from); });
          joint_args<T> const given{in,        n.out, std::size_t(a.batch), x, kept_by(n, a.saved, spare),
                                    parameters};
          if constexpr (is_joint_with_variables<Kind>) {
            carver more(other);
            std::array<std::span<T>, std::tuple_size_v<node_operands>> to{}, sum{};
            for (std::size_t i = 0; i < in.size; ++i) {
              int const from = operand(k, int(i));
              if (!wanted[at(from + 1)]) continue;
              to[i] = gradient(from);
              if (std::exchange(written[at(from + 1)], true))
                sum[i] = std::exchange(to[i], more.aligned(to[i].size()));
            }
            what.backward(joins, given, y, view<T>(gradient(k)), std::span(to).first(in.size), ours);
            for (std::size_t i = 0; i < in.size; ++i)
              if (!sum[i].empty()) p.device.add(activation::none, sum[i], to[i], sum[i]);
            if (p.watch && !ours.empty()) p.watch->final_from(ours);
          } else {
            for (int i = 0; i < node(k).operands; ++i)
              contribute(i, [&](std::span<T> to) {
                what.backward(joins, given, y, view<T>(gradient(k)), std::size_t(i), to);
              });
          }
        } else {
          bool const more = n.shared && std::exchange(begun[at(node(k).owner)], true);
          child_of const which{*this, a.in, index};
          backward_args<T> call{n.in,
                                n.out,
                                a.batch.of_sides({}),
                                all.input(operand(k, 0)),
                                y,
                                gradient(k),
                                parameters,
                                a.state.subspan(n.at.state, n.count.state),
                                {},
                                more ? twice.first(ours.size()) : ours,
                                kept_by(n, a.saved, spare)};
          if (n.again)  // the original state: the forward pass has changed it
            forward_child(own, which, what,
                          {n.in, n.out, call.batch, call.x, parameters,
                           a.saved.subspan(n.state, n.count.state), all.of(k), call.saved});
          own.watch = n.shared ? nullptr : p.watch;
          contribute(0, [&](std::span<T> to) {
            call.dx = to;
            backward_child(own, which, what, call, own.scratch);
          });
          if (more && !ours.empty()) p.device.add(activation::none, ours, twice.first(ours.size()), ours);
          if (p.watch && n.shared && node(k).owner == k && !ours.empty()) p.watch->final_from(ours);
        }
      });
    }
  }

 private:
  static constexpr std::size_t at(int k) { return std::size_t(k); }

  /// find(number of a node) for all that a node is made from.
  template <class Found>
  struct each_operand {
    std::array<Found, std::tuple_size_v<node_operands>> of{};
    std::size_t size = 0;
    constexpr operator std::span<Found const>() const { return std::span(of).first(size); }
  };
  template <class Find>
  constexpr auto operands(int k, Find const& find) const {
    each_operand<decltype(find(0))> all;
    for (int i = 0; i < node(k).operands; ++i) all.of[all.size++] = find(operand(k, i));
    return all;
  }

  constexpr bool is_layer(int k) const {
    bool is = false;
    node(k).visit_layers([&](auto const&) { is = true; });
    return is;
  }
  constexpr int node_of_child(std::size_t index) const {
    int k = 0;
    for (std::size_t before = 0; k < size; ++k)
      if (is_layer(k) && before++ == index) break;
    return k;
  }

  constexpr graph_memory memory(shape in, pass_size batch) const {
    graph_memory m = measure(in);
    std::array<int, std::size_t(most) + 1> readers{};  // by number + 1
    variable_counts so_far;
    for (int k = 0; k < size; ++k)
      node(k).what.visit([&]<class Kind>(Kind const& what) {
        auto& n = m[k];
        n.size = std::size_t(batch) * n.out.size();
        n.kept = k + 1 < size && Kind::reads_y;
        for (int i = 0; i < node(k).operands; ++i) {
          int const from = operand(k, i);
          if (readers[at(from + 1)]++ > 0)
            m.other = std::max(m.other, rounded(std::size_t(batch) * m.out_of(from).size()));
          if (from < 0) continue;
          m[from].last = k;
          m[from].kept = m[from].kept || Kind::reads_operands;
        }
        if constexpr (!is_joint<Kind>) {
          n.count = nn::count(what, n.in);
          auto& owner = m[node(k).owner];
          if (&owner == &n) {
            n.at =
                std::exchange(so_far, {so_far.parameters + n.count.parameters, so_far.state + n.count.state});
          } else {
            n.at = owner.at;
            n.shared = owner.shared = true;
            m.twice = std::max(m.twice, rounded(n.count.parameters));
          }
          n.own_size = saved_by(what, n.in, batch.of_sides({}));
          m.layer = std::max(m.layer, scratch_of(what, n.in, batch.of_sides({})));
        } else if constexpr (requires { what.saved(std::span<shape const>(), std::size_t(1)); }) {
          auto const given = operands(k, [&](int from) { return m.out_of(from); });
          n.own_size = what.saved(given, std::size_t(batch));
          m.layer = std::max(m.layer, what.scratch(given, std::size_t(batch)));
        }
        if constexpr (is_joint_with_variables<Kind>) {
          n.count = nn::count(what, n.in);
          n.at =
              std::exchange(so_far, {so_far.parameters + n.count.parameters, so_far.state + n.count.state});
        }
      });
    for (int k = 0; k < size; ++k)
      node(k).what.visit([&]<class Kind>(Kind const&) {
        if constexpr (is_joint_with_variables<Kind>) {  // which gives all operands their gradients at once
          std::size_t all = 0;
          for (int i = 0; i < node(k).operands; ++i)
            if (int const from = operand(k, i); readers[at(from + 1)] > 1)
              all += rounded(std::size_t(batch) * m.out_of(from).size());
          m.other = std::max(m.other, all);
        }
      });
    auto const take = [&](std::size_t of) { return std::exchange(m.saved, m.saved + rounded(of)); };
    for (int k = 0; k < size; ++k) {
      auto& n = m[k];
      n.begins = m.saved;
      n.again = batch.again && batch.inner == 0 && batch.again[k] != 0 && k + 1 < size && n.own_size > 0 &&
                is_layer(k);
      n.kept = n.kept || n.again;
      if (n.kept) n.result = take(n.size);
      if (n.again) {
        n.state = take(n.count.state);
        m.spare = std::max(m.spare, rounded(n.own_size));
      } else {
        n.own = take(n.own_size);
      }
    }
    m.results = m.spread(size, &node_memory::result, [](node_memory const& n) { return !n.kept; });
    m.gradients = m.spread(size, &node_memory::gradient, [](node_memory const&) { return true; });
    return m;
  }
  template <class T>
  static std::span<T> kept_by(node_memory const& n, std::span<T> saved, std::span<T> spare) {
    return (n.again ? spare : saved.subspan(n.own)).first(n.own_size);
  }

  /// The results of nodes in a pass. Those in scratch exist only in the forward pass.
  template <class T>
  struct results {
    graph_memory const& m;
    int size;
    view<T> x;
    std::span<T> y, saved, scratch;

    std::span<T> of(int k) const {
      auto const& n = m[k];
      if (k + 1 == size) return y;
      if (n.kept) return saved.subspan(n.result, n.size);
      return scratch.empty() ? scratch : scratch.subspan(n.result, n.size);
    }
    view<T> input(int from) const { return from < 0 ? x : view<T>(of(from)); }
  };
};

}  // namespace edl::nn
