// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/layer.hpp"
#include "edl/compute/nn/naming.hpp"

namespace edl::nn {

/// Distributes a container's memory to its children, in the order of `children`. Assumes that they have the
/// container's sides.
template <class T>
struct forward_shares {
  pass_size batch;
  carver<T const> parameters, frozen;
  carver<T> state, saved;

  explicit forward_shares(forward_args<T> const& a)
      : batch(a.batch.of_sides(a.narrow)),
        parameters(a.parameters),
        frozen(a.frozen),
        state(a.state),
        saved(a.saved) {}

  /// Memory for the container itself.
  std::span<T> keep(shape s, bool narrow = false) {
    return saved.aligned(scalars_of(std::size_t(batch) * s.size(), narrow));
  }

  template <layer L>
  forward_args<T> next(L const& l, shape in, view<T> x, std::span<T> y) {
    return next(count(l, in), l.output(in), saved_by(l, in, batch), in, x, y);
  }
  forward_args<T> next(variable_counts n, shape out, std::size_t kept, shape in, view<T> x, std::span<T> y) {
    return {in,
            out,
            batch,
            x,
            parameters.next(n.parameters),
            state.next(n.state),
            y,
            saved.aligned(kept),
            {},
            frozen.next(n.frozen)};
  }
};

/// The same in the backward pass. The caller sets dy and dx.
template <class T>
struct backward_shares {
  pass_size batch;
  carver<T const> parameters, frozen, state;
  carver<T> gradients, saved;

  explicit backward_shares(backward_args<T> const& a)
      : batch(a.batch.of_sides(a.narrow)),
        parameters(a.parameters),
        frozen(a.frozen),
        state(a.state),
        gradients(a.gradients),
        saved(a.saved) {}

  std::span<T> kept(shape s, bool narrow = false) {
    return saved.aligned(scalars_of(std::size_t(batch) * s.size(), narrow));
  }

  template <layer L>
  backward_args<T> next(L const& l, shape in, view<T> x, view<T> y) {
    return next(count(l, in), l.output(in), saved_by(l, in, batch), in, x, y);
  }
  backward_args<T> next(variable_counts n, shape out, std::size_t kept, shape in, view<T> x, view<T> y) {
    return {in,
            out,
            batch,
            x,
            y,
            {},
            parameters.next(n.parameters),
            state.next(n.state),
            {},
            gradients.next(n.parameters),
            saved.aligned(kept),
            {},
            frozen.next(n.frozen)};
  }
};

/// Identifies a child of a container.
template <class C>
struct child_of {
  C const& container;
  shape in;  ///< the container's input
  std::size_t index;

  std::string operator()() const { return child_name(container, in, index); }
};
template <class C>
child_of(C const&, shape, std::size_t) -> child_of<C>;

/// Runs a container's child (a layer, or a step of several) with its own random stream.
template <class C, class L, class D, class... More>
void forward_child(pass<D> const& p, child_of<C> const& which, L const& l,
                   forward_args<typename D::scalar> const& a, More const&... more) {
  trace::scope const timed(p.trace, trace::direction::forward, which, a.in, a.out);
  pass<D> own = p.child(p.random.child(which.index), p.scratch);
  l.forward(own, a, more...);
  if (p.trace) p.device.synchronize();
}

/// The same in the backward pass; does nothing if no gradient is needed. Reports progress to the watch.
template <class C, class L, class D, class... More>
void backward_child(pass<D> const& p, child_of<C> const& which, L const& l,
                    backward_args<typename D::scalar> const& a, std::span<typename D::scalar> scratch,
                    More const&... more) {
  if (a.dx.empty() && a.gradients.empty()) return;
  trace::scope const timed(p.trace, trace::direction::backward, which, a.in, a.out);
  pass<D> own = p.child(p.random.child(which.index), scratch);
  own.watch = p.watch;
  l.backward(own, a, more...);
  if (p.trace) p.device.synchronize();
  if (p.watch && !a.gradients.empty()) p.watch->final_from(a.gradients);
}

/// Scalars of a container's saved memory for its children.
template <container L>
constexpr std::size_t saved_by_children(L const& l, shape in, pass_size batch) {
  std::size_t n = 0;
  l.children(in, [&](auto const& child, shape s, std::string_view) {
    n += rounded(saved_by(child, s, batch));
    return true;
  });
  return n;
}

/// The largest scratch that a child uses within one call.
template <container L>
constexpr std::size_t scratch_of_children(L const& l, shape in, pass_size batch) {
  std::size_t most = 0;
  l.children(in, [&](auto const& child, shape s, std::string_view) {
    auto const n = scratch_of(child, s, batch);
    most = n > most ? n : most;
    return true;
  });
  return most;
}

/// The reason why the first child that does not fit does not.
template <container L>
constexpr fit check_children(L const& l, shape in) {
  fit why = fit::fits;
  l.children(in, [&](auto const& child, shape s, std::string_view) {
    why = child.check(s);
    return why == fit::fits;
  });
  return why;
}

}  // namespace edl::nn
