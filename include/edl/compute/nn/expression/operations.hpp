// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "edl/compute/nn/expression/tensor.hpp"

namespace edl::nn {
namespace expression {

/// An operand of a binary operation, with the line of an operator.
struct operand {
  tensor value{};  ///< if it has no scope: a number
  double constant = 0;
  int line;

  constexpr operand(tensor x, source_line at = {})  // NOLINT(google-explicit-constructor)
      : value(x), line(at.number) {}
  template <number N>
  constexpr operand(N n, source_line at = {})  // NOLINT(google-explicit-constructor)
      : constant(double(n)), line(at.number) {}

  constexpr tensor in(scope& s) const { return value.within != nullptr ? value : s.number(constant); }
};

/// The axes of a reduction; without any: those of a sample.
struct reduced_axes {
  axes along{};
  bool given = false;
  int wrong_line = 0;

  constexpr reduced_axes() = default;
  constexpr reduced_axes(axes of) : along(of), given(true) {}  // NOLINT(google-explicit-constructor)
  /// A mistake.
  template <number N>
  constexpr reduced_axes(N, source_line line = {})  // NOLINT(google-explicit-constructor)
      : wrong_line(line.number) {}

  constexpr axes of(tensor x) const {
    if (wrong_line > 0) x.within->fail({mistake_kind::number_for_axes, wrong_line, {}, {}});
    return given ? along : without(x.within->over_of(x), samples);
  }
};

constexpr tensor binary(operation o, operand const& a, operand const& b) {
  scope& of = *(a.value.within != nullptr ? a : b).value.within;
  tensor const first = a.in(of);
  return of.add(o, a.line, first, b.in(of));
}

/// a / b. A division of each element of a row by one number is one division.
constexpr tensor quotient(operand const& a, operand const& b) {
  if (a.value.within != nullptr && b.value.within != nullptr) {
    scope& of = *a.value.within;
    if (has(of.over_of(a.value), channels) && !has(of.over_of(b.value), channels))
      return of.add(operation::multiply, a.line, a.value,
                    of.add(operation::divide, a.line, of.one(), b.value));
  }
  return binary(operation::divide, a, b);
}

/// The nth power of x, by squares. Below 0 it is one of 1 / x: the gradient of 1 / xⁿ is a NaN at 0 and ±∞.
constexpr tensor whole_power(tensor x, long long n) {
  if (n < 0) return whole_power(quotient(1, x), -n);
  if (n == 0) return binary(operation::power, x, 0);
  if (n == 1) return x;
  tensor const root = whole_power(x, n / 2), even = binary(operation::multiply, root, root);
  return n % 2 == 0 ? even : binary(operation::multiply, even, x);
}

}  // namespace expression

// Operations of tensors. An operand is broadcast along axes that it lacks. Comparisons are 1 where they are
// true, and 0 elsewhere; they have no gradient.

constexpr tensor operator+(expression::operand const& a, expression::operand const& b) {
  return binary(expression::operation::add, a, b);
}
constexpr tensor operator-(expression::operand const& a, expression::operand const& b) {
  return binary(expression::operation::subtract, a, b);
}
constexpr tensor operator*(expression::operand const& a, expression::operand const& b) {
  return binary(expression::operation::multiply, a, b);
}
constexpr tensor operator/(expression::operand const& a, expression::operand const& b) {
  return quotient(a, b);
}
constexpr tensor operator<(expression::operand const& a, expression::operand const& b) {
  return binary(expression::operation::less, a, b);
}
constexpr tensor operator>(expression::operand const& a, expression::operand const& b) { return b < a; }
constexpr tensor operator<=(expression::operand const& a, expression::operand const& b) {
  return binary(expression::operation::less_equal, a, b);
}
constexpr tensor operator>=(expression::operand const& a, expression::operand const& b) { return b <= a; }
template <class A, class B>
  requires expression::operands<A, B>
constexpr tensor equal(A const& a, B const& b, expression::source_line line = {}) {
  return binary(expression::operation::equal, {a, line}, {b, line});
}
/// The lesser and the greater of two; a NaN if one of them is. If they are equal, each gets half of the
/// gradient.
template <class A, class B>
  requires expression::operands<A, B>
constexpr tensor min(A const& a, B const& b, expression::source_line line = {}) {
  return binary(expression::operation::least, {a, line}, {b, line});
}
template <class A, class B>
  requires expression::operands<A, B>
constexpr tensor max(A const& a, B const& b, expression::source_line line = {}) {
  return binary(expression::operation::greatest, {a, line}, {b, line});
}
/// a to the power of b. For a < 0 it is a NaN unless b is whole. An exponent of a whole type is a product of
/// factors, so that it cannot be an option: an option is a `double`.
template <class A, class B>
  requires expression::operands<A, B>
constexpr tensor pow(A const& a, B const& b, expression::source_line line = {}) {
  if constexpr (std::integral<B>) {
    expression::written_at const here(a, line);
    return expression::whole_power(a, b);
  } else {
    return binary(expression::operation::power, {a, line}, {b, line});
  }
}

constexpr tensor operator-(expression::operand const& x) {
  return x.value.within->add(expression::operation::negate, x.line, x.value);
}
constexpr tensor exp(tensor x, expression::source_line line = {}) {
  return x.within->add(expression::operation::exp, line.number, x);
}
constexpr tensor expm1(tensor x, expression::source_line line = {}) {
  return x.within->add(expression::operation::expm1, line.number, x);
}
constexpr tensor log(tensor x, expression::source_line line = {}) {
  return x.within->add(expression::operation::log, line.number, x);
}
constexpr tensor sqrt(tensor x, expression::source_line line = {}) {
  return x.within->add(expression::operation::square_root, line.number, x);
}
/// |x|, whose gradient is 0 at 0.
constexpr tensor abs(tensor x, expression::source_line line = {}) {
  return x.within->add(expression::operation::absolute, line.number, x);
}
constexpr tensor square(tensor x, expression::source_line line = {}) { return pow(x, 2, line); }
/// The standard normal distribution Φ.
constexpr tensor normal_cdf(tensor x, expression::source_line line = {}) {
  return x.within->add(expression::operation::normal_cdf, line.number, x);
}
constexpr tensor erf(tensor x, expression::source_line line = {}) {
  expression::written_at const here(x, line);
  return 2 * normal_cdf(x * 1.4142135623730951) - 1;
}
/// The same value, without a gradient.
constexpr tensor stop_gradient(tensor x, expression::source_line line = {}) {
  return x.within->add(expression::operation::stop, line.number, x);
}

/// `yes` where `condition` is not 0, `no` elsewhere. The other one is computed, too: if its slope is infinite
/// or a NaN there, so is the gradient. Make its argument safe: `where(x > 0, log(where(x > 0, x, 1)), 0)`.
template <class A, class B>
constexpr tensor where(tensor condition, A const& yes, B const& no, expression::source_line line = {}) {
  expression::scope& of = *condition.within;
  tensor const first = expression::operand(yes).in(of);
  return of.add(expression::operation::choose, line.number, condition, first, expression::operand(no).in(of));
}
/// The same of a number, such as an option.
template <expression::number C, class A, class B>
  requires expression::operands<A, B>
constexpr tensor where(C condition, A const& yes, B const& no, expression::source_line line = {}) {
  expression::operand const a(yes, line), b(no, line);
  expression::scope& of = *(a.value.within != nullptr ? a : b).value.within;
  tensor const first = a.in(of);
  return of.add(expression::operation::choose, line.number, of.number(double(condition)), first, b.in(of));
}
/// min(max(x, low), high): at a bound x gets half of the gradient, and a quarter where both bounds are equal.
template <class A, class B>
constexpr tensor clamp(tensor x, A const& low, B const& high, expression::source_line line = {}) {
  return min(max(x, low, line), high, line);
}

/// Reductions: the result lacks the axes `along`; without any, those of a sample. Equal greatest elements
/// share the gradient evenly. Where one element is a NaN, so is the result.
constexpr tensor sum(tensor x, expression::reduced_axes along = {}, expression::source_line line = {}) {
  return x.within->reduce(expression::operation::sum, x, along.of(x), line.number);
}
constexpr tensor mean(tensor x, expression::reduced_axes along = {}, expression::source_line line = {}) {
  expression::written_at const here(x, line);
  return sum(x, along) / x.within->number_of_elements(along.of(x));
}
constexpr tensor max(tensor x, axes along, expression::source_line line = {}) {
  return x.within->reduce(expression::operation::peak, x, along, line.number);
}
constexpr tensor min(tensor x, axes along, expression::source_line line = {}) {
  expression::written_at const here(x, line);
  return -max(-x, along);
}
/// The root of the sum of the squares: the Euclidean norm. Its gradient is 0 where the norm is.
constexpr tensor norm(tensor x, expression::reduced_axes along = {}, expression::source_line line = {}) {
  expression::written_at const here(x, line);
  tensor const squares = sum(square(x), along);
  tensor const none = equal(squares, 0);  // not so for a NaN
  return where(none, 0, sqrt(where(none, 1, squares)));
}
/// The number of the greatest element along `along`, nn::channels or nn::places; of equal ones the first. It
/// has no gradient. Where one is a NaN, it is the number of elements, which is no element's.
constexpr tensor argmax(tensor x, axes along, expression::source_line line = {}) {
  expression::written_at const here(x, line);
  tensor const index = x.within->positions(along, line.number);
  return min(where(x >= max(x, along), index, x.within->number_of_elements(along)), along);
}
/// 1 at the element along `axis` whose number is that of `index`, and 0 elsewhere: `one_hot(index,
/// x.channels())`. All are 0 where `index` is no number of an element.
constexpr tensor one_hot(tensor index, axis_length axis, expression::source_line line = {}) {
  return equal(index, index.within->positions(axis.axis, line.number), line);
}
/// The same of a number: `nn::sum(x * nn::one_hot(0, x.channels()), nn::channels)` is the first channel.
template <std::integral N>
constexpr tensor one_hot(N index, axis_length axis, expression::source_line line = {}) {
  return equal(axis.within->positions(axis.axis, line.number), index, line);
}
/// The sum of the elements up to each, itself included, along `along`: nn::channels, or nn::places row by
/// row.
constexpr tensor cumsum(tensor x, axes along, expression::source_line line = {}) {
  return x.within->accumulate(x, along, line.number);
}
/// The mean of the squared deviations from the mean.
constexpr tensor variance(tensor x, expression::reduced_axes along = {}, expression::source_line line = {}) {
  expression::written_at const here(x, line);
  return mean(square(x - mean(x, along)), along);
}
namespace expression {
/// What exponentials are made relative to. Where an element is a NaN, so are they.
constexpr tensor greatest_of(tensor x, reduced_axes along) {
  return stop_gradient(x.within->reduce(operation::peak_of_numbers, x, along.of(x), 0));
}
}  // namespace expression

/// log Σ exp(x), without overflow. Where all elements are −∞ it is, too, and its gradient is 0. Where one is
/// ∞ it is, too, and its gradient is of no use.
constexpr tensor logsumexp(tensor x, expression::reduced_axes along = {}, expression::source_line line = {}) {
  expression::written_at const here(x, line);
  tensor const most = expression::greatest_of(x, along);
  tensor const infinite = equal(abs(most), std::numeric_limits<double>::infinity());
  return most + log(sum(exp(x - where(infinite, 0, most)), along) + infinite);
}

namespace expression {

/// The activations as functions.
constexpr tensor sigmoid(tensor x, source_line line = {}) {
  return x.within->add(operation::sigmoid, line.number, x);
}
constexpr tensor tanh(tensor x, source_line line = {}) {
  return x.within->add(operation::tanh, line.number, x);
}
constexpr tensor softplus(tensor x, source_line line = {}) {
  return x.within->add(operation::softplus, line.number, x);
}
constexpr tensor relu(tensor x, source_line line = {}) {
  written_at const here(x, line);
  return where(x <= 0, 0, x);  // a NaN stays
}
constexpr tensor silu(tensor x, source_line line = {}) {
  written_at const here(x, line);
  return x * sigmoid(x);
}
constexpr tensor gelu(tensor x, source_line line = {}) {
  written_at const here(x, line);
  return x * normal_cdf(x);
}
constexpr tensor mish(tensor x, source_line line = {}) {
  written_at const here(x, line);
  return x * tanh(softplus(x));
}
constexpr tensor softmax(tensor x, reduced_axes along = channels, source_line line = {}) {
  written_at const here(x, line);
  tensor const e = exp(x - greatest_of(x, along));
  return e / sum(e, along);
}
constexpr tensor log_softmax(tensor x, reduced_axes along = channels, source_line line = {}) {
  written_at const here(x, line);
  tensor const most = greatest_of(x, along);  // not logsumexp: infinite elements are a NaN here
  return x - (most + log(sum(exp(x - most), along)));
}

}  // namespace expression
}  // namespace edl::nn
