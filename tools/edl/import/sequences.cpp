// SPDX-License-Identifier: Apache-2.0
// Layers of edl that are several nodes: recurrent ones, whose steps come first in ONNX, sums of rows, and
// products of pairs of rows.
#include "import/lifter.hpp"

namespace edl::tool::lifting {

/// LSTM and GRU of samples whose steps a Transpose has put first, or of such a layer's result.
std::vector<value> lifter::recurrent(node const& n) {
  bool const lstm = n.op == "LSTM";
  node const* const steps_first = maker(n.inputs[0], "Transpose");
  std::string const direction = n.text("direction");
  std::size_t const sides = direction == "bidirectional" ? 2 : 1;
  auto const state = states_.find(operand(n, 0).term);
  if (state != states_.end() ? state->second != "snu"
                             : !steps_first || steps_first->list("perm") != numbers{1, 0, 2})
    throw unsupported{"steps that do not come first"};
  if (has(n, 4) || (lstm && has(n, 7)) || n.find("activations") || n.find("clip") ||
      n.number("layout", 0) != 0 || n.number("input_forget", 0) != 0 ||
      (!lstm && n.number("linear_before_reset", 0) != 1))
    throw unsupported{
        "options other than edl's: all steps, usual activations, layout 0, no input_forget; "
        "in a GRU linear_before_reset"};
  if (n.outputs.size() > 2 && uses_[n.outputs[2]] > 0) throw unsupported{"its cell state as an output"};
  for (std::size_t const i : {5u, 6u})
    if (has(n, i) &&
        !(operand(n, i).known && std::ranges::all_of(known(n, i).floats, [](float x) { return x == 0; })))
      throw unsupported{"an initial state"};
  value const& x = state != states_.end() ? operand(n, 0) : values_.at(steps_first->inputs[0]);
  if (x.term < 0 || x.as.axes.size() != 2) throw unsupported{"its input"};
  int const from = places(x);
  shape const in = shape_of(from);
  tensor const &w = kernel(n, 1), &r = kernel(n, 2);
  std::size_t const gates = lstm ? 4 : 3;
  if (r.dims.size() != 3 || w.dims.size() != 3 || r.dims[0] != std::int64_t(sides) ||
      w.dims[0] != r.dims[0] || w.dims[1] != r.dims[1] || r.dims[1] != std::int64_t(gates) * r.dims[2] ||
      w.dims[2] != in.channels)
    throw unsupported{"its kernels"};
  auto const units = std::size_t(r.dims[2]), all = gates * units;
  std::vector<float> const both =
      has(n, 3) ? floats(n, 3, sides * 2 * all) : std::vector<float>(sides * 2 * all);
  // ONNX has the gates i, o, f, c; edl i, f, c, o. Those of a GRU are the same.
  std::vector<std::size_t> const order =
      lstm ? std::vector<std::size_t>{0, 3, 1, 2} : std::vector<std::size_t>{0, 1, 2};
  auto const turn = [&](tensor const& t, std::size_t rows, std::size_t side) {
    std::vector<float> to(rows * all);
    for (std::size_t g = 0; g < gates; ++g)
      for (std::size_t u = 0; u < units; ++u)
        for (std::size_t i = 0; i < rows; ++i)
          to[i * all + order[g] * units + u] = t.floats[((side * gates + g) * units + u) * rows + i];
    return to;
  };
  auto const width = std::int64_t(all);
  std::string const name = lstm ? "lstm" : "gru";
  auto const one = [&](bool last, std::size_t side) {
    std::vector<variable> variables{{"kernel", {in.channels, width}, turn(w, std::size_t(in.channels), side)},
                                    {"recurrent_kernel", {r.dims[2], width}, turn(r, units, side)}};
    std::vector<float> bias(lstm ? all : 2 * all);
    for (std::size_t g = 0; g < gates; ++g)
      for (std::size_t u = 0; u < units; ++u) {
        std::size_t const at = 2 * all * side + g * units + u, to = order[g] * units + u;
        if (lstm)
          bias[to] = both[at] + both[all + at] - (order[g] == 1 ? 1.0f : 0.0f);  // edl adds 1 to that of f
        else
          bias[to] = both[at], bias[all + to] = both[all + at];
      }
    variables.push_back({"bias", lstm ? numbers{width} : numbers{2, width}, std::move(bias)});
    std::vector<std::string> options{fmt::format(".units = {}", units)};
    if (direction == "reverse" || side == 1) options.push_back(".reverse = true");
    if (last) options.push_back(".last = true");
    shape const out{1, last ? 1 : in.height * in.width, int(units)};
    return layer(from, "nn::" + name, std::move(options), out, name, std::move(variables));
  };
  auto const made = [&](bool last) {
    int const y = sides == 1 ? one(last, 0) : beside({one(last, 0), one(last, 1)});
    shape const out = shape_of(y);
    value const v = of_result(y, last ? numbers{out.channels} : numbers{out.width, out.channels});
    states_[v.term] = fmt::format("{}{}nu", last ? "" : "s", sides == 1 ? 'd' : 'b');
    return v;
  };
  std::vector<value> results;
  for (std::size_t i = 0; i < n.outputs.size(); ++i)
    results.push_back(i < 2 && uses_[n.outputs[i]] > 0 ? made(i == 1) : x);
  return results;
}

/// What moves the axes of a recurrent layer's result, until they are those of edl.
value lifter::state_of(node const& n, value const& x) {
  std::string const from = states_.at(x.term);
  std::string to;
  auto const drop = [&](std::size_t axis) {
    to = from;
    to.erase(axis, 1);
  };
  if (n.op == "Transpose") {
    numbers const order = n.list("perm");
    if (order.size() == from.size() && is_permutation(order))
      for (std::int64_t const i : order) to += from[std::size_t(i)];
  } else if (n.op == "Squeeze") {
    if (auto const d = from.find('d'); list(n, "axes", 1) == numbers{std::int64_t(d)}) drop(d);
  } else if (n.op == "Gather") {  // the state of the only direction
    tensor const& at = known(n, 1);
    if (from[0] == 'd' && n.number("axis", 0) == 0 && at.dims.empty() &&
        (at.ints == numbers{0} || at.ints == numbers{-1}))
      drop(0);
  } else {  // directions and units become one axis
    numbers const& dims = known(n, 1).ints;
    std::size_t const axis = from.size() - 2;
    if ((from[axis] == 'd' || from[axis] == 'b') && dims.size() == axis + 1 &&
        std::all_of(dims.begin(), dims.end() - 1, [](std::int64_t d) { return d == 0; }) &&
        (dims.back() == -1 || dims.back() == shape_of(terms_[x.term].result).channels))
      drop(axis);
  }
  if (to.empty()) throw unsupported{"an order of a recurrent layer's axes that edl does not have"};
  value const y{.term = terms_.add(terms_[x.term]), .as = x.as};
  if (to != "nsu" && to != "nu") states_[y.term] = to;
  return y;
}

/// The sum of rows of a table by an input, where ids outside of the table have none.
bool lifter::sum_of_rows(node const& n, value& made) {
  node const *const each = maker(n.inputs[0], "Mul"), *const rows =
                                                          each ? maker(each->inputs[0], "Gather") : nullptr;
  node const *const beside = each ? maker(each->inputs[1], "Unsqueeze") : nullptr,
                    *const weights = beside ? maker(beside->inputs[0], "Where") : nullptr,
                    *const chosen = rows ? maker(rows->inputs[1], "Where") : nullptr,
                    *const inside = chosen ? maker(chosen->inputs[0], "And") : nullptr,
                    *const first = inside ? maker(inside->inputs[0], "GreaterOrEqual") : nullptr,
                    *const last = inside ? maker(inside->inputs[1], "Less") : nullptr;
  if (!weights || !first || !last || weights->inputs[0] != chosen->inputs[0] ||
      first->inputs[0] != last->inputs[0] || chosen->inputs[1] != first->inputs[0] ||
      n.number("keepdims", 1) != 0 || list(n, "axes", 1) != numbers{1} || !operand(*weights, 1).known)
    return false;
  value const& x = values_.at(first->inputs[0]);
  tensor const& table = kernel(*rows, 0);
  if (x.term < 0 || terms_[x.term].op != "result" || table.dims.size() != 2 ||
      known(*last, 1).ints != numbers{table.dims[0]} || floats(*weights, 1, 1)[0] != 1)
    return false;
  std::vector<std::string> options{fmt::format(".vocabulary = {}", table.dims[0]),
                                   fmt::format(".width = {}", table.dims[1])};
  if (known(*first, 1).ints == numbers{1}) options.push_back(".mask_zero = true");
  int const width = small(table.dims[1]);
  made = of_result(layer(terms_[x.term].result, "nn::embedding_bag", std::move(options), {1, 1, width},
                         "embedding_bag", {{"embeddings", table.dims, table.floats}}),
                   numbers{width});
  return true;
}

/// xDeepFM's products of pairs of rows: each layer is a kernel times those of the rows before and the first
/// ones.
bool lifter::products_of_pairs(node const& n, value& made) {
  std::string first, before;
  std::vector<tensor const*> kernels;
  for (std::string const& i : n.inputs) {
    node const *const sum = maker(i, "ReduceSum"),
                      *const product = sum ? maker(sum->inputs[0], "MatMul") : nullptr,
                      *const rows = product ? maker(product->inputs[1], "Reshape") : nullptr,
                      *const pairs = rows ? maker(rows->inputs[0], "Mul") : nullptr,
                      *const left = pairs ? maker(pairs->inputs[0], "Unsqueeze") : nullptr,
                      *const right = pairs ? maker(pairs->inputs[1], "Unsqueeze") : nullptr;
    if (!left || !right || !operand(*product, 0).known) return false;
    if (kernels.empty()) first = before = right->inputs[0];
    if (right->inputs[0] != first || left->inputs[0] != before) return false;
    kernels.push_back(&kernel(*product, 0));
    before = product->outputs[0];
  }
  value const& x = values_.at(first);
  if (x.term < 0 || x.as.axes.size() != 2) return false;
  int const from = places(x);
  shape const in = shape_of(from);
  for (tensor const* const k : kernels)
    if (k->dims.size() != 2) return false;
  std::int64_t const fields = in.height * in.width, maps = kernels[0]->dims[0],
                     layers = std::int64_t(kernels.size());
  std::vector<float> rest;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (kernels[i]->dims != numbers{maps, (i == 0 ? fields : maps) * fields}) return false;
    if (i == 0) continue;
    tensor const t = turned(*kernels[i], {1, 0});
    rest.insert(rest.end(), t.floats.begin(), t.floats.end());
  }
  std::vector<variable> variables{
      {"first_kernel", {fields * fields, maps}, turned(*kernels[0], {1, 0}).floats}};
  if (layers > 1) variables.push_back({"kernel", {layers - 1, maps * fields, maps}, std::move(rest)});
  shape const out{1, 1, small(layers * maps)};
  made = of_result(layer(from, "nn::compressed_interaction",
                         {fmt::format(".layers = {}", layers), fmt::format(".maps = {}", maps)}, out,
                         "compressed_interaction", std::move(variables)),
                   numbers{out.channels});
  return true;
}

}  // namespace edl::tool::lifting
