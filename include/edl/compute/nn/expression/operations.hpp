// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/nn/expression/tensor.hpp"

namespace edl::nn {

// Operations of tensors. An operand is broadcast along axes that it lacks. Comparisons are 1 where they are
// true, and 0 elsewhere; they have no gradient.

template <class A, class B>
  requires expression::operands<A, B>
constexpr tensor operator+(A const& a, B const& b) {
  return binary(expression::operation::add, a, b);
}
template <class A, class B>
  requires expression::operands<A, B>
constexpr tensor operator-(A const& a, B const& b) {
  return binary(expression::operation::subtract, a, b);
}
template <class A, class B>
  requires expression::operands<A, B>
constexpr tensor operator*(A const& a, B const& b) {
  return binary(expression::operation::multiply, a, b);
}
template <class A, class B>
  requires expression::operands<A, B>
constexpr tensor operator/(A const& a, B const& b) {
  return expression::quotient(a, b);
}
template <class A, class B>
  requires expression::operands<A, B>
constexpr tensor operator<(A const& a, B const& b) {
  return binary(expression::operation::less, a, b);
}
template <class A, class B>
  requires expression::operands<A, B>
constexpr tensor operator>(A const& a, B const& b) {
  return binary(expression::operation::less, b, a);
}
template <class A, class B>
  requires expression::operands<A, B>
constexpr tensor operator<=(A const& a, B const& b) {
  return binary(expression::operation::less_equal, a, b);
}
template <class A, class B>
  requires expression::operands<A, B>
constexpr tensor operator>=(A const& a, B const& b) {
  return binary(expression::operation::less_equal, b, a);
}
template <class A, class B>
  requires expression::operands<A, B>
constexpr tensor equal(A const& a, B const& b) {
  return binary(expression::operation::equal, a, b);
}
/// The lesser and the greater of two. If they are equal, each gets half of the gradient.
template <class A, class B>
  requires expression::operands<A, B>
constexpr tensor min(A const& a, B const& b) {
  return binary(expression::operation::least, a, b);
}
template <class A, class B>
  requires expression::operands<A, B>
constexpr tensor max(A const& a, B const& b) {
  return binary(expression::operation::greatest, a, b);
}
/// a to the power of b. For a < 0 it is a NaN unless b is whole. An exponent of a whole type is a product of
/// factors, so that it cannot be an option: an option is a `double`.
template <class A, class B>
  requires expression::operands<A, B>
constexpr tensor pow(A const& a, B const& b) {
  if constexpr (std::integral<B>)
    return expression::whole_power(a, b);
  else
    return binary(expression::operation::power, a, b);
}

constexpr tensor operator-(tensor x) { return x.within->add(expression::operation::negate, x); }
constexpr tensor exp(tensor x, int line = __builtin_LINE()) {
  return x.within->add(expression::operation::exp, x, {}, {}, line);
}
constexpr tensor expm1(tensor x) { return x.within->add(expression::operation::expm1, x); }
constexpr tensor log(tensor x, int line = __builtin_LINE()) {
  return x.within->add(expression::operation::log, x, {}, {}, line);
}
constexpr tensor sqrt(tensor x, int line = __builtin_LINE()) {
  return x.within->add(expression::operation::square_root, x, {}, {}, line);
}
/// |x|, whose gradient is 0 at 0.
constexpr tensor abs(tensor x, int line = __builtin_LINE()) {
  return x.within->add(expression::operation::absolute, x, {}, {}, line);
}
constexpr tensor square(tensor x) { return x * x; }
/// The standard normal distribution Φ.
constexpr tensor normal_cdf(tensor x, int line = __builtin_LINE()) {
  return x.within->add(expression::operation::normal_cdf, x, {}, {}, line);
}
constexpr tensor erf(tensor x) { return 2 * normal_cdf(x * 1.4142135623730951) - 1; }
/// The same value, without a gradient.
constexpr tensor stop_gradient(tensor x, int line = __builtin_LINE()) {
  return x.within->add(expression::operation::stop, x, {}, {}, line);
}

/// `yes` where `condition` is not 0, `no` elsewhere.
template <class A, class B>
constexpr tensor where(tensor condition, A const& yes, B const& no) {
  expression::scope& of = *condition.within;
  tensor const first = expression::as_tensor(of, yes);
  return of.add(expression::operation::choose, condition, first, expression::as_tensor(of, no));
}
template <class A, class B>
constexpr tensor clamp(tensor x, A const& low, B const& high) {
  return min(max(x, low), high);
}

/// Reductions: the result lacks the axes `along`. Equal greatest elements share the gradient evenly.
constexpr tensor sum(tensor x, axes along, int line = __builtin_LINE()) {
  return x.within->reduce(expression::operation::sum, x, along, line);
}
constexpr tensor mean(tensor x, axes along, int line = __builtin_LINE()) {
  return sum(x, along, line) / x.within->number_of_elements(along);
}
/// Over all axes of a sample.
constexpr tensor mean(tensor x, int line = __builtin_LINE()) {
  return mean(x, without(x.within->over_of(x), expression::samples), line);
}
constexpr tensor sum(tensor x, int line = __builtin_LINE()) {
  return sum(x, without(x.within->over_of(x), expression::samples), line);
}
constexpr tensor max(tensor x, axes along, int line = __builtin_LINE()) {
  return x.within->reduce(expression::operation::peak, x, along, line);
}
constexpr tensor min(tensor x, axes along, int line = __builtin_LINE()) { return -max(-x, along, line); }
/// The mean of the squared deviations from the mean.
constexpr tensor variance(tensor x, axes along, int line = __builtin_LINE()) {
  return mean(square(x - mean(x, along, line)), along, line);
}
/// log Σ exp(x), without overflow.
constexpr tensor logsumexp(tensor x, axes along, int line = __builtin_LINE()) {
  tensor const most = stop_gradient(max(x, along, line));
  return most + log(sum(exp(x - most), along, line));
}

namespace expression {

/// The activations as functions.
constexpr tensor sigmoid(tensor x, int line = __builtin_LINE()) {
  return x.within->add(operation::sigmoid, x, {}, {}, line);
}
constexpr tensor tanh(tensor x, int line = __builtin_LINE()) {
  return x.within->add(operation::tanh, x, {}, {}, line);
}
constexpr tensor softplus(tensor x, int line = __builtin_LINE()) {
  return x.within->add(operation::softplus, x, {}, {}, line);
}
constexpr tensor relu(tensor x) { return where(x > 0, x, 0); }
constexpr tensor silu(tensor x) { return x * sigmoid(x); }
constexpr tensor gelu(tensor x) { return x * normal_cdf(x); }
constexpr tensor softmax(tensor x, axes along = channels) {
  tensor const e = exp(x - stop_gradient(max(x, along)));
  return e / sum(e, along);
}
constexpr tensor log_softmax(tensor x, axes along = channels) { return x - logsumexp(x, along); }

}  // namespace expression
}  // namespace edl::nn
