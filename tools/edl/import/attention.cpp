// SPDX-License-Identifier: Apache-2.0
// Attention over several heads: its nodes have 4 axes, and are one layer of edl.
#include <cmath>

#include "import/lifter.hpp"

namespace edl::tool::lifting {

/// The node that makes a value, if it is of this operator.
node const* lifter::maker(std::string const& value, std::string const& op) const {
  auto found = makers_.find(value);
  while (found != makers_.end() && found->second->op == "Identity" && !found->second->inputs.empty())
    found = makers_.find(found->second->inputs[0]);
  return found != makers_.end() && found->second->op == op ? found->second : nullptr;
}

/// Channels of a dense layer by their numbers, which may repeat: a dense layer with these units.
bool lifter::choose(node const& n, value const& x, tensor const& at, value& made) {
  std::int64_t axis = n.number("axis", 0);
  if (axis < 0) axis += std::int64_t(x.as.axes.size()) + 1;
  if (terms_[x.term].op != "result" || at.dims.size() != 1 || axis != std::int64_t(x.as.axes.size()))
    return false;
  result const from = net_.results[std::size_t(terms_[x.term].result)];
  if (from.type != "nn::dense" || !x.as.is_channels(x.as.axes.size() - 1, from.out.channels)) return false;
  result r = from;
  auto const units = std::int64_t(at.ints.size());
  for (variable const& v : r.variables) spend(v.values.size() / std::size_t(v.dims.back()) * at.ints.size());
  for (variable& v : r.variables) {
    auto const all = std::size_t(v.dims.back());
    variable const old = v;
    v.dims.back() = units;
    v.values.clear();
    for (std::size_t row = 0; row < old.values.size() / all; ++row)
      for (std::int64_t const i : at.ints) {
        if (i < 0 || i >= std::int64_t(all)) throw unsupported{"its indices"};
        v.values.push_back(old.values[row * all + std::size_t(i)]);
      }
  }
  r.options[0] = fmt::format(".units = {}", units);
  r.out.channels = small(units);
  auto dims = x.as.dims();
  dims.back() = units;
  made = of_result(add(std::move(r)), dims);
  return true;
}

/// What a scaled or rotated part of a dense layer's result is of that layer's input.
lifter::linear lifter::linear_of(value const& x) const {
  linear l;
  int k = x.term;
  while (true) {
    term const& t = terms_[k];
    if (auto const turned = rotations_.find(k); turned != rotations_.end()) {
      l.turn = turned->second;
      k = t.args[0];
    } else if ((t.op == "*" || t.op == "/") && terms_[t.args[1]].op == "number") {
      double const by = terms_[t.args[1]].number;
      l.scale *= float(t.op == "*" ? by : 1 / by);
      k = t.args[0];
    } else if (t.op == "*" && terms_[t.args[0]].op == "number") {
      l.scale *= float(terms_[t.args[0]].number);
      k = t.args[1];
    } else {
      break;
    }
  }
  if (terms_[k].op != "result") throw unsupported{"attention to what is no linear map"};
  int r = terms_[k].result, first = 0;
  l.width = net_.results[std::size_t(r)].out.channels;
  if (auto const slice = slices_.find(r); slice != slices_.end()) {
    first = slice->second;
    r = net_.results[std::size_t(r)].from[0];
  }
  result const& dense = net_.results[std::size_t(r)];
  if (dense.type != "nn::dense" || dense.out.height * dense.out.width < 2)
    throw unsupported{"attention to what is no linear map"};
  auto const all = std::size_t(dense.out.channels);
  l.from = dense.from[0];
  l.inputs = int(dense.variables[0].dims[0]);
  for (variable const& v : dense.variables)
    for (std::size_t row = 0; row < v.values.size() / all; ++row) {
      auto const begin = v.values.begin() + std::ptrdiff_t(row * all) + first;
      auto& to = v.name == "bias" ? l.bias : l.kernel;
      to.insert(to.end(), begin, begin + l.width);
    }
  return l;
}

/// Scales or masks the scores of attention, if one of these is that.
bool lifter::attend(value& made, value const& a, value const& b, std::string const& op) {
  bool const first = scores_.contains(a.term);
  if (!first && !scores_.contains(b.term)) return false;
  value const& scores = first ? a : b;
  tensor const* const by = (first ? b : a).known.get();
  attention_part part = scores_.at(scores.term);
  if (!by || part.normal || by->of_ints || scores.as.axes.size() != 3)
    throw unsupported{"attention with other arithmetic"};
  if ((op == "*" || (op == "/" && first)) && by->size() == 1) {
    part.scale = op == "*" ? part.scale * by->floats[0] : part.scale / by->floats[0];
  } else if (op == "+" && !part.causal) {
    auto const n = std::size_t(scores.as.dims()[1]);
    if (by->floats.size() != n * n || n != std::size_t(scores.as.dims()[2])) throw unsupported{"its mask"};
    for (std::size_t i = 0; i < n * n; ++i)
      if (i % n > i / n ? !(by->floats[i] < -1e3f) : by->floats[i] != 0)
        throw unsupported{"a mask that is not causal"};
    part.causal = true;
  } else {
    throw unsupported{"attention with other arithmetic"};
  }
  made = {.term = terms_.add(terms_[scores.term]), .as = scores.as};
  scores_[made.term] = part;
  return true;
}

/// The product of queries and keys, or of weights and data, over several heads.
value lifter::attended(value const& a, value const& b) {
  auto const left = a.as.dims(), right = b.as.dims();
  auto const heads = [](value const& x, std::vector<std::vector<int>> const& axes) {
    return x.as.axes == axes;
  };
  if (left[0] != right[0] || left[2] != right[1]) throw unsupported{"a product of tensors of 4 axes"};
  if (auto const found = scores_.find(a.term); found != scores_.end()) {
    if (!found->second.normal || !heads(b, {{1}, {0}, {2}}))
      throw unsupported{"a product of tensors of 4 axes"};
    attention_heads const all{found->second, b};
    int const from = linear_of(b).from, places = small(left[1]), channels = small(left[0] * right[2]);
    int const r = layer(from, "unknown_attention", {}, {1, places, channels}, "unknown_attention");
    contexts_[r] = all;
    problems_.push_back({r, "`unknown_attention`: attention without a product with a kernel behind it"});
    return of_result(r, view{{places, left[0], right[2]}, {{1}, {0}, {2}}});
  }
  if (!heads(a, {{1}, {0}, {2}}) || !heads(b, {{1}, {2}, {0}}))
    throw unsupported{"a product of tensors of 4 axes"};
  attention_part const part{.query = a, .key = b};
  value y{.term = terms_.add({.op = "scores", .whole = {small(left[0]), small(left[1]), small(right[2])}}),
          .as = in_order({left[0], left[1], right[2]})};
  scores_[y.term] = part;
  return y;
}

/// The layer of attention whose heads' results are `context`, times the kernel of its result.
int lifter::attention_of(int context, tensor const& kernel, std::vector<float> const& bias) {
  attention_heads const& of = contexts_.at(context);
  linear const parts[] = {linear_of(of.weights.query), linear_of(of.weights.key), linear_of(of.data)};
  auto const dims = of.weights.query.as.dims();
  int const heads = int(dims[0]), width = int(dims[2]), c = heads * width;
  float const scale = of.weights.scale * parts[0].scale * parts[1].scale * std::sqrt(float(width));
  rotation const turn = parts[0].turn;
  for (linear const& l : parts)
    if (l.from != parts[0].from || l.inputs != c || l.width != c)
      throw unsupported{"attention between two results, or of other widths"};
  if (kernel.dims[0] != c || kernel.dims[1] != c) throw unsupported{"attention of other widths"};
  if (parts[1].turn.base != turn.base || parts[1].turn.interleaved != turn.interleaved ||
      parts[2].turn.base != 0)
    throw unsupported{"attention with rotations that differ"};
  // Heads that share keys and values have equal columns.
  auto const head_equal = [&](std::vector<float> const& m, int a, int b) {
    for (std::size_t row = 0; row < m.size() / std::size_t(c); ++row)
      for (int i = 0; i < width; ++i)
        if (m[row * std::size_t(c) + std::size_t(a * width + i)] !=
            m[row * std::size_t(c) + std::size_t(b * width + i)])
          return false;
    return true;
  };
  int group = heads;
  while (group > 1) {
    bool shared = heads % group == 0;
    for (int h = 0; shared && h < heads; ++h)
      for (linear const* l : {&parts[1], &parts[2]})
        shared = shared && head_equal(l->kernel, h, h / group * group) &&
                 head_equal(l->bias, h, h / group * group);
    if (shared) break;
    --group;
  }
  auto const columns = [&](auto const& pick, std::size_t rows) {
    std::vector<float> all;
    for (std::size_t row = 0; row < rows; ++row)
      for (int part = 0; part < 3; ++part)
        for (int h = 0; h < heads; h += part == 0 ? 1 : group)
          for (int i = 0; i < width; ++i) {
            std::vector<float> const& m = pick(parts[part]);
            float const x = m.empty() ? 0 : m[row * std::size_t(c) + std::size_t(h * width + i)];
            all.push_back(part == 0 ? x * scale : x);
          }
    return all;
  };
  int const n = c + 2 * (c / group);
  std::vector<variable> variables{
      {"query_key_value_kernel",
       {c, n},
       columns([](auto const& l) -> auto const& { return l.kernel; }, std::size_t(c))}};
  bool const biased = std::ranges::any_of(parts, [](linear const& l) { return !l.bias.empty(); });
  std::vector<std::string> options{fmt::format(".heads = {}", heads)};
  if (group > 1) options.push_back(fmt::format(".key_value_heads = {}", heads / group));
  if (of.weights.causal) options.push_back(".causal = true");
  if (turn.base != 0) {
    options.push_back(".rotary = true");
    if (turn.base != 10'000) options.push_back(".rotary_base = " + literal(turn.base));
    if (turn.interleaved) options.push_back(".interleaved = true");
  }
  if (biased || !bias.empty())
    variables.push_back(
        {"query_key_value_bias", {n}, columns([](auto const& l) -> auto const& { return l.bias; }, 1)});
  variables.push_back({"output_kernel", {c, c}, kernel.floats});
  if (!bias.empty())
    variables.push_back({"output_bias", {c}, bias});
  else
    options.push_back(biased ? ".output_bias = false" : ".use_bias = false");
  int const from = parts[0].from;
  return layer(from, "nn::attention", std::move(options),
               {1, net_.results[std::size_t(context)].out.width, c}, "attention", std::move(variables));
}

/// Concat(a · cos − b · sin, a · sin + b · cos) of the halves a and b of heads, or of their even and odd
/// channels.
bool lifter::rotate(node const& n, value& made) {
  if (n.inputs.size() != 2) return false;
  auto const operands = [&](node const* of, std::string const& op, std::size_t k) -> node const* {
    return of && of->inputs.size() == 2 ? maker(of->inputs[k], op) : nullptr;
  };
  node const *const less = maker(n.inputs[0], "Sub"), *const more = maker(n.inputs[1], "Add");
  node const *const ac = operands(less, "Mul", 0), *const bs = operands(less, "Mul", 1),
                    *const as = operands(more, "Mul", 0), *const bc = operands(more, "Mul", 1);
  if (!ac || !bs || !as || !bc || ac->inputs[0] != as->inputs[0] || bs->inputs[0] != bc->inputs[0] ||
      ac->inputs[1] != bc->inputs[1] || bs->inputs[1] != as->inputs[1])
    return false;
  node const* const halves = maker(ac->inputs[0], "Split");
  node const *const even = maker(ac->inputs[0], "Gather"), *const odd = maker(bs->inputs[0], "Gather");
  bool const interleaved = even && odd && even->inputs[0] == odd->inputs[0];
  if (!interleaved && (!halves || halves->outputs.size() != 2 || halves != maker(bs->inputs[0], "Split")))
    return false;
  value const& x = values_.at(interleaved ? even->inputs[0] : halves->inputs[0]);
  tensor const &cosine = known(*ac, 1), &sine = known(*bs, 1);
  auto const dims = x.as.dims();
  if (x.term < 0 || dims.size() != 3) return false;
  auto const half = std::size_t(dims[2] / 2), count = std::size_t(dims[1]);
  if (half < 1 || cosine.floats.size() != half * count || sine.floats.size() != half * count) return false;
  if (interleaved && (known(*even, 1).ints.size() < half || known(*odd, 1).ints.size() < half)) return false;
  if (interleaved)
    for (std::size_t i = 0; i < half; ++i)
      if (known(*even, 1).ints.at(i) != std::int64_t(2 * i) ||
          known(*odd, 1).ints.at(i) != std::int64_t(2 * i + 1))
        return false;
  // The angle at place p of pair i is p · base^(−i / half).
  double base = 10'000;
  if (half > 1 && count > 1) {
    double const angle = std::atan2(sine.floats[half + 1], cosine.floats[half + 1]);
    base = std::round(std::pow(angle, -double(half)));
  }
  for (std::size_t p = 0; p < count; ++p)
    for (std::size_t i = 0; i < half; ++i) {
      double const angle = double(p) * std::pow(base, -double(i) / double(half));
      if (!(std::abs(std::cos(angle) - double(cosine.floats[p * half + i])) < 1e-3))
        throw unsupported{"a rotation by other angles than base^(-i / n)"};
    }
  term t{.op = "rotated", .args = {x.term}, .whole = terms_[x.term].whole};
  made = {.term = terms_.add(std::move(t)), .as = x.as};
  rotations_[made.term] = {float(base), interleaved};
  return true;
}

}  // namespace edl::tool::lifting
