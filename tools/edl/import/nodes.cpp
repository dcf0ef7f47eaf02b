// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "edl/compute/nn/layer/padding.hpp"
#include "import/lifter.hpp"

namespace edl::tool::lifting {

namespace {

std::string extent_text(extent e) {
  return e.height == e.width ? fmt::format("{}", e.height) : fmt::format("{{{}, {}}}", e.height, e.width);
}

/// Two numbers of an attribute, as extents; one is a width.
extent pair_of(numbers const& of, extent otherwise) {
  constexpr std::int64_t most = 1 << 16;
  for (std::int64_t const n : of)
    if (n < 1 || n > most) throw unsupported{fmt::format("the extent {}", n)};
  if (of.size() == 1) return {1, int(of[0])};
  return of.size() == 2 ? extent{int(of[0]), int(of[1])} : otherwise;
}

/// Where it is not what edl's layers have.
void epsilon(node const& n, std::vector<std::string>& options) {
  if (float const e = n.real("epsilon", 1e-5f); e != 1e-3f) options.push_back(".epsilon = " + literal(e));
}

}  // namespace

/// The option for a window's padding, and the extents of its result.
std::string lifter::padding_of(node const& n, shape in, extent window, extent stride, extent& out) const {
  numbers pads = n.list("pads");
  std::string const automatic = n.text("auto_pad");
  if (pads.size() == 2) pads = {0, pads[0], 0, pads[1]};
  if (pads.empty()) pads = {0, 0, 0, 0};
  for (std::int64_t const d : n.list("dilations"))
    if (d != 1) throw unsupported{"dilations"};
  if (pads.size() != 4) throw unsupported{"pads"};
  for (std::int64_t const p : pads)
    if (p < 0 || p > 1 << 16) throw unsupported{"pads"};
  bool const ceil = n.number("ceil_mode", 0) != 0;
  auto const places = [&](int size, int w, int s, std::int64_t before, std::int64_t after) {
    std::int64_t const room = std::int64_t(size) + before + after - w;
    return room < 0 ? 0 : int((room + (ceil ? s - 1 : 0)) / s) + 1;
  };
  out = {places(in.height, window.height, stride.height, pads[0], pads[2]),
         places(in.width, window.width, stride.width, pads[1], pads[3])};
  using enum nn::padding;
  for (auto const& [how, name] : {std::pair(valid, ""), std::pair(same, "same"), std::pair(half, "half")}) {
    if (automatic == "SAME_UPPER" && how != same) continue;
    auto const rows = nn::place(in.height, window.height, stride.height, how),
               columns = nn::place(in.width, window.width, stride.width, how);
    bool const fits = rows.places == out.height && columns.places == out.width && rows.before == pads[0] &&
                      columns.before == pads[1];
    if (!fits && automatic != "SAME_UPPER" && !(automatic == "VALID" && how == valid)) continue;
    out = {rows.places, columns.places};
    return *name ? fmt::format(".padding = nn::padding::{}", name) : std::string();
  }
  throw unsupported{fmt::format("the padding {}, {}, {}, {}, where edl pads as `valid`, `same` or `half`",
                                pads[0], pads[1], pads[2], pads[3])};
}

value lifter::convolution(node const& n) {
  value const& x = variable_operand(n, 0);
  tensor const& w = kernel(n, 1);
  std::size_t const rank = w.dims.size();
  if (rank != 3 && rank != 4) throw unsupported{"a kernel of 3 dimensions"};
  int const from = picture_of(x);
  shape const in = shape_of(from);
  std::int64_t const groups = n.number("group", 1);
  extent const kernel = pair_of({w.dims.begin() + 2, w.dims.end()}, {}),
               stride = pair_of(n.list("strides"), 1);
  if (groups < 1 || in.channels % groups != 0 || w.dims[1] != in.channels / groups || w.dims[0] % groups != 0)
    throw unsupported{
        fmt::format("a kernel of {} channels for {} in {} groups", w.dims[1], in.channels, groups)};
  extent out;
  std::string const padding = padding_of(n, in, kernel, stride, out);
  int const filters = small(w.dims[0]);
  std::vector<std::string> options{fmt::format(".filters = {}", filters)};
  if (kernel.height != 1 || kernel.width != 1) options.push_back(".kernel = " + extent_text(kernel));
  if (stride.height != 1 || stride.width != 1) options.push_back(".stride = " + extent_text(stride));
  if (!padding.empty()) options.push_back(padding);
  if (groups != 1) options.push_back(fmt::format(".groups = {}", groups));
  tensor t = turned(w, rank == 4 ? numbers{2, 3, 1, 0} : numbers{2, 1, 0});
  std::vector<variable> variables{
      {"kernel", {kernel.height, kernel.width, w.dims[1], filters}, std::move(t.floats)}};
  if (has(n, 2))
    variables.push_back({"bias", {filters}, floats(n, 2, std::size_t(filters))});
  else
    options.push_back(".use_bias = false");
  return picture(layer(from, "nn::conv2d", std::move(options), {out.height, out.width, filters}, "conv2d",
                       std::move(variables)),
                 rank - 1);
}

value lifter::transposed_convolution(node const& n) {
  value const& x = variable_operand(n, 0);
  tensor const& w = kernel(n, 1);
  if (w.dims.size() != 4 || n.number("group", 1) != 1) throw unsupported{"groups, or not 2 dimensions"};
  int const from = picture_of(x);
  shape const in = shape_of(from);
  extent const kernel = pair_of({w.dims[2], w.dims[3]}, {}), stride = pair_of(n.list("strides"), 1);
  numbers pads = n.list("pads"), more = n.list("output_padding");
  if (pads.empty()) pads = {0, 0, 0, 0};
  if (more.empty()) more = {0, 0};
  if (pads.size() != 4 || more.size() != 2 || w.dims[0] != in.channels) throw unsupported{"its padding"};
  for (numbers const* const all : {&pads, &more})
    for (std::int64_t const p : *all)
      if (p < 0 || p > 1 << 16) throw unsupported{"its padding"};
  auto const size = [&](int of, int k, int s, std::size_t axis) {
    return small((std::int64_t(of) - 1) * s + k - pads[axis] - pads[axis + 2] + more[axis]);
  };
  int const filters = small(w.dims[1]);
  shape const out{size(in.height, kernel.height, stride.height, 0),
                  size(in.width, kernel.width, stride.width, 1), filters};
  auto const fits = [&](nn::padding how) {
    auto const rows = nn::place(out.height, kernel.height, stride.height, how),
               columns = nn::place(out.width, kernel.width, stride.width, how);
    auto const reaches = [&](int to, std::int64_t of, int k, int s) {
      return to == (how == nn::padding::same ? of * s : std::max((of - 1) * s + k, of * s));
    };
    bool const whole = reaches(out.height, in.height, kernel.height, stride.height) &&
                       reaches(out.width, in.width, kernel.width, stride.width);
    return whole && rows.before == pads[0] && columns.before == pads[1];
  };
  bool const valid = fits(nn::padding::valid);
  if (!valid && !fits(nn::padding::same)) throw unsupported{"its padding"};
  std::vector<std::string> options{fmt::format(".filters = {}", filters), ".kernel = " + extent_text(kernel)};
  if (stride.height != 1 || stride.width != 1) options.push_back(".stride = " + extent_text(stride));
  if (!valid) options.push_back(".padding = nn::padding::same");
  std::vector<variable> variables{
      {"kernel", {kernel.height, kernel.width, filters, in.channels}, turned(w, {2, 3, 1, 0}).floats}};
  if (has(n, 2))
    variables.push_back({"bias", {filters}, floats(n, 2, std::size_t(filters))});
  else
    options.push_back(".use_bias = false");
  return picture(
      layer(from, "nn::conv2d_transpose", std::move(options), out, "conv2d_transpose", std::move(variables)),
      3);
}

value lifter::pool(node const& n, bool greatest) {
  value const& x = variable_operand(n, 0);
  int const from = picture_of(x);
  shape const in = shape_of(from);
  extent const window = pair_of(n.list("kernel_shape"), 1), stride = pair_of(n.list("strides"), 1);
  extent out;
  std::string const padding = padding_of(n, in, window, stride, out);
  if (!greatest && !padding.empty() && n.number("count_include_pad", 0) != 0)
    throw unsupported{"a mean that counts padding"};
  std::string const type = greatest ? "max_pool" : "average_pool";
  if (window.height == in.height && window.width == in.width && out.height == 1 && out.width == 1)
    return picture(layer(from, "nn::global_" + type, {}, {1, 1, in.channels}), x.as.axes.size());
  std::vector<std::string> options{".window = " + extent_text(window)};
  if (stride.height != window.height || stride.width != window.width)
    options.push_back(".stride = " + extent_text(stride));
  if (!padding.empty()) options.push_back(padding);
  return picture(layer(from, "nn::" + type, std::move(options), {out.height, out.width, in.channels}),
                 x.as.axes.size());
}

value lifter::batch_norm(node const& n) {
  value const& x = variable_operand(n, 0);
  bool const row = x.as.axes.size() == 1;
  int const from = row ? this->row(x) : picture_of(x);
  shape const s = shape_of(from);
  std::vector<std::string> options;
  if (n.find("momentum")) options.push_back(".momentum = " + literal(n.real("momentum", 0)));
  epsilon(n, options);
  std::vector<variable> variables;
  for (std::size_t i = 1; char const* const name : {"gamma", "beta", "moving_mean", "moving_variance"})
    variables.push_back({name, {s.channels}, floats(n, i++, std::size_t(s.channels))});
  int const r =
      layer(from, "nn::batch_norm", std::move(options), s, "batch_normalization", std::move(variables));
  return row ? of_result(r, numbers{s.channels}) : picture(r, x.as.axes.size());
}

value lifter::layer_norm(node const& n) {
  value const& x = variable_operand(n, 0);
  if (axis_of(n.number("axis", -1), x) + 1 != x.as.axes.size()) throw unsupported{"several axes"};
  int const from = places(x);
  int const c = shape_of(from).channels;
  std::vector<variable> variables{{"gamma", {c}, floats(n, 1, std::size_t(c))}};
  variables.push_back(
      {"beta", {c}, has(n, 2) ? floats(n, 2, std::size_t(c)) : std::vector<float>(std::size_t(c))});
  std::vector<std::string> options;
  epsilon(n, options);
  return of_result(layer(from, "nn::layer_norm", std::move(options), shape_of(from), "layer_normalization",
                         std::move(variables)),
                   x.as.dims());
}

/// The last axis times a kernel of (inputs, units).
value lifter::dense(value const& x, tensor const& kernel, std::vector<float> const& bias) {
  auto dims = x.as.dims();
  if (kernel.dims.size() != 2 || dims.empty() || dims.back() != kernel.dims[0] || kernel.floats.empty())
    throw unsupported{"a kernel that does not fit"};
  int const units = small(kernel.dims[1]);
  if (dims.size() == 2 && terms_[x.term].op == "result" && contexts_.contains(terms_[x.term].result)) {
    if (!x.as.in_memory_order()) throw unsupported{"heads in another order"};
    dims.back() = units;
    return of_result(attention_of(terms_[x.term].result, kernel, bias), dims);
  }
  variable k{"kernel", kernel.dims, kernel.floats};
  bool const row = dims.size() == 1;
  int const from = row ? materialise(x.term) : places(x);
  if (row) {  // edl flattens samples in the order in which they lie
    auto const at = x.as.places();
    for (std::size_t i = 0; i < at.size(); ++i)
      std::copy_n(kernel.floats.data() + i * std::size_t(units), units,
                  k.values.data() + at[i] * std::size_t(units));
  }
  std::vector<std::string> options{fmt::format(".units = {}", units)};
  if (!row) options.push_back(".each_place = true");
  std::vector<variable> variables{std::move(k)};
  if (bias.empty())
    options.push_back(".use_bias = false");
  else
    variables.push_back({"bias", {units}, bias});
  shape const in = shape_of(from), out = row ? shape{1, 1, units} : shape{in.height, in.width, units};
  dims.back() = units;
  return of_result(layer(from, "nn::dense", std::move(options), out, "dense", std::move(variables)), dims);
}

/// Whether it could be made the bias of the dense layer that x is.
bool lifter::add_bias(value const& x, tensor const& bias) {
  term const& t = terms_[x.term];
  if (t.op != "result" || t.shared) return false;
  result& r = net_.results[std::size_t(t.result)];
  if (r.type == "nn::attention" && bias.size() == r.out.channels && bias.dims.back() == r.out.channels &&
      r.options.back().ends_with("_bias = false")) {
    int const c = r.out.channels;
    if (r.options.back() == ".use_bias = false") {
      std::int64_t const all = r.variables[0].dims[1];
      r.variables.insert(r.variables.begin() + 1,
                         {"query_key_value_bias", {all}, std::vector<float>(std::size_t(all))});
    }
    r.options.pop_back();
    r.variables.push_back({"output_bias", {c}, bias.floats});
    return true;
  }
  if (r.type != "nn::dense" || r.options.back() != ".use_bias = false" || bias.size() != r.out.channels ||
      bias.dims.empty() || bias.dims.back() != r.out.channels)
    return false;
  r.options.pop_back();
  r.variables.push_back({"bias", {r.out.channels}, bias.floats});
  return true;
}

/// A constant as an operand beside `with`, which it may flatten.
int lifter::constant_term(tensor const& t, value& with) {
  std::vector<float> const values = t.of_ints ? std::vector<float>(t.ints.begin(), t.ints.end()) : t.floats;
  term const& x = terms_[with.term];
  if (values.size() == 1)
    return add_term({.op = "number", .over = nowhere, .whole = x.whole, .number = double(values[0])});
  numbers const dims = with.as.dims();
  numbers own(t.dims.size() > dims.size() ? 0 : dims.size() + 1 - t.dims.size(), 1);
  own.insert(own.end(), t.dims.begin(), t.dims.end());
  if (own.size() != dims.size() + 1 || own[0] != 1) throw unsupported{"a constant with more axes"};
  shape const s = terms_.shape_of(with.term);
  int const first = with.as.places_of(s.channels);
  bool down = false, across = false;
  numbers step(dims.size(), 0);
  for (std::int64_t i = std::int64_t(dims.size()) - 1, all = 1; i >= 0; --i) {
    auto const axis = std::size_t(i);
    if (own[axis + 1] == 1) continue;
    if (own[axis + 1] != dims[axis]) throw unsupported{"a constant that is larger than the other operand"};
    step[axis] = all;
    all *= dims[axis];
    for (int const k : with.as.axes[axis]) (k < first ? down : across) = true;
  }
  if (down && across && dims.size() == 1 && x.op == "result") {
    with = of_result(row(with), dims);
    return constant_term(t, with);
  }
  if (with.as.size() > 1 << 24) throw unsupported{"a constant of this size"};
  spend(std::size_t(with.as.size()));
  std::vector<float> grid(std::size_t(with.as.size()));
  auto const at = with.as.places();
  for (std::size_t i = 0; i < grid.size(); ++i) {
    std::int64_t rest = std::int64_t(i), from = 0;
    for (std::size_t axis = dims.size(); axis-- > 0; rest /= dims[axis])
      from += rest % dims[axis] * step[axis];
    grid[at[i]] = values[std::size_t(from)];
  }
  std::vector<float> kept;
  auto const c = std::size_t(s.channels);
  for (std::size_t i = 0; i < grid.size(); ++i)
    if ((down || i < c) && (across || i % c == 0)) kept.push_back(grid[i]);
  shape const whole = x.whole;
  return add_term({.op = "variable",
                   .over = (down ? int(lifting::places) : 0) | (across ? int(channels) : 0),
                   .whole = whole,
                   .values = std::move(kept)});
}

value lifter::unary(value const& x, std::string op) {
  term const& t = terms_[x.term];
  term made{.op = std::move(op), .args = {x.term}, .over = t.over, .whole = t.whole};
  return {.term = add_term(std::move(made)), .as = x.as};
}

value lifter::function(value const& x, std::string type, std::vector<std::string> options) {
  int const from = materialise(x.term);
  return of_result(layer(from, std::move(type), std::move(options), shape_of(from)), x.as);
}

/// x · 0.5 · (erf(x / √2) + 1), in any order; x is then `gelu_of_`.
bool lifter::is_gelu(term const& product) {
  std::vector<int> factors;
  for (int const a : product.args)
    if (terms_[a].op == "*")
      factors.insert(factors.end(), terms_[a].args.begin(), terms_[a].args.end());
    else
      factors.push_back(a);
  if (factors.size() != 3) return false;
  bool half = false, error = false;
  int x = -1, of_error = -2;
  auto const number = [&](int k, double is) {
    return terms_[k].op == "number" && std::abs(terms_[k].number - is) < 1e-4;
  };
  for (int const k : factors) {
    term const& t = terms_[k];
    if (number(k, 0.5)) {
      half = true;
    } else if (t.op == "+" && (number(t.args[0], 1) || number(t.args[1], 1))) {
      term const& erf = terms_[t.args[number(t.args[0], 1) ? 1 : 0]];
      if (erf.op != "erf") return false;
      term const& in = terms_[erf.args[0]];
      if (in.args.size() != 2 || (in.op != "*" && in.op != "/")) return false;
      error = number(in.args[1], in.op == "*" ? std::sqrt(0.5) : std::sqrt(2.0));
      of_error = in.args[0];
    } else {
      x = k;
    }
  }
  gelu_of_ = x;
  return half && error && x == of_error;
}

value lifter::arithmetic(node const& n, std::string const& op) {
  return arithmetic(operand(n, 0), operand(n, 1), op);
}

value lifter::arithmetic(value a, value b, std::string const& op) {
  auto const made = [&](value const& like, int left, int right) -> value {
    term const &l = terms_[left], &r = terms_[right];
    term t{.op = op, .args = {left, right}, .over = l.over | r.over, .whole = terms_[like.term].whole};
    bool const gated = op == "*" && (r.op == "sigmoid" || l.op == "sigmoid");
    if (gated && r.op == "sigmoid" && r.args[0] == left) t.op = "silu", t.args = {left};
    if (gated && l.op == "sigmoid" && l.args[0] == right) t.op = "silu", t.args = {right};
    if (op == "*" && is_gelu(t)) t.op = "gelu", t.args = {gelu_of_};
    return {.term = add_term(std::move(t)), .as = like.as};
  };
  if (a.term < 0 && b.term < 0) throw unsupported{"constants only"};
  if ((a.term < 0 && !a.known) || (b.term < 0 && !b.known)) throw unsupported{"one operand"};
  if (value scores; attend(scores, a, b, op)) return scores;
  if (a.term < 0) {
    if (op == "+" && add_bias(b, *a.known)) return b;
    int const k = constant_term(*a.known, b);
    return made(b, k, b.term);
  }
  if (b.term < 0) {
    if (op == "+" && add_bias(a, *b.known)) return a;
    int const k = constant_term(*b.known, a);
    return made(a, a.term, k);
  }
  numbers const da = a.as.dims(), db = b.as.dims();
  if (da.size() != db.size()) throw unsupported{"operands with different numbers of axes"};
  bool swapped = false;
  if (product(da) < product(db)) std::swap(a, b), swapped = true;
  auto const done = [&] { return swapped ? made(a, b.term, a.term) : made(a, a.term, b.term); };
  shape const whole = terms_[a.term].whole, own = terms_.shape_of(a.term);
  if (da == db) {
    if (a.as.joined() == b.as.joined() && whole == terms_[b.term].whole) return done();
    auto axes = all_axes(a);
    if (!a.as.in_memory_order()) std::ranges::rotate(axes, axes.begin() + 1);
    int const ra = shaped(ordered(a, axes), own), rb = shaped(ordered(b, axes), own);
    view const as = a.as;
    a = of_result(ra, as), b = of_result(rb, as);
    return done();
  }
  // The smaller one has the channels only, or the places only.
  numbers const large = a.as.dims(), dims = b.as.dims();
  int over = nowhere;
  for (std::size_t i = 0; i < large.size(); ++i) {
    if (dims[i] == 1) continue;
    if (dims[i] != large[i]) throw unsupported{"operands of which each is larger in one axis"};
    over |= a.as.is_channels(i, own.channels) ? channels : lifting::places;
  }
  for (std::size_t i = 0; i < large.size(); ++i)
    if (large[i] != 1 && dims[i] == 1 && over != nowhere &&
        (a.as.is_channels(i, own.channels) ? channels : lifting::places) & over)
      throw unsupported{"an operand that has some of the places only"};
  bool const within = terms_[b.term].whole == whole && terms_[b.term].over == over;
  if (!within) {
    int const r = ordered(b, all_axes(b));
    bool const down = over == lifting::places;
    b.term = terms_.leaf(
        shaped(r, down ? shape{own.height, own.width, 1} : shape{1, 1, over == channels ? own.channels : 1}),
        whole, over);
  }
  return done();
}

value lifter::reduce(node const& n, std::string const& op) {
  value const& x = variable_operand(n, 0);
  numbers axes = list(n, "axes", 1);
  bool const keeps = n.number("keepdims", 1) != 0;
  std::size_t const rank = x.as.axes.size();
  std::set<std::size_t> gone;
  for (std::int64_t const a : axes) gone.insert(axis_of(a, x));
  if (axes.empty()) throw unsupported{"a sum over samples"};
  shape const s = terms_.shape_of(x.term);
  int const first = x.as.places_of(s.channels);
  std::set<int> parts;
  for (std::size_t const a : gone) parts.insert(x.as.axes[a].begin(), x.as.axes[a].end());
  int along = nowhere;
  std::size_t const downs = std::size_t(std::ranges::count_if(parts, [&](int k) { return k < first; }));
  if (first < 0 || (downs != 0 && downs != std::size_t(first)) ||
      (parts.size() != downs && parts.size() - downs != x.as.sizes.size() - std::size_t(first)))
    throw unsupported{"a reduction along some of the places or channels"};
  if (downs > 0) along |= lifting::places;
  if (parts.size() > downs) along |= channels;
  value y = x;
  if (along != nowhere) {
    if (along == lifting::places && (op == "mean" || op == "max") && terms_[x.term].over == both &&
        is_plain(x.term)) {
      int const from = materialise(x.term);
      y.term = terms_.leaf(layer(from, op == "mean" ? "nn::global_average_pool" : "nn::global_max_pool", {},
                                 {1, 1, s.channels}),
                           {1, 1, s.channels});
    } else {
      term const& t = terms_[x.term];
      term made{.op = op, .args = {x.term}, .along = along, .over = t.over & ~along, .whole = t.whole};
      y.term = add_term(std::move(made));
    }
  }
  view kept;
  std::map<int, int> names;
  for (int k = 0; k < int(x.as.sizes.size()); ++k)
    if (!parts.contains(k)) {
      names[k] = int(kept.sizes.size());
      kept.sizes.push_back(x.as.sizes[std::size_t(k)]);
    }
  for (std::size_t i = 0; i < rank; ++i) {
    if (gone.contains(i) && !keeps) continue;
    kept.axes.emplace_back();
    if (!gone.contains(i))
      for (int const k : x.as.axes[i]) kept.axes.back().push_back(names.at(k));
  }
  y.as = std::move(kept);
  return y;
}

value lifter::product_of(node const& n) {
  value const &a = operand(n, 0), &b = operand(n, 1);
  if (b.known && a.term >= 0) return dense(a, *b.known, {});
  if (a.known && b.term >= 0 && b.as.axes.size() == 2) {  // from the left: of the other axis
    value x = b;
    std::swap(x.as.axes[0], x.as.axes[1]);
    x = dense(x, turned(*a.known, {1, 0}), {});
    std::swap(x.as.axes[0], x.as.axes[1]);
    return x;
  }
  if (a.term >= 0 && b.term >= 0 && a.as.axes.size() == 3 && b.as.axes.size() == 3) return attended(a, b);
  if (a.term < 0 || b.term < 0 || a.as.axes.size() != 2 || b.as.axes.size() != 2)
    throw unsupported{"a product of tensors of more than 3 axes"};
  int const left = places(a), right = places(b);
  shape const s = shape_of(left), t = shape_of(right);
  int const columns = t.channels;
  if (s.channels != t.height * t.width) throw unsupported{"matrices that do not fit"};
  return of_result(joint("nn::matmul", {left, right}, {s.height, s.width, columns}),
                   numbers{a.as.dims()[0], columns});
}

value lifter::cut(value const& x, std::size_t axis, std::int64_t first, std::int64_t count) {
  auto dims = x.as.dims();
  if (first < 0 || count < 1 || count > dims[axis] - first) throw unsupported{"a part that is not inside"};
  if (count == dims[axis]) return x;
  bool const last = axis + 1 == dims.size(),
             picture = x.as.is_channels(axis, terms_.shape_of(x.term).channels);
  int const from = picture ? materialise(x.term) : dims.size() == 1 ? row(x) : places(x);
  shape s = shape_of(from);
  std::vector<std::string> options;
  if (first != 0) options.push_back(fmt::format(".first = {}", first));
  options.push_back(fmt::format(".count = {}", count));
  if (picture || last) {
    s.channels = small(count);
  } else {
    if (dims.size() != 2) throw unsupported{"a part of a picture's rows or columns"};
    s = {1, small(count), s.channels};
    options.push_back(".along = nn::places");
  }
  int const r = layer(from, "nn::slice", std::move(options), s);
  if (picture || last) slices_[r] = int(first);
  if (picture && !last) return this->picture(r, dims.size());
  dims[axis] = count;
  return of_result(r, dims);
}

std::vector<value> lifter::split(node const& n) {
  value const& x = variable_operand(n, 0);
  std::size_t const axis = axis_of(n.number("axis", 0), x);
  numbers sizes = list(n, "split", 1);
  std::int64_t const all = x.as.dims()[axis], parts = std::int64_t(n.outputs.size());
  if (sizes.empty()) sizes.assign(n.outputs.size(), (all + parts - 1) / parts);
  std::vector<value> made;
  for (std::int64_t first = 0; std::int64_t size : sizes) {
    size = std::min(size, all - first);
    made.push_back(cut(x, axis, first, size));
    first += size;
  }
  return made;
}

value lifter::reshape(value const& x, numbers dims) {
  std::int64_t const all = x.as.size();
  if (dims.empty()) throw unsupported{"a shape without samples"};
  numbers const before = x.as.dims();
  for (std::size_t i = 1; i < dims.size(); ++i)
    if (dims[i] == 0) dims[i] = i <= before.size() ? before[i - 1] : 1;
  std::int64_t rest = 1, open = 0;
  for (std::size_t i = 1; i < dims.size(); ++i) {
    if (dims[i] < -1 || dims[i] == 0 || (dims[i] > 0 && rest > all / dims[i])) throw unsupported{"its shape"};
    if (dims[i] > 0)
      rest *= dims[i];
    else
      ++open;
  }
  if (open > 1 || all % rest != 0 || (open == 0 && rest != all))
    throw unsupported{"a shape that mixes samples"};
  for (std::size_t i = 1; i < dims.size(); ++i)
    if (dims[i] == -1) dims[i] = all / rest;
  dims.erase(dims.begin());
  if (auto const as = x.as.reshaped(dims)) return {.term = x.term, .as = *as};
  return of_result(row(x), dims);
}

value lifter::gather(node const& n) {
  std::int64_t const axis = n.number("axis", 0);
  if (operand(n, 0).known) {
    tensor const& table = kernel(n, 0);
    value const& x = variable_operand(n, 1);
    if (table.dims.size() != 2 || axis != 0 || terms_[x.term].op != "result" || x.as.axes.size() > 1 ||
        net_.results[std::size_t(terms_[x.term].result)].what != result::kind::input)
      throw unsupported{"rows by numbers that are no input"};
    int const from = terms_[x.term].result, rows = small(table.dims[0]), width = small(table.dims[1]),
              count = int(shape_of(from).size());
    int const r = layer(from, "nn::embedding",
                        {fmt::format(".vocabulary = {}", rows), fmt::format(".width = {}", width)},
                        {1, count, width}, "embedding", {{"embeddings", table.dims, table.floats}});
    numbers dims = x.as.dims();
    dims.push_back(width);
    return of_result(r, dims);
  }
  value const& x = variable_operand(n, 0);
  tensor const& at = known(n, 1);
  if (value chosen; choose(n, x, at, chosen)) return chosen;
  std::size_t const along = axis_of(axis, x);
  if (at.ints.empty() || at.dims.size() > 1) throw unsupported{"its indices"};
  std::int64_t const size = x.as.dims()[along];
  numbers ints = at.ints;
  for (std::int64_t& i : ints) {
    i += i < 0 ? size : 0;
    if (i < 0 || i >= size) throw unsupported{"its indices"};
  }
  for (std::size_t i = 1; i < ints.size(); ++i)
    if (ints[i] != ints[0] + std::int64_t(i)) throw unsupported{"indices that do not follow each other"};
  value y = cut(x, along, ints[0], std::int64_t(ints.size()));
  if (at.dims.empty()) y.as.axes.erase(y.as.axes.begin() + std::ptrdiff_t(along));
  return y;
}

value lifter::joined(node const& n) {
  value const& x = variable_operand(n, 0);
  std::size_t const axis = axis_of(n.number("axis", 0), x);
  auto dims = x.as.dims();
  bool const last = axis + 1 == dims.size(), first = axis == 0 && !last;
  if (!last && !first) throw unsupported{"this axis"};
  bool const pictures = first && x.as.is_channels(0, terms_.shape_of(x.term).channels);
  std::vector<int> from;
  dims[axis] = 0;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    value const& one = variable_operand(n, i);
    auto const own = one.as.dims();
    if (own.size() != dims.size()) throw unsupported{"tensors with different numbers of axes"};
    dims[axis] += own[axis];
    if (dims.size() == 1)
      from.push_back(row(one));
    else if (pictures)
      from.push_back(picture_of(one));
    else if (last)
      from.push_back(places(one));
    else
      throw unsupported{"places one after the other"};
    shape const a = shape_of(from[0]), b = shape_of(from.back());
    if (a.height != b.height || a.width != b.width) throw unsupported{"tensors of different extents"};
  }
  int const r = beside(std::move(from));
  return pictures ? picture(r, dims.size()) : of_result(r, dims);
}

std::vector<value> lifter::layers_of(node const& n) {
  static std::map<std::string, char const*> const functions{
      {"Relu", "relu"}, {"Sigmoid", "sigmoid"}, {"Tanh", "tanh"}, {"Softplus", "softplus"}, {"Exp", "exp"},
      {"Log", "log"},   {"Sqrt", "sqrt"},       {"Abs", "abs"},   {"Neg", "neg"},           {"Erf", "erf"}};
  static std::map<std::string, char const*> const operators{
      {"Add", "+"},          {"Sub", "-"},       {"Mul", "*"},   {"Div", "/"},
      {"Pow", "pow"},        {"Min", "min"},     {"Max", "max"}, {"Less", "<"},
      {"LessOrEqual", "<="}, {"Equal", "equal"}, {"And", "*"}};
  static std::map<std::string, char const*> const reductions{
      {"ReduceSum", "sum"}, {"ReduceMean", "mean"}, {"ReduceMax", "max"}, {"ReduceMin", "min"}};
  std::string const& op = n.op;
  if (!n.domain.empty() && n.domain != "ai.onnx")
    throw unsupported{fmt::format("the domain '{}'", printable(n.domain, 50))};
  if (op == "Constant") {
    auto const found = values_.find(n.outputs[0]);
    if (found != values_.end()) return {found->second};
    tensor t;
    for (auto const& [name, a] : n.attributes) {
      bool const list = name == "value_ints" || name == "value_floats";
      t.of_ints = name.starts_with("value_int");
      t.ints = list ? a.ints : numbers(t.of_ints, a.i);
      t.floats = list ? a.floats : std::vector<float>(!t.of_ints, a.f);
      if (list) t.dims = {std::int64_t(t.ints.size() + t.floats.size())};
      if (!list && name != "value_int" && name != "value_float") throw unsupported{"its kind of constant"};
      if (!list) t.dims.clear();
    }
    if (std::uint64_t(t.size()) != t.ints.size() + t.floats.size()) throw unsupported{"its kind of constant"};
    return {{.known = std::make_shared<tensor const>(std::move(t))}};
  }
  if (op == "Shape" && operand(n, 0).term >= 0) {  // of one sample
    tensor t{.dims = {}, .ints = operand(n, 0).as.dims(), .of_ints = true};
    t.ints.insert(t.ints.begin(), 1);
    t.dims = {std::int64_t(t.ints.size())};
    return {{.known = std::make_shared<tensor const>(std::move(t))}};
  }
  if (std::ranges::all_of(n.inputs, [&](auto const& i) { return i.empty() || values_.at(i).known; }))
    return folded(n);
  if (states_.contains(operand(n, 0).term) &&
      (op == "Squeeze" || op == "Transpose" || op == "Reshape" || op == "Gather"))
    return {state_of(n, operand(n, 0))};
  if (op != "LSTM" && op != "GRU" && op != "Identity" && op != "Dropout")
    for (std::size_t i = 0; i < n.inputs.size(); ++i)
      if (states_.contains(operand(n, i).term))
        throw unsupported{"a recurrent layer's result whose steps or directions come first"};
  // Others may have a constant first.
  if (!operators.contains(op) && op != "MatMul" && op != "Gather" && op != "Where") variable_operand(n, 0);
  value const& x = operand(n, 0);
  if (auto const f = functions.find(op); f != functions.end()) return {unary(x, f->second)};
  if (auto const f = operators.find(op); f != operators.end()) return {arithmetic(n, f->second)};
  if (auto const f = reductions.find(op); f != reductions.end()) {
    if (value y; op == "ReduceSum" && sum_of_rows(n, y)) return {y};
    return {reduce(n, f->second)};
  }
  if (op == "LSTM" || op == "GRU") return recurrent(n);
  if (op == "Conv") return {convolution(n)};
  if (op == "ConvTranspose") return {transposed_convolution(n)};
  if (op == "MaxPool" || op == "AveragePool") return {pool(n, op == "MaxPool")};
  if (op == "GlobalAveragePool" || op == "GlobalMaxPool") {
    int const from = picture_of(variable_operand(n, 0));
    shape const s{1, 1, shape_of(from).channels};
    return {
        picture(layer(from, op == "GlobalMaxPool" ? "nn::global_max_pool" : "nn::global_average_pool", {}, s),
                x.as.axes.size())};
  }
  if (op == "BatchNormalization") return {batch_norm(n)};
  if (op == "LayerNormalization") return {layer_norm(n)};
  if (op == "Gemm") {
    tensor w = known(n, 1);
    if (n.real("alpha", 1) != 1 || n.real("beta", 1) != 1 || n.number("transA", 0) != 0 ||
        x.as.axes.size() != 1)
      throw unsupported{"factors, or a first operand that is turned"};
    if (n.number("transB", 0) != 0) w = turned(w, {1, 0});
    std::vector<float> bias;
    if (has(n, 2) && w.dims.size() == 2) {
      bias = known(n, 2).floats;
      if (bias.size() == 1) bias.assign(std::size_t(w.dims[1]), bias[0]);
      if (std::int64_t(bias.size()) != w.dims[1]) throw unsupported{"its bias"};
    }
    return {dense(x, w, bias)};
  }
  if (op == "MatMul") return {product_of(n)};
  if (op == "LeakyRelu")
    return {function(x, "nn::leaky_relu", {".slope = " + literal(n.real("alpha", 0.01f))})};
  if (op == "Elu") return {function(x, "nn::elu", {".alpha = " + literal(n.real("alpha", 1))})};
  if (op == "Gelu") return {unary(x, "gelu")};
  if (op == "Softmax" && scores_.contains(x.term)) {
    if (axis_of(n.number("axis", -1), x) != 2) throw unsupported{"this axis"};
    value y{.term = add_term(terms_[x.term]), .as = x.as};
    scores_[y.term] = scores_[x.term];
    scores_[y.term].normal = true;
    return {y};
  }
  if (op == "Softmax" || op == "LogSoftmax") {
    std::string const type = op == "Softmax" ? "nn::softmax" : "nn::log_softmax";
    std::size_t const axis = axis_of(n.number("axis", graph_.opset < 13 ? 1 : -1), x);
    if (x.as.is_channels(axis, terms_.shape_of(x.term).channels)) return {function(x, type, {})};
    if (axis + 1 != x.as.axes.size()) throw unsupported{"this axis"};
    int const from = x.as.axes.size() == 1 ? row(x) : places(x);
    return {of_result(layer(from, type, {}, shape_of(from)), x.as.dims())};
  }
  if (op == "Clip") {
    value y = x;
    for (std::size_t i : {1u, 2u}) {
      char const* const name = i == 1 ? "min" : "max";
      if (!n.find(name) && !has(n, i)) continue;
      tensor const limit{.dims = {}, .floats = {n.find(name) ? n.real(name, 0) : floats(n, i, 1)[0]}};
      y = arithmetic(y, {.known = std::make_shared<tensor const>(limit)}, i == 1 ? "max" : "min");
    }
    return {y};
  }
  if (op == "Where") {
    value const &a = operand(n, 1), &b = operand(n, 2);
    // yes · c + no · (1 − c) would make a NaN of an infinite number that is not chosen
    value y = arithmetic(a, b, "+");
    value const all = arithmetic(x, y, "*");
    term t = terms_[all.term];
    auto const sum = terms_[y.term].args;
    t.op = "where", t.args = {terms_[all.term].args[0], sum[0], sum[1]};
    return {{.term = add_term(std::move(t)), .as = all.as}};
  }
  if (op == "HardSigmoid" || op == "HardSwish") {
    auto const number = [](float f) {
      return value{.known = std::make_shared<tensor const>(tensor{.dims = {}, .floats = {f}})};
    };
    bool const swish = op == "HardSwish";
    float const alpha = swish ? 1.0f / 6 : n.real("alpha", 0.2f), beta = swish ? 0.5f : n.real("beta", 0.5f);
    value y = arithmetic(arithmetic(x, number(alpha), "*"), number(beta), "+");
    y = arithmetic(arithmetic(y, number(0), "max"), number(1), "min");
    return {swish ? arithmetic(x, y, "*") : y};
  }
  if (op == "Concat") {
    if (value y; rotate(n, y) || products_of_pairs(n, y)) return {y};
    return {joined(n)};
  }
  if (op == "Split") return split(n);
  if (op == "Slice") {
    numbers const starts = list(n, "starts", 1), ends = list(n, "ends", 2), axes = list(n, "axes", 3),
                  steps = has(n, 4) ? known(n, 4).ints : numbers{};
    value y = x;
    for (std::size_t i = 0; i < starts.size() && i < ends.size(); ++i) {
      std::size_t const axis = axis_of(i < axes.size() ? axes[i] : std::int64_t(i), x);
      std::int64_t const size = y.as.dims()[axis];
      auto const inside = [&](std::int64_t k) {
        return std::clamp(k < 0 ? k + size : k, std::int64_t(0), size);
      };
      if (i < steps.size() && steps[i] != 1) throw unsupported{"steps"};
      y = cut(y, axis, inside(starts[i]), inside(ends[i]) - inside(starts[i]));
    }
    return {y};
  }
  if (op == "Gather") return {gather(n)};
  if (op == "Identity" || op == "Dropout" || op == "Cast") return {x};
  if (op == "Flatten") {
    if (n.number("axis", 1) != 1) throw unsupported{"this axis"};
    return {reshape(x, {0, -1})};
  }
  if (op == "Reshape") return {reshape(x, known(n, 1).ints)};
  if (op == "Squeeze" || op == "Unsqueeze") {
    numbers axes = list(n, "axes", 1);
    value y = x;
    std::int64_t const rank =
        std::int64_t(x.as.axes.size()) + 1 + (op == "Unsqueeze" ? std::int64_t(axes.size()) : 0);
    std::set<std::size_t> which;
    for (std::int64_t const a : axes) which.insert(axis_of(a, std::size_t(rank)));
    if (op == "Unsqueeze") {
      for (std::size_t const a : which) {
        if (a > y.as.axes.size()) throw unsupported{"its axes"};
        y.as.axes.emplace(y.as.axes.begin() + std::ptrdiff_t(a));
      }
      return {y};
    }
    if (which.empty())
      for (std::size_t i = 0; i < y.as.axes.size(); ++i)
        if (y.as.axes[i].empty()) which.insert(i);
    for (auto a = which.rbegin(); a != which.rend(); ++a) {
      if (*a >= y.as.axes.size() || !y.as.axes[*a].empty()) throw unsupported{"an axis of several elements"};
      y.as.axes.erase(y.as.axes.begin() + std::ptrdiff_t(*a));
    }
    return {y};
  }
  if (op == "Transpose") {
    numbers const order = n.list("perm");
    value y = x;
    if (scores_.contains(x.term)) throw unsupported{"attention's scores in another order"};
    if (order.size() != x.as.axes.size() + 1 || order[0] != 0 || !is_permutation(order))
      throw unsupported{"an order with samples inside"};
    for (std::size_t i = 1; i < order.size(); ++i) y.as.axes[i - 1] = x.as.axes[axis_of(order[i], x)];
    return {y};
  }
  if (op == "Resize" || op == "Upsample") {
    std::vector<float> const scales = floats(n, op == "Resize" ? 2 : 1, 4);
    std::string const mode = n.text("mode");
    auto const whole = [](float f) { return f >= 1 && f <= 64 && f == std::floor(f); };
    if (!whole(scales[2]) || !whole(scales[3]) || scales[0] != 1 || scales[1] != 1 ||
        !(mode.empty() || mode == "nearest"))
      throw unsupported{"other than whole factors, nearest"};
    int const from = picture_of(x), down = int(scales[2]), across = int(scales[3]);
    shape const s = shape_of(from);
    return {picture(
        layer(from, "nn::upsample", {".factor = " + extent_text({down, across})},
              {small(std::int64_t(s.height) * down), small(std::int64_t(s.width) * across), s.channels}),
        3)};
  }
  throw unsupported{"edl has no layer for this operator"};
}

/// Of constants: a constant.
std::vector<value> lifter::folded(node const& n) {
  tensor const& x = known(n, 0);
  auto const made = [&](tensor t) {
    spend(t.ints.size() + t.floats.size());
    return std::vector{value{.known = std::make_shared<tensor const>(std::move(t))}};
  };
  if (n.op == "Identity" || n.op == "Dropout") return {operand(n, 0)};
  if (n.op == "ConstantOfShape") {
    tensor t{.dims = x.ints};
    std::int64_t const size = t.size();
    if (size < 0 || std::uint64_t(size) > room_) throw unsupported{"constants that grow too large"};
    attribute const* const a = n.find("value");
    t.of_ints = a && !a->ints.empty();
    if (t.of_ints)
      t.ints.assign(std::size_t(size), a->ints[0]);
    else
      t.floats.assign(std::size_t(size), a && !a->floats.empty() ? a->floats[0] : 0.0f);
    return made(std::move(t));
  }
  if (n.op == "Transpose") {
    numbers order = n.list("perm");
    for (auto i = x.dims.size(); order.size() < x.dims.size();) order.push_back(std::int64_t(--i));
    return made(turned(x, order));
  }
  if (n.op == "Gather" && x.of_ints && x.dims.size() == 1 && known(n, 1).dims.size() < 2 &&
      known(n, 1).of_ints) {
    tensor t{.dims = known(n, 1).dims, .of_ints = true};
    for (std::int64_t i : known(n, 1).ints) {
      if (i < 0) i += x.dims[0];
      if (i < 0 || i >= x.dims[0]) throw unsupported{"its indices"};
      t.ints.push_back(x.ints[std::size_t(i)]);
    }
    return made(std::move(t));
  }
  if (n.op == "Concat" && x.of_ints) {
    tensor t{.of_ints = true};
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      if (known(n, i).dims.size() != 1) throw unsupported{"constants only"};
      t.ints.insert(t.ints.end(), known(n, i).ints.begin(), known(n, i).ints.end());
      if (t.ints.size() > room_) throw unsupported{"constants that grow too large"};
    }
    t.dims = {std::int64_t(t.ints.size())};
    return made(std::move(t));
  }
  if (n.op == "Slice" && x.of_ints && x.dims.size() == 1 && !has(n, 4)) {
    numbers const starts = list(n, "starts", 1), ends = list(n, "ends", 2);
    if (starts.size() != 1 || ends.size() != 1) throw unsupported{"constants only"};
    auto const inside = [&](std::int64_t k) {
      return std::clamp(k < 0 ? k + x.dims[0] : k, std::int64_t(0), x.dims[0]);
    };
    std::int64_t const first = inside(starts[0]), last = std::max(inside(ends[0]), first);
    return made(
        {.dims = {last - first}, .ints = {x.ints.begin() + first, x.ints.begin() + last}, .of_ints = true});
  }
  if ((n.op == "Add" || n.op == "Sub" || n.op == "Mul" || n.op == "Div") && n.inputs.size() == 2) {
    tensor const& y = known(n, 1);
    bool const ints = x.of_ints && y.of_ints;
    if (x.of_ints != y.of_ints || (x.size() != y.size() && x.size() != 1 && y.size() != 1))
      throw unsupported{"constants only"};
    auto const work = [&](auto a, auto b) {
      using T = decltype(a);
      if (n.op == "Div" && b == T(0)) throw unsupported{"a division by 0"};
      if constexpr (std::is_integral_v<T>) {
        constexpr T most = T(1) << 31;
        if (a > most || a < -most || b > most || b < -most) throw unsupported{"large constants"};
      }
      return n.op == "Add" ? a + b : n.op == "Sub" ? a - b : n.op == "Mul" ? a * b : a / b;
    };
    tensor t{.dims = x.size() == 1 ? y.dims : x.dims, .of_ints = ints};
    for (std::size_t i = 0, count = std::size_t(x.size() == 1 ? y.size() : x.size()); i < count; ++i) {
      std::size_t const k = x.size() == 1 ? 0 : i, l = y.size() == 1 ? 0 : i;
      if (ints)
        t.ints.push_back(work(x.ints[k], y.ints[l]));
      else
        t.floats.push_back(work(x.floats[k], y.floats[l]));
    }
    return made(std::move(t));
  }
  if (n.op == "Squeeze" && x.size() == 1) {
    tensor t = x;
    t.dims.clear();
    return made(std::move(t));
  }
  if (n.op == "Unsqueeze") {
    tensor t = x;
    for (std::int64_t a : list(n, "axes", 1)) {
      if (a < 0) a += std::int64_t(t.dims.size()) + 1;
      if (a < 0 || a > std::int64_t(t.dims.size())) throw unsupported{"its axes"};
      t.dims.insert(t.dims.begin() + a, 1);
    }
    return made(std::move(t));
  }
  if (n.op == "Cast") {
    tensor t = x;
    std::int64_t const to = n.number("to", 1);
    t.of_ints = to == 6 || to == 7 || to == 9;
    if (t.of_ints && !std::ranges::all_of(x.floats, [](float f) { return std::abs(f) < 1e18f; }))
      throw unsupported{"large constants"};
    if (t.of_ints && !x.of_ints)
      t.ints.assign(x.floats.begin(), x.floats.end()), t.floats.clear();
    else if (!t.of_ints && x.of_ints)
      t.floats.assign(x.ints.begin(), x.ints.end()), t.ints.clear();
    return made(std::move(t));
  }
  throw unsupported{"constants only"};
}

}  // namespace edl::tool::lifting
