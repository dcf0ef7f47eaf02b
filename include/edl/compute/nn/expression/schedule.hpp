// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

#include "edl/compute/nn/expression/derive.hpp"
#include "edl/compute/nn/expression/graph.hpp"

namespace edl::nn::expression {

/// Where a value is stored.
enum class memory : std::uint8_t {
  nowhere,            ///< in a register
  input,              ///< number `index` of the layer's inputs, or a loss's outputs
  label,              ///< a loss's labels
  slope,              ///< dy
  result,             ///< y
  input_gradient,     ///< of input number `index`
  variable,           ///< number `index`
  statistic,          ///< number `index`
  updated_statistic,  ///< the same after the step
  variable_gradient,  ///< of number `index`
  number,             ///< number `index` of those of a call
  position,           ///< 0, 1, … along an axis
  kept,               ///< number `index` of the values that the forward pass stores for the backward pass
  shared,             ///< of one call, for all threads
  total,              ///< the same, and each thread adds to one of its own
  own,                ///< of one thread
  own_sample          ///< of one thread, with all places of its sample
};

struct slot {
  memory where = memory::nowhere;
  std::int16_t index = -1;
  axes over{};
  std::int16_t of = -1;  ///< the node
  std::int8_t run = -1;  ///< in which it is computed; −1: it exists before
};

/// When a node is computed. Nodes without samples are computed before all samples, or after them if they need
/// sums over samples. Each sample has sections: even ones for nodes without places, odd ones that traverse
/// its places row by row. Each turn traverses a row once.
struct moment {
  std::int8_t run = 0;  ///< 0: before all samples; 1: for each; 2: after
  std::int8_t section = 0, turn = 0;

  friend constexpr auto operator<=>(moment const&, moment const&) = default;
};

/// An operation on each vector of a row.
enum class step_kind : std::uint8_t { load, repeat, compute, add_up, add_into };

struct step {
  step_kind kind = step_kind::load;
  operation what = operation::same;
  bool stores = false;
  std::int16_t slot = -1;
  std::int16_t a = 0, b = 0, c = 0;  ///< steps of the same block
  std::int16_t sum = -1;             ///< the register in which it is summed
};

/// The operations on a row in one turn: numbers first, then vectors.
struct block {
  moment when{};
  std::int16_t first = 0, count = 0;    ///< of `steps`
  std::int16_t outer = 0, numbers = 0;  ///< of `scalars`
  std::int16_t sums = 0;                ///< registers
};

/// Loops that compute some nodes.
struct program {
  static constexpr int most_slots = 192, most_blocks = 24, most_steps = 960, most_scalars = 320;

  node_list<most_derived> nodes{};
  std::array<std::int16_t, most_derived> slot_of{};  ///< of a node; −1: it has no memory
  std::array<slot, most_slots> slots{};
  int slot_count = 0;
  std::array<block, most_blocks> blocks{};
  int block_count = 0;
  std::array<step, most_steps> steps{};
  int step_count = 0;
  std::array<std::int16_t, most_scalars> scalars{};  ///< nodes
  int scalar_count = 0;
  std::array<std::int16_t, 16> kept{};  ///< nodes of the forward pass that the backward pass reads
  int kept_count = 0;
  std::array<axes, form::most_variables> variables{};
  std::array<axes, form::most_statistics> statistics{};
  int statistic_count = 0;
  std::int16_t labels = one_for_each;  ///< of a record, for a loss: otherwise so many, or
  static constexpr std::int16_t one_for_each = 0, a_class = -1;
  bool reads_input = false, reads_result = false;
  bool by_rows = true;     ///< samples do not matter, rows do
  bool by_blocks = true;   ///< rows do not matter either
  bool flat = true;        ///< nor do channels
  bool each_place = true;  ///< places are independent

  constexpr int memory_of(int n) const { return slot_of[std::size_t(n)]; }
  constexpr int sections(int run) const {
    int n = 0;
    for (int b = 0; b < block_count; ++b)
      if (moment const m = blocks[std::size_t(b)].when; m.run == run) n = std::max(n, m.section + 1);
    return n;
  }
  constexpr moment last() const { return blocks[std::size_t(block_count - 1)].when; }
};

/// Divides nodes into loops. `outputs` are nodes and their destinations.
class scheduler {
 public:
  struct output {
    int node = -1;
    memory where = memory::nowhere;
    int index = 0;
  };

  /// For a forward pass, which stores the values that `backward` reads.
  static constexpr program forward(form const& f, program const& backward) {
    scheduler s;
    for (int i = 0; i < f.nodes.size; ++i) s.p_.nodes.all[std::size_t(i)] = f.nodes[i];
    s.p_.nodes.size = f.nodes.size;
    s.variables_of(f);
    s.kept_from(backward);
    for (int i = 0; i < backward.kept_count; ++i) s.live_[std::size_t(backward.kept[std::size_t(i)])] = true;
    for (int i = 0; i < f.statistic_count; ++i)
      s.outputs_[std::size_t(s.output_count_++)] = {f.updates[std::size_t(i)], memory::updated_statistic, i};
    s.run({f.result, memory::result, 0});
    // The mean that a statistic follows counts all places.
    if (f.statistic_count > 0) s.p_.each_place = false;
    return s.p_;
  }

  /// For a layer's backward pass, or for both passes of a loss.
  static constexpr program backward(form const& f, derivative const& d) {
    scheduler s;
    s.p_.nodes = d.nodes;
    s.variables_of(f);
    bool const loss = d.mean >= 0;
    if (loss)
      s.outputs_[std::size_t(s.output_count_++)] = {d.mean, memory::result, 0};
    else
      s.forward_ = d.forward, s.result_ = f.result;
    for (int i = 0; i < f.input_count; ++i)
      s.outputs_[std::size_t(s.output_count_++)] = {d.inputs[std::size_t(i)], memory::input_gradient, i};
    for (int v = 0; v < f.variable_count; ++v)
      s.outputs_[std::size_t(s.output_count_++)] = {d.variables[std::size_t(v)], memory::variable_gradient,
                                                    v};
    s.run({});
    return s.p_;
  }

 private:
  constexpr node const& at(int i) const { return p_.nodes[i]; }
  constexpr bool inner(int i) const { return has(at(i).over, channels); }
  constexpr bool leaf(int i) const { return leaf_[std::size_t(i)]; }
  constexpr std::array<int, 3> operands(int i) const { return {at(i).a, at(i).b, at(i).c}; }
  constexpr bool live(int i) const { return live_[std::size_t(i)]; }

  constexpr void variables_of(form const& f) {
    for (int v = 0; v < f.variable_count; ++v)
      p_.variables[std::size_t(v)] = f.variables[std::size_t(v)].over;
    p_.statistic_count = f.statistic_count;
    for (int s = 0; s < f.statistic_count; ++s)
      p_.statistics[std::size_t(s)] = f.statistics[std::size_t(s)].over;
  }
  constexpr void kept_from(program const& backward) {
    p_.kept = backward.kept;
    p_.kept_count = backward.kept_count;
  }

  constexpr void run(output only) {
    if (only.node >= 0) outputs_[std::size_t(output_count_++)] = only;
    p_.slot_of.fill(-1);
    mark_live();
    place_in_time();
    give_memory();
    make_blocks();
    find_shortcuts();
  }

  constexpr void mark_live() {
    for (int k = 0; k < output_count_; ++k) live_[std::size_t(outputs_[std::size_t(k)].node)] = true;
    for (int i = 0; i < forward_; ++i)
      if (is_random(at(i).what)) live_[std::size_t(i)] = true;  // the forward pass keeps them in any case
    for (int i = p_.nodes.size; i-- > 0;) {
      if (!live(i)) continue;
      bool const before = i < forward_;  // computed in the forward pass
      bool const sum = is_reduction(at(i).what) && has(at(i).over, samples);
      bool const kept = before && (sum || is_random(at(i).what));
      bool const is_y = before && i == result_;
      leaf_[std::size_t(i)] = is_leaf(at(i).what) || kept || is_y;
      if (kept && !is_y) {
        if (std::size_t(p_.kept_count) == p_.kept.size())
          throw error("edl: an expression has too many reductions");
        p_.kept[std::size_t(p_.kept_count++)] = std::int16_t(i);
      }
      if (is_y) p_.reads_result = true;
      if (at(i).what == operation::input) p_.reads_input = true;
      if (leaf(i)) continue;
      for (int of : operands(i))
        if (of >= 0) live_[std::size_t(of)] = true;
    }
  }

  /// The earliest moment at which this run can use a value.
  constexpr moment available(int i, std::int8_t run) const {
    moment const m = when_[std::size_t(i)];
    if (leaf(i) || m.run != run) return {run, 0, 0};
    if (is_scan(at(i).what)) return {run, m.section, std::int8_t(m.turn + 1)};
    if (!is_reduction(at(i).what)) return m;
    if (has(at(i).along, samples)) return {std::int8_t(2), 0, 0};
    if (has(at(i).along, places)) return {run, std::int8_t(m.section + 1), 0};
    return {run, m.section, std::int8_t(m.turn + 1)};
  }

  constexpr void place_in_time() {
    for (int i = 0; i < p_.nodes.size; ++i) {
      if (!live(i) || leaf(i)) continue;
      bool const reduces = is_reduction(at(i).what);
      axes const loop = reduces ? at(at(i).a).over : at(i).over;
      std::int8_t run = has(loop, samples) ? 1 : 0;
      for (int of : operands(i))
        if (of >= 0 && !leaf(of) && run != 1) {
          bool const whole = is_reduction(at(of).what) && has(at(of).along, samples);
          run = std::max(run, whole ? std::int8_t(2) : when_[std::size_t(of)].run);
        }
      moment m{run, 0, 0};
      for (int of : operands(i))
        if (of >= 0) m = std::max(m, available(of, run));
      if (m.run != run)
        throw error("edl: an expression needs a sum over all samples before it is through with them");
      // A scan is between the sections of rows, because it takes a complete sample.
      bool const scan = is_scan(at(i).what), odd = m.section % 2 == 1;
      if (scan ? odd : has(loop, places) && !odd) m = {run, std::int8_t(m.section + 1), 0};
      if (scan && !odd) ++m.turn;
      when_[std::size_t(i)] = m;
    }
  }

  constexpr void put(int n, memory where, int index = 0) {
    if (p_.slot_count == program::most_slots) throw error("edl: an expression has too many operations");
    p_.slot_of[std::size_t(n)] = std::int16_t(p_.slot_count);
    p_.slots[std::size_t(p_.slot_count++)] = {where, std::int16_t(index), at(n).over, std::int16_t(n),
                                              leaf(n) ? std::int8_t(-1) : when_[std::size_t(n)].run};
  }

  constexpr void give_memory() {
    std::array<bool, most_derived> scanned{};
    for (int i = 0; i < p_.nodes.size; ++i)
      if (live(i) && !leaf(i) && is_scan(at(i).what)) scanned[std::size_t(at(i).a)] = true;
    int numbers = 0;
    for (int k = 0; k < output_count_; ++k) {
      auto const& o = outputs_[std::size_t(k)];
      put(o.node, o.where, o.index);
    }
    for (int k = 0; k < p_.kept_count; ++k) put(p_.kept[std::size_t(k)], memory::kept, k);
    for (int i = 0; i < p_.nodes.size; ++i) {
      if (!live(i) || p_.memory_of(i) >= 0) continue;
      node const& n = at(i);
      if (leaf(i)) {
        switch (n.what) {
          case operation::input:
            put(i, memory::input, n.index);
            break;
          case operation::label:
            put(i, memory::label, n.index);
            break;
          case operation::slope:
            put(i, memory::slope);
            break;
          case operation::variable:
            put(i, memory::variable, n.index);
            break;
          case operation::statistic:
            put(i, memory::statistic, n.index);
            break;
          case operation::position:
            put(i, memory::position);
            break;
          case operation::constant:
          case operation::extent:
          case operation::training:
            put(i, memory::number, numbers++);
            break;
          default:
            put(i, memory::result);
        }
      } else if (is_reduction(n.what)) {
        put(i, has(n.along, samples) ? memory::total : has(n.over, samples) ? memory::own : memory::shared);
      } else if (!has(n.over, samples)) {
        put(i, memory::shared);
      } else if (is_scan(n.what) || scanned[std::size_t(i)]) {
        put(i, memory::own_sample);
      } else if (n.over != all_axes || (is_dear(n.what) && is_used_later(i))) {
        put(i, memory::own);
      }
    }
  }

  /// Whether another turn of the same section reads the node.
  constexpr bool is_used_later(int i) const {
    moment const m = when_[std::size_t(i)];
    // Nodes computed from it alone are recomputed there.
    std::array<bool, most_derived> made{};
    made[std::size_t(i)] = true;
    for (int k = i + 1; k < p_.nodes.size; ++k) {
      if (!live(k) || leaf(k)) continue;
      for (int of : operands(k))
        if (of >= 0 && made[std::size_t(of)]) {
          if (when_[std::size_t(k)].section == m.section && when_[std::size_t(k)].turn > m.turn) return true;
          if (!is_reduction(at(k).what)) made[std::size_t(k)] = true;
        }
    }
    return false;
  }

  /// Whether a block can load the node from memory.
  constexpr bool loadable(int i, moment now) const {
    if (leaf(i) || is_reduction(at(i).what) || is_scan(at(i).what)) return true;
    if (p_.memory_of(i) < 0) return false;
    moment const m = when_[std::size_t(i)];
    if (m == now) return false;
    bool const whole = p_.slots[std::size_t(p_.memory_of(i))].where == memory::own_sample;
    return at(i).over != all_axes || whole || m.section == now.section;
  }

  constexpr void make_blocks() {
    std::array<bool, most_derived> done{};
    while (true) {  // the earliest moment that is left
      bool any = false;
      moment now{};
      for (int i = 0; i < p_.nodes.size; ++i) {
        bool const sink = live(i) && !leaf(i) && !done[std::size_t(i)] && p_.memory_of(i) >= 0;
        if (sink && (!any || when_[std::size_t(i)] < now)) {
          any = true;
          now = when_[std::size_t(i)];
        }
      }
      if (!any) return;
      make_block(now, done);
    }
  }

  constexpr void make_block(moment now, std::array<bool, most_derived>& done) {
    if (p_.block_count == program::most_blocks) throw error("edl: an expression has too many reductions");
    block b{.when = now, .first = std::int16_t(p_.step_count), .outer = std::int16_t(p_.scalar_count)};
    std::array<bool, most_derived> wanted{}, vectors{}, numbers{};
    for (int i = p_.nodes.size; i-- > 0;) {
      if (live(i) && !leaf(i) && p_.memory_of(i) >= 0 && when_[std::size_t(i)] == now) {
        done[std::size_t(i)] = true;
        bool const in_vectors = inner(is_reduction(at(i).what) ? at(i).a : i) && !is_scan(at(i).what);
        (in_vectors ? vectors : numbers)[std::size_t(i)] = true;
      }
      bool const computes =
          vectors[std::size_t(i)] || (wanted[std::size_t(i)] && inner(i) && !loadable(i, now));
      wanted[std::size_t(i)] = wanted[std::size_t(i)] || computes;
      for (int of : operands(i))
        if (computes && of >= 0) wanted[std::size_t(of)] = true;
    }
    for (int i = 0; i < p_.nodes.size; ++i)
      if (numbers[std::size_t(i)]) {
        if (p_.scalar_count == program::most_scalars)
          throw error("edl: an expression has too many operations");
        p_.scalars[std::size_t(p_.scalar_count++)] = std::int16_t(i);
      }
    b.numbers = std::int16_t(p_.scalar_count - b.outer);
    std::array<std::int16_t, most_derived> position{};
    for (int i = 0; i < p_.nodes.size; ++i) {
      if (!wanted[std::size_t(i)]) continue;
      if (p_.step_count == program::most_steps) throw error("edl: an expression has too many operations");
      node const& n = at(i);
      step s{.slot = p_.slot_of[std::size_t(i)]};
      bool const computes = vectors[std::size_t(i)] || (inner(i) && !loadable(i, now));
      if (!computes) {
        s.kind = inner(i) ? step_kind::load : step_kind::repeat;
      } else {
        s.what = n.what;
        auto const step_of = [&](int of) { return of < 0 ? std::int16_t(0) : position[std::size_t(of)]; };
        s.a = step_of(n.a), s.b = step_of(n.b), s.c = step_of(n.c);
        if (is_reduction(n.what)) {
          s.kind = inner(i) ? step_kind::add_into : step_kind::add_up;
          if (!inner(i)) s.sum = b.sums++;
        } else {
          s.kind = step_kind::compute;
          s.stores = vectors[std::size_t(i)];
        }
      }
      position[std::size_t(i)] = std::int16_t(p_.step_count - b.first);
      p_.steps[std::size_t(p_.step_count++)] = s;
    }
    b.count = std::int16_t(p_.step_count - b.first);
    p_.blocks[std::size_t(p_.block_count++)] = b;
  }

  /// Finds the extents that a loop can ignore.
  constexpr void find_shortcuts() {
    for (int i = 0; i < p_.nodes.size; ++i) {
      if (!live(i)) continue;
      node const& n = at(i);
      axes const over = n.over;
      if (is_reduction(n.what) && has(n.along, places) && !has(n.along, samples)) p_.each_place = false;
      if (!has(over, samples) && has(over, places)) p_.each_place = p_.by_rows = false;
      if (has(over, samples) && !has(over, places)) p_.by_rows = false;
      if (over == (samples | places)) p_.by_blocks = false;
      if (is_reduction(n.what) && n.along == channels && has(n.over, samples)) p_.by_blocks = false;
      if (over == channels) p_.flat = false;
      if (!is_scan(n.what) || leaf(i)) continue;
      p_.by_rows = false;
      if (n.along == places) p_.each_place = false;
    }
    for (int k = 0; k < p_.block_count; ++k) {
      moment const m = p_.blocks[std::size_t(k)].when;
      if (m.run == 1 && m.section != 1) p_.by_rows = false;
    }
    p_.by_blocks = p_.by_blocks && p_.by_rows;
    p_.flat = p_.flat && p_.by_blocks;
  }

  program p_{};
  std::array<bool, most_derived> live_{}, leaf_{};
  std::array<moment, most_derived> when_{};
  std::array<output, 1 + form::most_inputs + form::most_variables> outputs_{};
  int output_count_ = 0;
  int forward_ = 0, result_ = -1;
};

}  // namespace edl::nn::expression
