// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "import/lifter.hpp"

namespace edl::tool::lifting {

tensor turned(tensor const& t, numbers const& order) {
  tensor r{.dims = {}, .of_ints = t.of_ints};
  numbers dims = t.dims;
  view v = in_order(dims);
  view to{v.sizes, {}};
  if (order.size() != dims.size() || !is_permutation(order)) throw unsupported{"its axes"};
  for (std::int64_t const i : order) {
    r.dims.push_back(dims[std::size_t(i)]);
    to.axes.push_back(v.axes[std::size_t(i)]);
  }
  for (std::size_t const at : to.places())
    if (t.of_ints)
      r.ints.push_back(t.ints[at]);
    else
      r.floats.push_back(t.floats[at]);
  return r;
}

network lifter::run() {
  values_[""] = {};
  for (auto const& [name, t] : graph_.constants) room_ += 8 * (t.floats.size() + t.ints.size());
  for (auto const& [name, t] : graph_.constants)
    values_[name] = {.known = std::shared_ptr<tensor const>(std::shared_ptr<void>(), &t)};
  for (node const& n : graph_.nodes)
    for (std::string const& i : n.inputs) ++uses_[i];
  for (auto const& o : graph_.outputs) ++uses_[o.name];
  for (auto const& p : graph_.inputs) input(p);
  for (node const& n : graph_.nodes)
    for (std::string const& o : n.outputs)
      if (!o.empty()) makers_[o] = &n;
  for (node const& n : graph_.nodes) {
    if (n.outputs.empty()) continue;
    std::vector<value> made;
    try {
      made = layers_of(n);
    } catch (unsupported const& no) {
      made.assign(n.outputs.size(), placeholder(n, no.why));
    }
    while (made.size() < n.outputs.size())
      made.push_back(placeholder(n, "a result that edl's layer has not"));
    for (std::size_t i = 0; i < n.outputs.size(); ++i) {
      if (n.outputs[i].empty()) continue;
      values_[n.outputs[i]] = made[i];
      if (made[i].term >= 0 && uses_[n.outputs[i]] > 1) terms_[made[i].term].shared = true;
    }
  }
  outputs();
  return std::move(net_);
}

int lifter::add_term(term t) {
  int steps = 0;
  for (int const a : t.args) steps = std::max(steps, made_.contains(a) ? 0 : steps_[a] + 1);
  if (steps > 500) throw unsupported{"arithmetic of more than 500 steps without a layer between"};
  int const k = terms_.add(std::move(t));
  steps_[k] = steps;
  return k;
}

int lifter::add(result r) {
  bool const fits =
      r.out.height > 0 && r.out.width > 0 && r.out.channels > 0 &&
      std::int64_t(r.out.height) * r.out.width <= ((std::int64_t(1) << 31) - 1) / r.out.channels;
  if (!fits)
    throw unsupported{fmt::format("extents ({}, {}, {})", r.out.height, r.out.width, r.out.channels)};
  int nested = r.what == result::kind::joint;
  for (int const from : r.from) nested = std::max(nested, nested_[from] + (r.what == result::kind::joint));
  if (nested > 1000) throw unsupported{"more than 1000 joints in each other"};
  nested_[int(net_.results.size())] = nested;
  net_.results.push_back(std::move(r));
  return int(net_.results.size()) - 1;
}

numbers lifter::list(node const& n, std::string const& attribute, std::size_t i) const {
  if (n.find(attribute)) return n.list(attribute);
  return has(n, i) ? known(n, i).ints : numbers{};
}

int lifter::shaped(int r, shape s) {
  if (shape_of(r) == s) return r;
  if (s.height == 1 && s.width == 1) return layer(r, "nn::flatten", {}, s);
  std::vector<std::string> options;
  if (s.height != 1) options.push_back(fmt::format(".height = {}", s.height));
  if (s.width != 1) options.push_back(fmt::format(".width = {}", s.width));
  options.push_back(fmt::format(".channels = {}", s.channels));
  return layer(r, "nn::reshape", std::move(options), s);
}

int lifter::ordered(value const& x, std::vector<std::size_t> const& axes) {
  view v{x.as.sizes, {}};
  for (std::size_t const a : axes) v.axes.push_back(x.as.axes[a]);
  int const r = materialise(x.term);
  auto order = v.order();
  if (std::ranges::is_sorted(order)) return r;
  int const cut = order[0];
  std::ranges::rotate(order, std::ranges::find(order, 0));
  if (!std::ranges::is_sorted(order)) throw unsupported{"an order of axes that edl's layers do not have"};
  std::int64_t before = 1;
  for (int i = 0; i < cut; ++i) before *= v.sizes[std::size_t(i)];
  int const a = small(before), b = small(v.size() / before);
  shape const s = shape_of(r);
  int const from = s.channels == b ? r : shaped(r, {1, a, b});
  return layer(from, "nn::transpose", {}, {1, b, a});
}

int lifter::places(value const& x) {
  auto const dims = x.as.dims();
  int const c = dims.empty() ? 1 : small(dims.back()), rest = small(product(dims)) / std::max(c, 1);
  int const r = ordered(x, all_axes(x));
  return shape_of(r).channels == c
             ? r
             : shaped(r, dims.size() == 3 ? shape{small(dims[0]), small(dims[1]), c} : shape{1, rest, c});
}

int lifter::picture_of(value const& x) {
  auto const dims = x.as.dims();
  if (dims.size() != 2 && dims.size() != 3)
    throw unsupported{fmt::format("a tensor of {} axes, where a picture has 4", dims.size() + 1)};
  auto axes = all_axes(x);
  std::ranges::rotate(axes, axes.begin() + 1);
  return shaped(ordered(x, axes),
                {dims.size() == 2 ? 1 : small(dims[1]), small(dims.back()), small(dims[0])});
}

int lifter::build(int index) {
  term const t = terms_[index];
  if (t.op == "result") return t.result;
  static std::map<std::string, char const*> const layers{{"relu", "relu"}, {"sigmoid", "sigmoid"},
                                                         {"tanh", "tanh"}, {"softplus", "softplus"},
                                                         {"gelu", "gelu"}, {"silu", "silu"}};
  if (auto const found = layers.find(t.op); found != layers.end()) {
    int const x = materialise(t.args[0]);
    return layer(x, fmt::format("nn::{}", found->second), {}, shape_of(x));
  }
  bool const two = t.args.size() == 2 && (t.op == "+" || t.op == "*");
  auto const full = [&](int k) {
    term const& a = terms_[k];
    return a.op != "number" && a.op != "variable" && a.over == t.over && a.whole == t.whole;
  };
  if (two && full(t.args[0]) && full(t.args[1])) {
    int const a = materialise(t.args[0]), b = materialise(t.args[1]);
    if (shape_of(a) == shape_of(b)) return joint(t.op, {a, b}, shape_of(a));
  }
  for (int const k : {0, 1})
    if (two && full(t.args[std::size_t(k)])) {
      term const& other = terms_[t.args[std::size_t(1 - k)]];
      if (t.op == "*" && other.op == "number") {
        int const x = materialise(t.args[std::size_t(k)]);
        return layer(x, "nn::scale", {".factor = " + literal(float(other.number))}, shape_of(x));
      }
      if (t.op == "+" && other.op == "variable" && other.over == both) {
        int const x = materialise(t.args[std::size_t(k)]);
        shape const s = shape_of(x);
        return layer(x, "nn::positions", {}, s, "positions",
                     {{"rows", {s.height * s.width, s.channels}, other.values}});
      }
    }
  return formula_of(index);
}

bool lifter::is_plain(int index) const {
  term const& t = terms_[index];
  if (t.op == "result" || t.op == "relu" || t.op == "sigmoid" || t.op == "tanh" || t.op == "gelu" ||
      t.op == "silu")
    return true;
  return (t.op == "+" || t.op == "*") && std::ranges::all_of(t.args, [&](int a) {
           return terms_[a].over == t.over && terms_[a].op != "number" && terms_[a].op != "variable";
         });
}

int lifter::formula_of(int root) {
  // What other nodes read too, and layers compute, is a result of its own.
  std::map<int, int> leaves;
  std::set<int> seen;
  auto const collect = [&](auto const& self, int k) -> void {
    if (!seen.insert(k).second) return;
    term const t = terms_[k];
    if (t.op == "result" || (k != root && t.shared && is_plain(k))) {
      leaves[k] = materialise(k);
      return;
    }
    for (int const a : t.args) self(self, a);
  };
  collect(collect, root);
  term const t = terms_[root];
  formula f = write_formula(terms_, root, leaves, net_.formulas);
  shape const out = terms_.shape_of(root);
  if (f.from.empty() || f.from.size() > 8)
    throw unsupported{"a formula of constants, or of more than 8 results"};
  std::vector<std::string> options;
  if (f.from.size() == 1 && shape_of(f.from[0]) == t.whole)
    return layer(f.from[0], f.name, {}, out, f.name, std::move(f.variables));
  int const r = joint("nn::apply", f.from, out, {f.name + "{}"});
  net_.results.back().name = f.name;
  net_.results.back().variables = std::move(f.variables);
  return r;
}

void lifter::input(onnx_file::port const& p) {
  std::string const name = printable(p.name, 100);
  numbers dims;
  for (std::size_t i = 1; i < p.dims.size(); ++i) {
    std::int64_t d = p.dims[i];
    std::string const extent = p.extent(i);
    auto const given = extents_.find(extent);
    if (d < 1 && given != extents_.end()) d = given->second;
    if (d < 1 || d > std::int64_t(1) << 31)
      throw error(
          fmt::format("input '{}' has an extent '{}' that the file does not know: give it, for example by "
                      "--extent={}=128",
                      name, printable(extent, 100), printable(extent, 100)));
    dims.push_back(d);
  }
  if (dims.size() > 3) throw error(fmt::format("input '{}' has more than 4 axes", name));
  bool first = graph_.producer != "edl" && (dims.size() == 3 || dims.size() == 2), convolves = false;
  for (node const& n : graph_.nodes)
    if (!n.inputs.empty() && n.inputs[0] == p.name) {
      if (n.op == "Transpose" && n.list("perm") == numbers{0, 3, 1, 2}) first = false;
      convolves = convolves || n.op == "Conv";
    }
  first = first && (dims.size() == 3 || convolves);
  shape s{1, 1, 1};
  if (dims.size() == 1) s.channels = small(dims[0]);
  if (dims.size() == 2)
    s = first ? shape{1, small(dims[1]), small(dims[0])} : shape{1, small(dims[0]), small(dims[1])};
  if (dims.size() == 3)
    s = first ? shape{small(dims[1]), small(dims[2]), small(dims[0])}
              : shape{small(dims[0]), small(dims[1]), small(dims[2])};
  std::string const kind = p.ids             ? fmt::format("nn::ids{{.count = {}}}", s.size())
                           : dims.size() < 2 ? fmt::format("nn::features{{.count = {}}}", s.channels)
                           : s.height == 1
                               ? fmt::format("nn::image{{.width = {}, .channels = {}}}", s.width, s.channels)
                               : fmt::format("nn::image{{.height = {}, .width = {}, .channels = {}}}",
                                             s.height, s.width, s.channels);
  int const r = add({.what = result::kind::input, .type = p.name, .options = {kind}, .from = {}, .out = s});
  values_[p.name] = of_result(r, first ? channels_first(s, dims.size()) : in_order(dims));
}

void lifter::outputs() {
  std::vector<int> all;
  std::vector<std::pair<std::string, int>> heads;
  for (auto const& o : graph_.outputs) {
    value const& x = values_.at(o.name);
    if (x.term < 0) throw error(fmt::format("output '{}' is a constant", printable(o.name, 200)));
    bool const rows = graph_.outputs.size() > 1;
    try {
      if (auto const found = states_.find(x.term); found != states_.end() && found->second[0] == 's')
        throw unsupported{"a recurrent layer's result whose steps come first"};
      bool const ready = x.as.axes.size() == 3 && x.as.is_channels(0, shape_of(materialise(x.term)).channels);
      int const r = ready && !rows ? materialise(x.term) : rows ? row(x) : places(x);
      all.push_back(r);
      heads.emplace_back(o.name, int(shape_of(r).size()));
    } catch (unsupported const& no) {
      net_.problems.push_back(
          fmt::format("`unknown_output`: the output '{}': {}", printable(o.name, 200), no.why));
      all.push_back(layer(0, "unknown_output", {}, shape_of(0), "unknown_output"));
    }
  }
  net_.output = all[0];
  if (all.size() > 1) {
    net_.output = beside(all);
    net_.heads = std::move(heads);
  }
  std::set<int> needed{net_.output};
  for (int r = int(net_.results.size()); r-- > 0;)  // operands come first
    if (needed.contains(r))
      needed.insert(net_.results[std::size_t(r)].from.begin(), net_.results[std::size_t(r)].from.end());
  // What stands in a node's place has one operand; the cause may lie in another.
  std::set<int> told{net_.output}, read;
  std::vector<int> results{net_.output}, terms;
  auto const tell = [&](int r) {
    if (told.insert(r).second) results.push_back(r);
  };
  while (!results.empty() || !terms.empty())
    if (!terms.empty()) {
      int const t = terms.back();
      terms.pop_back();
      if (!read.insert(t).second) continue;
      if (terms_[t].op == "result") tell(terms_[t].result);
      terms.insert(terms.end(), terms_[t].args.begin(), terms_[t].args.end());
    } else {
      int const r = results.back();
      results.pop_back();
      std::ranges::for_each(net_.results[std::size_t(r)].from, tell);
      terms = std::move(lost_[r]);
    }
  for (problem const& p : problems_)
    if (told.contains(p.result)) net_.problems.push_back(p.text);
  std::erase_if(net_.formulas, [&](std::string const& f) {
    std::string const name = f.substr(7, f.find(' ', 7) - 7);
    return std::ranges::none_of(needed, [&](int r) { return net_.results[std::size_t(r)].name == name; });
  });
  net_.ends_in_softmax = net_.results[std::size_t(net_.output)].type == "nn::softmax";
}

int lifter::beside(std::vector<int> from) {
  shape out = shape_of(from[0]);
  std::int64_t sum = 0;
  for (int const r : from) sum += shape_of(r).channels;
  out.channels = small(sum);
  auto const& first = net_.results[std::size_t(from[0])];
  if (std::ranges::all_of(from, [&](int r) {
        auto const& s = net_.results[std::size_t(r)];
        return s.type == "nn::slice" && s.from == first.from && slices_.contains(r);
      })) {
    int next = 0;
    for (int const r : from) next = slices_[r] == next ? next + shape_of(r).channels : -1;
    if (next == shape_of(first.from[0]).channels) return first.from[0];
  }
  return joint("nn::concat", std::move(from), out);
}

value lifter::placeholder(node const& n, std::string const& why) {
  std::string name = n.op;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? char(std::tolower(c)) : '_';
  name = fmt::format("unknown_{}_{}", name, problems_.size() + 1);
  std::string const text =
      fmt::format("`{}`: node '{}' ({}): {}", name, printable(n.name, 200), printable(n.op, 50), why);
  auto const of = [&](int from, view as) {
    int const r = layer(from, name, {}, shape_of(from), name);
    problems_.push_back({r, text});
    for (std::string const& i : n.inputs)
      if (int const t = values_.at(i).term; t >= 0) lost_[r].push_back(t);
    return of_result(r, std::move(as));
  };
  for (std::size_t i = 0; i < n.inputs.size(); ++i)
    if (value const& x = operand(n, i); x.term >= 0) {
      int from = 0;
      try {
        from = materialise(x.term);
      } catch (unsupported const&) {
        continue;
      }
      return of(from, x.as);
    }
  return of(0, in_order({std::int64_t(shape_of(0).size())}));
}

network lift(onnx_file::network const& graph, std::map<std::string, std::int64_t> const& extents) {
  try {
    return lifter(graph, extents).run();
  } catch (unsupported const& no) {  // of an input, or of all outputs together
    throw error(fmt::format("cannot import the network: it has {}", no.why));
  }
}

}  // namespace edl::tool::lifting
