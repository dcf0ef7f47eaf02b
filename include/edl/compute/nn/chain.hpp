// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <utility>

#include "edl/compute/nn/chain_memory.hpp"
#include "edl/compute/nn/child.hpp"
#include "edl/compute/nn/fuse.hpp"
#include "edl/core/unpack.hpp"

namespace edl::nn {

/// Layers one after the other. Write it as `sequential(…)`.
template <layer... Layers>
struct chain {
  std::tuple<Layers...> layers;

  static constexpr std::string_view name = "sequential";
  static constexpr bool serial = true;
  static constexpr std::size_t depth = sizeof...(Layers);
  template <std::size_t I>
  using child = std::tuple_element_t<I, std::tuple<Layers...>>;

  constexpr fit check(shape in) const { return check_children(*this, in); }
  constexpr shape output(shape in) const {
    edl::unpack([&](auto const&... l) { ((in = l.output(in)), ...); }, layers);
    return in;
  }
  template <class Visit>
  constexpr void children(shape in, Visit&& visit) const {
    auto const one = [&](auto const& l) {
      if (!visit(l, in, std::string_view{})) return false;
      in = l.output(in);
      return true;
    };
    edl::unpack([&](auto const&... l) { (void)(one(l) && ...); }, layers);
  }
  /// The steps that compute it.
  constexpr auto steps() const { return fuse(layers); }
  using steps_type = decltype(fuse(std::declval<std::tuple<Layers...> const&>()));
  static constexpr std::size_t length = std::tuple_size_v<steps_type>;
  static constexpr bool overwrites_dy = std::tuple_element_t<length - 1, steps_type>::overwrites_dy;
  static constexpr bool reads_y = [] {
    if constexpr (length > 0)
      return std::tuple_element_t<length - 1, steps_type>::reads_y;
    else
      return true;
  }();

  /// Whether the chain can add a value to its result, and apply an activation, before it stores it.
  static constexpr bool adds = [] {
    using last = std::tuple_element_t<length - 1, steps_type>;
    if constexpr (requires { last::adds; })
      return bool(last::adds);
    else
      return false;
  }();

  static constexpr bool adds_gradient = [] {
    if constexpr (length > 0)
      return nn::adds_gradient<std::tuple_element_t<0, steps_type>>;
    else
      return false;
  }();

  constexpr std::size_t saved(shape in, pass_size batch) const { return memory(in, batch).saved; }
  constexpr std::size_t scratch(shape in, pass_size batch) const { return memory(in, batch).scratch; }

  /// The size of both if scratch may overlap saved memory that is not in use. A pass then gets only saved
  /// memory, of this size.
  constexpr std::size_t workspace(shape in, pass_size batch) const { return memory(in, batch).workspace; }

  /// Its sides are those of the first and the last step.
  constexpr bfloat16_io narrows(shape in) const {
    bfloat16_io all{};
    std::size_t index = 0;
    each_step(in, [&](auto const& s, shape from) {
      auto const own = narrows_evenly(s, from);
      if (index++ == 0) all.in = own.in;
      all.out = own.out;
    });
    return all;
  }

  /// Adds `more` to the result if the chain `adds`, and applies `f` to the sum.
  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a, view<typename D::scalar> more = {},
               activation f = activation::none, bool narrow_more = false) const {
    auto const m = memory(a.in, sized(a));
    forward_shares shares(a);
    auto x = a.x;
    std::size_t index = 0, place = 0;
    each_step(a.in, [&](auto const& s, shape in) {
      shape const out = s.output(in);
      bool const last = index + 1 == length;
      auto const& behind = m.between[index + 1];
      std::size_t const size = scalars_of(std::size_t(a.batch) * out.size(), behind.narrow);
      auto const narrow = m.narrow(index, a.narrow);
      auto call = shares.next(count(s, in), out, 0, in, x, a.y);
      call.narrow = narrow;
      call.batch = a.batch.of_step(index, narrow);
      call.saved = a.saved.subspan(m.saved_at[index], s.saved(in, call.batch));
      if (m.again[index] != 0)
        p.device.copy(call.state, a.saved.subspan(m.state_at[index], call.state.size()));
      auto const kept = last ? a.y : a.saved.subspan(behind.at, behind.kept);
      auto const arena = arena_of(p, a.saved, m.live[index]);
      if (!last) call.y = behind.result_in(kept, arena).first(size);
      pass<D> own = p.child(p.random, m.below(index, arena));
      child_of const which{*this, a.in, place};
      if constexpr (requires { s.forward(own, call, more, f, narrow_more); }) {
        if (last && (!more.empty() || f != activation::none))
          forward_child(own, which, s, call, more, f, narrow_more);
        else
          forward_child(own, which, s, call);
      } else {
        forward_child(own, which, s, call);
      }
      if (!last && behind.bfloat16) p.device.store_bfloat16(call.y, std::as_writable_bytes(kept));
      ++index;
      place += s.width;
      x = call.y;
    });
  }

  /// Adds `more` to dx if the chain `adds_gradient`.
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a, view<typename D::scalar> more = {},
                bool masked = false, bool narrow_more = false) const {
    using T = typename D::scalar;
    auto const m = memory(a.in, sized(a));
    backward_shares shares(a);
    std::array<backward_args<T>, length> calls;
    std::array<std::span<T>, length> results, kepts;
    std::array<std::size_t, length> at;
    auto x = a.x;
    std::size_t index = 0, place = 0;
    bool wanted = !a.dx.empty();  // nothing before the first trained layer needs a gradient
    // First binds gradients in the order of the steps, then runs the steps in reverse.
    each_step(a.in, [&](auto const& s, shape in) {
      shape const out = s.output(in);
      auto const narrow = m.narrow(index, a.narrow);
      auto& call = calls[index] = shares.next(count(s, in), out, 0, in, x, a.y);
      call.narrow = narrow;
      call.batch = a.batch.of_step(index, narrow);
      call.saved = a.saved.subspan(m.saved_at[index], s.saved(in, call.batch));
      auto const arena = arena_of(p, a.saved, m.live[index]);
      if (length > 1 && index + 1 < length) {  // GCC 12 warns of a chain of one step without the former
        auto const& behind = m.between[index + 1];
        kepts[index] = a.saved.subspan(behind.at, behind.kept);
        call.y = results[index] = behind.result_in(kepts[index], arena)
                                      .first(scalars_of(std::size_t(a.batch) * out.size(), behind.narrow));
      }
      if (index == 0)
        call.dx = a.dx;
      else if (wanted)
        call.dx = m.between[index].gradient_in(arena, results[index - 1], kepts[index]).first(x.size());
      wanted = wanted || !call.gradients.empty();
      if (index > 0) calls[index - 1].dy = call.dx;
      at[index++] = place;
      place += s.width;
      x = call.y;
    });
    calls[length - 1].dy = a.dy;
    auto const all = steps();
    auto const again = [&]<std::size_t I>() {
      auto const& c = calls[I];
      // The original state: the forward pass has changed it.
      forward_args<T> const call{c.in,       c.out,        c.batch,
                                 c.x,        c.parameters, a.saved.subspan(m.state_at[I], c.state.size()),
                                 results[I], c.saved,      c.narrow,
                                 c.frozen};
      pass<D> own = p.child(p.random, m.below(I, arena_of(p, a.saved, m.live[I])));
      forward_child(own, child_of{*this, a.in, at[I]}, std::get<I>(all), call);
      if (m.between[I + 1].bfloat16) p.device.store_bfloat16(call.y, std::as_writable_bytes(kepts[I]));
    };
    auto const group = [&]<std::size_t... I>([[maybe_unused]] std::size_t end, std::index_sequence<I...>) {
      ((m.again[I] == end ? again.template operator()<I>() : void()), ...);
    };
    auto const one = [&]<std::size_t I>() {
      if constexpr (I + 1 < length)
        if (m.again[I] == I + 1 && !(calls[I].dx.empty() && calls[I].gradients.empty()))
          group(I + 1, std::make_index_sequence<I + 1>{});
      if constexpr (I > 0) {
        using before = std::tuple_element_t<I - 1, steps_type>;
        bool const used = !calls[I].dx.empty() || !calls[I].gradients.empty();
        if (used && m.between[I].bfloat16)
          p.device.load_bfloat16(std::as_bytes(kepts[I - 1]), results[I - 1]);
        if constexpr (before::recomputes)
          if (used && m.between[I].recomputed) {
            std::span<T> room{};
            view<T> kept_as_bfloat16{};
            if (I > 1 && m.between[I - 1].bfloat16) {
              room = m.below(I, arena_of(p, a.saved, m.live[I]));
              kept_as_bfloat16 = kepts[I - 2];
            }
            recompute(p, std::get<I - 1>(all), calls[I - 1], results[I - 1], kept_as_bfloat16, room);
          }
      }
      child_of const which{*this, a.in, at[I]};
      auto const below = m.below(I, arena_of(p, a.saved, m.live[I]));
      if constexpr (std::tuple_element_t<I, steps_type>::splits_backward)
        if (m.between[I].over_result && !calls[I].dx.empty()) {
          auto first = calls[I];
          first.dx = {};
          backward_child(p, which, std::get<I>(all), first, below);
          calls[I].gradients = {};
        }
      if constexpr (I == 0 && adds_gradient)
        if (!more.empty())
          return backward_child(p, which, std::get<I>(all), calls[I], below, more, masked, narrow_more);
      backward_child(p, which, std::get<I>(all), calls[I], below);
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (one.template operator()<length - 1 - I>(), ...);
    }(std::make_index_sequence<length>{});
  }

  /// Recomputes the result of a step from its input, `kept_as_bfloat16`, widening some samples at a time in
  /// `room`. If `kept_as_bfloat16` is empty, it reads the input in place.
  template <class D, class Step, class T>
  void recompute(pass<D>& p, Step const& s, backward_args<T> const& of, std::span<T> y,
                 view<T> kept_as_bfloat16, std::span<T> room) const {
    int const all = of.batch, most = kept_as_bfloat16.empty() ? all : recomputed_samples(all);
    for (int first = 0; first < all; first += most) {
      int const some = std::min(most, all - first);
      std::size_t const from = std::size_t(first) * of.in.size(), n = std::size_t(some) * of.in.size();
      auto x = of.x;
      if (!kept_as_bfloat16.empty()) {
        p.device.load_bfloat16(std::as_bytes(kept_as_bfloat16).subspan(from * sizeof(std::uint16_t)),
                               room.first(n));
        x = room.first(n);
      }
      auto const to = y.subspan(scalars_of(std::size_t(first) * of.out.size(), of.narrow.out),
                                scalars_of(std::size_t(some) * of.out.size(), of.narrow.out));
      auto size = of.batch;
      size.samples = some;
      s.recompute(p, {of.in, of.out, size, x, of.parameters, {}, to, of.saved, of.narrow, of.frozen});
    }
  }

  /// visit(step, its input), in order.
  template <class Visit>
  constexpr void each_step(shape in, Visit&& visit) const {
    edl::unpack([&](auto const&... s) { ((visit(s, in), in = s.output(in)), ...); }, steps());
  }
  template <class Step>
  static constexpr variable_counts count(Step const& s, shape in) {
    return nn::count(s.source(), in);
  }
  /// A narrow sample has an even number of elements. Checking channels covers samples of any height and
  /// width.
  template <class Step>
  static constexpr bfloat16_io narrows_evenly(Step const& s, shape in) {
    auto const all = s.narrows(in);
    return {all.in && in.channels % 2 == 0, all.out && s.output(in).channels % 2 == 0};
  }
  constexpr chain_memory<length> memory(shape in, pass_size batch) const {
    auto const all = asked(in, batch);
    return chain_memory<length>(all.of, all.sides, batch);
  }

  /// The memory of the steps, and which results between them are narrow.
  struct needs {
    std::array<step_memory, length> of;
    std::array<bool, length + 1> sides;
  };
  constexpr needs asked(shape in, pass_size batch) const {
    std::array<bfloat16_io, length> able;
    std::size_t index = 0;
    each_step(in, [&](auto const& s, shape from) {
      able[index] = narrows_evenly(s, from);
      able[index].out = able[index].out && !s.exact;
      ++index;
    });
    auto const sides = narrow_places<length>(able, batch);
    std::array<step_memory, length> of;
    index = 0;
    each_step(in, [&](auto const& s, shape from) {
      auto const size = batch.of_step(index, {sides[index], sides[index + 1]});
      of[index++] = {s.saved(from, size),
                     s.scratch(from, size),
                     std::size_t(batch) * s.output(from).size(),
                     count(s, from).state,
                     s.recomputes,
                     s.exact,
                     s.recomputes && s.saved(from, {1, batch.keep}) == s.saved(from, {2, batch.keep}),
                     s.over_x,
                     s.splits_backward,
                     s.reads_y};
    });
    return {of, sides};
  }
  /// The size of a pass for this chain itself.
  template <class Args>
  static constexpr pass_size sized(Args const& a) {
    pass_size own = a.batch;
    own.sides = a.narrow;
    return own;
  }
  /// A step's scratch: the pass's, or, without any, the part of the saved memory that earlier steps do not
  /// use.
  template <class D, class T>
  static std::span<T> arena_of(pass<D> const& p, std::span<T> saved, std::size_t live) {
    return p.scratch.empty() ? saved.subspan(live) : p.scratch;
  }
};

}  // namespace edl::nn
