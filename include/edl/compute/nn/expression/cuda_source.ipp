// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <span>
#include <string>
#include <string_view>

#include "edl/compute/device/accelerator.hpp"
#include "edl/compute/device/generated.hpp"
#include "edl/compute/nn/expression/cuda_source.hpp"
#include "edl/core/inline.hpp"

namespace edl::nn::expression {

EDL_INLINE team_layout::team_layout(program const& p, shape in)
    : channels(std::size_t(in.channels)), places(in.size() / channels) {
  // A warp's shuffles sum a row of up to 16 elements a lane; a block sums longer ones.
  lanes = p.flat || (channels > 16 && channels <= 512) ? 32
          : channels > 512                             ? int(generated::threads)
                                                       : int(std::bit_ceil(channels));
  teams = int(generated::threads) / lanes;
  length = p.flat ? 128 : channels;
  std::array<bool, program::most_slots> scanned{};
  for (int k = 0; k < p.slot_count; ++k)
    if (node const& n = p.nodes[p.slots[std::size_t(k)].of]; is_scan(n.what) && p.memory_of(n.a) >= 0)
      scanned[std::size_t(p.memory_of(n.a))] = true;
  whole_samples = !p.by_rows && places == 1 && std::ranges::count(scanned, true) == 0;
  for (int k = 0; k < p.slot_count; ++k)
    if (slot const& s = p.slots[std::size_t(k)]; s.where == memory::total && has(s.over, nn::places))
      whole_samples = false;
  at.fill(-1);
  for (int k = 0; k < p.slot_count; ++k) {
    slot const& s = p.slots[std::size_t(k)];
    std::size_t const size = of_sample(s.over, in);
    auto const take = [&](std::size_t& from) {
      at[std::size_t(k)] = std::ptrdiff_t(from);
      from += size;
    };
    bool const of_places =
        has(s.over, nn::places) && !has(s.over, nn::channels) && !p.by_rows && !whole_samples;
    if (s.where == memory::shared) take(shared);
    if (s.where == memory::total) take(totals);
    if (s.where == memory::own_sample || (s.where == memory::own && (of_places || scanned[std::size_t(k)])))
      take(own);
  }
}

namespace detail {

/// What the kernels of all programs share.
inline constexpr std::string_view cuda_beginning = R"(
typedef unsigned long long u64;
#define LEAST (-__uint_as_float(0x7f800000u))
#ifdef HALF
typedef unsigned short act;
__device__ __forceinline__ float get(act v) { return __uint_as_float((unsigned)v << 16); }
__device__ __forceinline__ act set(float v) {
  const unsigned bits = __float_as_uint(v);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (act)(bits >> 16 | 0x40u);
  return (act)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
#else
typedef float act;
__device__ __forceinline__ float get(act v) { return v; }
__device__ __forceinline__ act set(float v) { return v; }
#endif
struct call {
  const void* x[8];
  void* dx[8];
  const void* dy;
  const float *variables, *labels;
  void* y;
  float *gradients, *kept;
  u64 batch, key, step, training;
  float* scratch;
  const u64* step_now;
  u64 blocks;
  float numbers[NUMBERS];
};
__device__ __forceinline__ float most(float a, float b) { return a < b || b != b ? b : a; }
template <bool Peak>
__device__ __forceinline__ float join(float a, float b) { return Peak ? most(a, b) : a + b; }
// Over all threads of the block with the same number modulo `left`; for all of them.
template <bool Peak>
__device__ float of_block(float v, int left) {
  __shared__ float part[THREADS];
  __syncthreads();
  part[threadIdx.x] = v;
  for (int by = THREADS / 2; by >= left; by /= 2) {
    __syncthreads();
    if (threadIdx.x < by) part[threadIdx.x] = join<Peak>(part[threadIdx.x], part[threadIdx.x + by]);
  }
  __syncthreads();
  return part[threadIdx.x % left];
}
// Over the lanes of a team; for all of them.
template <bool Peak>
__device__ __forceinline__ float of_team(float v) {
#if LANES > 32
  __shared__ float part[THREADS / 32];
  for (int by = 16; by > 0; by /= 2) v = join<Peak>(v, __shfl_xor_sync(0xffffffffu, v, by, 32));
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = part[0];
  for (int k = 1; k < THREADS / 32; ++k) v = join<Peak>(v, part[k]);
#elif LANES > 1
  const unsigned team = (0xffffffffu >> (32 - LANES)) << (threadIdx.x % 32 / LANES * LANES);
  for (int by = LANES / 2; by > 0; by /= 2) v = join<Peak>(v, __shfl_xor_sync(team, v, by, LANES));
#endif
  return v;
}
__device__ __forceinline__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }
__device__ __forceinline__ float softplus(float x) { return (x > 0 ? x : 0) + log1pf(expf(-fabsf(x))); }
)";

/// Philox4x32-10, as `random_stream`.
inline constexpr std::string_view cuda_random = R"(
struct drawn { unsigned at[4]; };
__device__ __forceinline__ u64 child(u64 key, u64 value) {
  u64 z = key + 0x9E3779B97F4A7C15ull * (value + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}
__device__ __forceinline__ drawn philox(u64 key, u64 step, u64 index) {
  unsigned c0 = (unsigned)index, c1 = (unsigned)(index >> 32), c2 = (unsigned)step, c3 = (unsigned)(step >> 32);
  unsigned k0 = (unsigned)key, k1 = (unsigned)(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const u64 p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
    c0 = (unsigned)(p1 >> 32) ^ c1 ^ k0, c1 = (unsigned)p1;
    c2 = (unsigned)(p0 >> 32) ^ c3 ^ k1, c3 = (unsigned)p0;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  const drawn d = {{c0, c1, c2, c3}};
  return d;
}
)";

/// The operations from `same` to `stop`, of A, B and C.
inline constexpr std::string_view cuda_operations =
    "A;A + B;A - B;A * B;A / B;powf(A, B);(B < A || B != B ? B : A);(A < B || B != B ? B : A);(A < B ? 1.0f "
    ": 0.0f);"
    "(A <= B ? 1.0f : 0.0f);(A == B ? 1.0f : 0.0f);(A != 0 ? B : C);-A;expf(A);expm1f(A);logf(A);tanhf(A);"
    "sigmoid(A);softplus(A);0.5f * erfcf(-0.70710678f * A);expf(-0.5f * A * A);sqrtf(A);fabsf(A);A;";
static_assert(std::ranges::count(cuda_operations, ';') == int(operation::cumsum) - int(operation::same));

class cuda_writer {
 public:
  cuda_writer(program const& p, shape in) : p_(p), in_(in), l_(p, in) {
    for (int b = 0; b < p.block_count; ++b) {
      block const& of = p.blocks[std::size_t(b)];
      auto const ends = [&](int slot) { section_[std::size_t(slot)] = of.when.section; };
      for (int k = 0; k < of.numbers; ++k) ends(p.memory_of(p.scalars[std::size_t(of.outer + k)]));
      for (int k = 0; k < of.count; ++k)
        if (step const& s = p.steps[std::size_t(of.first + k)]; s.stores || s.kind >= step_kind::add_up)
          ends(s.slot);
    }
  }

  std::string all() {
    int numbers = 1;
    for (int k = 0; k < p_.slot_count; ++k) numbers += at(k).where == memory::number;
    say("#define THREADS ", generated::threads, "\n#define LANES ", l_.lanes, "\n#define NUMBERS ", numbers);
    out_ += cuda_beginning;
    say("enum : u64 { CHANNELS = ", l_.channels, ", PLACES = ", l_.places, ", SHARED = ", l_.shared,
        ", TOTALS = ", l_.totals, ", OWN = ", l_.own, " };\nenum { TEAMS = ", l_.teams, " };");
    if (draws(p_)) draw();
    static constexpr std::string_view names[] = {"before", "rows", "after"};
    for (int run = 0; run < 3; ++run)
      if (p_.sections(run) > 0) kernel(run, names[run]);
    if (l_.totals > 0) {
      begin("join");
      say("for (u64 i = blockIdx.x * THREADS + threadIdx.x; i < TOTALS; i += gridDim.x * THREADS) {");
      say("double sum = 0;");
      say("for (u64 b = 0; b < a.blocks; ++b) sum += a.scratch[SHARED + TOTALS + b * (OWN + TOTALS) + OWN + "
          "i];");
      say("a.scratch[SHARED + i] = (float)sum;\n}\n}");
    }
    return std::move(out_);
  }

 private:
  // ---- Text ----

  void add(std::string_view s) { out_ += s; }
  void add(std::integral auto n) { out_ += std::to_string(n); }
  template <class... Parts>
  void say(Parts const&... parts) {
    (add(parts), ...);
    out_ += '\n';
  }
  static std::string named(std::string_view kind, int number) {
    return std::string(kind) + std::to_string(number);
  }
  void begin(std::string_view name) {
    say("extern \"C\" __global__ void __launch_bounds__(THREADS) ", name, "(call a) {");
  }
  void each() { say(words_ <= 16 ? "#pragma unroll\n" : "", "for (int k = 0; k < ", words_, "; ++k) {"); }
  void each_channel() {
    each();
    say("const int i = lane + k * LANES;");
    bool const whole = !in_flat_rows() && length() % std::size_t(l_.lanes) == 0;
    say(whole ? "{" : in_flat_rows() ? "if (i < n) {" : "if (i < LENGTH) {");
  }

  // ---- The program ----

  slot const& at(int k) const { return p_.slots[std::size_t(k)]; }
  node const& of(int k) const { return p_.nodes[at(k).of]; }
  bool inner(int n) const { return has(p_.nodes[n].over, channels); }
  bool by_rows() const { return run_ == 1 && p_.by_rows; }
  bool by_samples() const { return run_ == 1 && l_.whole_samples; }
  bool in_flat_rows() const { return run_ == 1 && p_.flat; }
  std::size_t length() const { return run_ == 1 ? l_.length : l_.channels; }
  /// Whether teams have different work here.
  bool apart() const { return by_rows() || by_samples() || now_ % 2 == 1; }
  bool is_total(int k) const { return at(k).where == memory::total; }
  bool wide(int k) const { return has(at(k).over, channels); }
  bool row_by_row(int k) const { return has(at(k).over, places); }
  bool scan(int k) const { return at(k).run >= 0 && is_scan(of(k).what); }
  std::string_view peak(int k) const { return is_peak(of(k).what) ? "<true>" : "<false>"; }
  /// Whether it is summed over the rows of a section.
  bool over_section(int k) const {
    return is_reduction(of(k).what) && has(of(k).along, places) && !has(of(k).along, samples);
  }

  /// Whether a thread has the value in registers where it is used.
  bool local(int k) const {
    slot const& s = at(k);
    if (s.run != run_ || s.where == memory::total || scan(k)) return false;
    return !row_by_row(k) || by_rows() || by_samples() || section_[std::size_t(k)] == now_;
  }
  bool activation(int k) const {
    memory const m = at(k).where;
    return m == memory::input || m == memory::slope || m == memory::input_gradient ||
           (m == memory::result && has(at(k).over, samples));
  }
  std::string address(int k, std::string_view i) const {
    slot const& s = at(k);
    std::string text;
    auto const plus = [&](std::string const& term) { text += (text.empty() ? "" : " + ") + term; };
    bool const of_block = s.where == memory::own || s.where == memory::own_sample;
    if (has(s.over, samples) && !by_rows() && !of_block)
      plus("sample * " + std::to_string(of_sample(s.over, in_)));
    if (has(s.over, places)) plus(wide(k) ? "(u64)row * LENGTH" : "row");
    if (wide(k)) plus(std::string(i));
    return text.empty() ? "0" : text;
  }
  /// The memory of a slot, without its conversion.
  std::string place(int k, std::string_view i) const {
    slot const& s = at(k);
    std::string const where = "[" + address(k, i) + "]", offset = std::to_string(l_.at[std::size_t(k)]);
    switch (s.where) {
      case memory::input:
        return named("x", s.index) + where;
      case memory::slope:
        return "dy" + where;
      case memory::result:
        return (activation(k) ? "((act*)a.y)" : "((float*)a.y)") + where;
      case memory::input_gradient:
        return "((act*)" + named("a.dx[", s.index) + "])" + where;
      case memory::variable:
        return "variables[" + std::to_string(first_of(s.index)) + " + " + where.substr(1);
      case memory::variable_gradient:
        return "a.gradients[" + std::to_string(first_of(s.index)) + " + " + where.substr(1);
      case memory::statistic:
        return "a.kept[" + std::to_string(offset_of_statistic(p_, in_, s.index)) + " + " + where.substr(1);
      case memory::updated_statistic:
        return "a.kept[" +
               std::to_string(size_of_statistics(p_, in_) / 2 + offset_of_statistic(p_, in_, s.index)) +
               " + " + where.substr(1);
      case memory::kept:
        return named("kept", s.index) + where;
      case memory::shared:
        return "a.scratch[" + offset + " + " + where.substr(1);
      case memory::total:
        return (run_ == 1 ? "own[OWN + " : "a.scratch[SHARED + ") + offset + " + " + where.substr(1);
      default:
        return "own[" + offset + " + " + where.substr(1);
    }
  }
  std::string read(int k, std::string_view i) const {
    slot const& s = at(k);
    if (local(k)) return named("s", k) + (wide(k) ? "[k]" : "");
    if (s.where == memory::number) return "a.numbers[" + std::to_string(s.index) + "]";
    if (s.where == memory::position) return wide(k) ? "(float)" + std::string(i) : "(float)row";
    if (s.where == memory::label) {
      if (p_.labels == program::one_for_each) return "a.labels[" + address(k, i) + "]";
      if (p_.labels == program::a_class)
        return s.index > 0 ? "1.0f" : "(float)((const int*)a.labels)[sample]";
      return "a.labels[sample * " + std::to_string(p_.labels) + " + " + std::to_string(s.index) + "]";
    }
    return loaded(k, i);
  }
  std::string loaded(int k, std::string_view i = "i") const {
    return activation(k) ? "get(" + place(k, i) + ")" : place(k, i);
  }
  std::size_t first_of(int variable) const {
    std::size_t at = 0;
    for (int v = 0; v < variable; ++v) at += of_sample(p_.variables[std::size_t(v)], in_);
    return at;
  }

  /// Writes a value where others read it.
  void store(int k, std::string_view i, std::string const& value) {
    slot const& s = at(k);
    bool const needed = s.where != memory::own || l_.at[std::size_t(k)] >= 0;
    if (!needed || is_total(k)) return;
    std::string text;
    if (s.where == memory::input_gradient) text += named("if (a.dx[", s.index) + "]) ";
    if (s.where == memory::variable_gradient) text += "if (a.gradients) ";
    // Otherwise all teams have the same value.
    if (!apart() || (!row_by_row(k) && !by_samples()))
      text += wide(k) ? "if (team == 0) " : "if (threadIdx.x == 0) ";
    say(text, place(k, i), " = ", activation(k) ? "set(" + value + ")" : value, ";");
  }
  static std::string_view neutral(operation o) { return is_peak(o) ? "LEAST" : "0"; }
  void declare(int k) {
    std::string_view const zero = neutral(of(k).what);
    say("float ", named("s", k), wide(k) ? "[" + std::to_string(words_) + "]" : std::string(),
        wide(k) ? "" : " = ", wide(k) ? "" : zero, ";");
    if (!wide(k) || !is_reduction(of(k).what)) return;
    each();
    say(named("s", k), "[k] = ", zero, ";\n}");
  }

  static std::string compute(operation o, std::string const& a, std::string const& b, std::string const& c) {
    std::string_view left = cuda_operations;
    for (int k = int(operation::same); k < int(o); ++k) left.remove_prefix(left.find(';') + 1);
    std::string text;
    for (char const each : left.substr(0, left.find(';')))
      if (each >= 'A' && each <= 'C')
        text += each == 'A' ? a : each == 'B' ? b : c;
      else
        text += each;
    return text;
  }

  // ---- Kernels ----

  void kept_places() {
    for (int k = 0; k < p_.kept_count; ++k) {
      if (k == 0) {
        say("float* const kept0 = a.kept + ", size_of_statistics(p_, in_), ";");
        continue;
      }
      std::size_t const n = of_sample(p_.nodes[p_.kept[std::size_t(k - 1)]].over, in_);
      say("float* const kept", k, " = kept", k - 1, " + (a.batch * ", n, " + 15) / 16 * 16;");
    }
  }

  void draw() {
    out_ += cuda_random;
    begin("draw");
    kept_places();
    say("const u64 step = a.step_now ? *a.step_now : a.step;");
    for (int k = 0; k < p_.kept_count; ++k) {
      node const& n = p_.nodes[p_.kept[std::size_t(k)]];
      if (!is_random(n.what)) continue;
      bool const normal = n.what == operation::normal;
      int const each = normal ? 2 : 4;
      say("{\nconst u64 n = a.batch * ", of_sample(n.over, in_), ", key = child(a.key, ", n.index, ");");
      say("for (u64 j = (u64)blockIdx.x * THREADS + threadIdx.x; j * ", each,
          " < n; j += (u64)gridDim.x * THREADS) {\nconst drawn d = philox(key, step, j);");
      if (normal) {
        say("const double u = ((double)d.at[0] + 1) * 0x1p-32, v = (double)d.at[1] * 0x1p-32;");
        say("const double far = sqrt(-2 * log(u)), angle = 6.283185307179586 * v;");
        say("const float two[2] = {(float)(far * cos(angle)), (float)(far * sin(angle))};");
      }
      say("for (int e = 0; e < ", each, "; ++e)\nif (j * ", each, " + e < n) kept", k, "[j * ", each,
          " + e] = a.training ? ", normal ? "two[e]" : "(float)(d.at[e] >> 8) * 0x1p-24f", " : 0;\n}\n}");
    }
    say("}");
  }

  void kernel(int run, std::string_view name) {
    run_ = run, now_ = run == 1 && p_.by_rows ? 1 : 0;
    words_ = (length() + std::size_t(l_.lanes) - 1) / std::size_t(l_.lanes);
    begin(name);
    say("enum : int { LENGTH = ", length(), " };");
    say("const int lane = threadIdx.x % LANES, team = threadIdx.x / LANES;");
    for (int k = 0; k < p_.slot_count; ++k)
      if (int const i = at(k).index; at(k).where == memory::input)
        say("const act* const __restrict__ x", i, " = (const act*)a.x[", i, "];");
    say("const act* const __restrict__ dy = (const act*)a.dy;");
    say("const float* const __restrict__ variables = a.variables;");
    say("float* const own = a.scratch + SHARED + TOTALS + (u64)blockIdx.x * (OWN + TOTALS);");
    say("(void)lane, (void)team, (void)dy, (void)variables, (void)own;");
    kept_places();
    if (run == 1) begin_totals();
    if (by_rows()) {
      say("const u64 elements = a.batch * CHANNELS * PLACES, rows = (elements + LENGTH - 1) / LENGTH;");
      say("for (u64 row = (u64)blockIdx.x * TEAMS + team; row < rows; row += (u64)gridDim.x * TEAMS) {");
      if (p_.flat)
        say("const int n = elements - row * LENGTH < LENGTH ? (int)(elements - row * LENGTH) : LENGTH;");
      section();
      say("}");
    } else {
      if (by_samples())
        say("for (u64 sample = (u64)blockIdx.x * TEAMS + team; sample < a.batch; sample += (u64)gridDim.x * "
            "TEAMS) {");
      else if (run == 1)
        say("for (u64 sample = blockIdx.x; sample < a.batch; sample += gridDim.x) {");
      for (int k = 0; k < p_.slot_count; ++k)
        if (at(k).run == run && !is_total(k) && (!row_by_row(k) || by_samples()) && !scan(k)) declare(k);
      for (int s = 0; s < p_.sections(run); ++s) {
        now_ = s;
        say(s % 2 == 0     ? "{"
            : by_samples() ? "{\nconst int row = 0;\n(void)row;"
                           : "for (int row = team; row < (int)PLACES; row += TEAMS) {");
        section();
        say("}");
        if (s % 2 == 1) end_section();
      }
      // A lane must not be at the next sample while another one still reads what they both write.
      if (run == 1) say(l_.own > 0 ? "__syncthreads();\n}" : "}");
    }
    if (run == 1) end_totals();
    say("}");
  }

  void section() {
    for (int k = 0; k < p_.slot_count; ++k)
      if (at(k).run == run_ && !is_total(k) && row_by_row(k) && section_[std::size_t(k)] == now_ &&
          local(k) && !by_samples())
        declare(k);
    for (int b = 0; b < p_.block_count; ++b)
      if (block const& of = p_.blocks[std::size_t(b)]; of.when.run == run_ && of.when.section == now_) {
        for (int k = 0; k < of.numbers; ++k) number(p_.scalars[std::size_t(of.outer + k)]);
        if (of.count > 0) vectors(of);
      }
  }

  /// An operation on numbers, which every lane computes.
  void number(int n) {
    node const& what = p_.nodes[n];
    int const k = p_.memory_of(n);
    auto const value = [&](int of) { return of < 0 ? std::string("0") : read(p_.memory_of(of), "0"); };
    std::string const self = named("s", k);
    if (is_scan(what.what)) return cumulate(n, k);
    if (!is_reduction(what.what)) {
      say(self, " = ", compute(what.what, value(what.a), value(what.b), value(what.c)), ";");
      return store(k, "0", self);
    }
    if (is_total(k) && row_by_row(k))
      say("if (lane == 0) ", place(k, "0"), " += ", value(what.a), ";");
    else
      say(self, " = join", peak(k), "(", self, ", ", value(what.a), ");");
  }

  /// By one thread for each row, or for each channel.
  void cumulate(int n, int k) {
    node const& what = p_.nodes[n];
    int const from = p_.memory_of(what.a);
    bool const back = what.what == operation::cumsum_back, along_row = what.along == channels;
    std::string const rows = has(what.over, places) ? "(int)PLACES" : "1",
                      row = has(what.over, channels) ? "LENGTH" : "1";
    say("__syncthreads();\nfor (int o = threadIdx.x; o < ", along_row ? rows : row,
        "; o += THREADS) {\nfloat sum = 0;");
    say("for (int j = 0; j < ", along_row ? row : rows,
        "; ++j) {\nconst int e = ", back ? (along_row ? row : rows) + " - 1 - j" : "j", ";");
    say("const int row = ", along_row ? "o" : "e", ", i = ", along_row ? "e" : "o", ";\n(void)row, (void)i;");
    say("sum += ", local(from) ? loaded(from) : read(from, "i"), ";");
    say(place(k, "i"), " = ", activation(k) ? "set(sum)" : "sum", ";\n}\n}\n__syncthreads();");
  }

  /// The elements of a row: a lane takes every LANES-th.
  void vectors(block const& b) {
    auto const all = std::span(p_.steps).subspan(std::size_t(b.first), std::size_t(b.count));
    auto const row_sum = [&](step const& s) {  // of this row alone
      return s.kind == step_kind::add_up && (is_total(s.slot) ? row_by_row(s.slot) : !over_section(s.slot));
    };
    say("{");
    for (int j = 0; j < b.count; ++j) {
      step const& s = all[std::size_t(j)];
      if (s.kind == step_kind::repeat) say("const float v", j, " = ", read(s.slot, "0"), ";");
      if (row_sum(s)) say("float row_sum", j, " = ", neutral(s.what), ";");
    }
    each_channel();
    for (int j = 0; j < b.count; ++j) {
      step const& s = all[std::size_t(j)];
      std::string const a = named("v", s.a), self = named("v", j), to = named("s", s.slot);
      if (s.kind == step_kind::load) {
        say("const float ", self, " = ", read(s.slot, "i"), ";");
      } else if (s.kind == step_kind::compute) {
        say("const float ", self, " = ", compute(s.what, a, named("v", s.b), named("v", s.c)), ";");
        if (!s.stores) continue;
        if (local(s.slot)) say(to, "[k] = ", self, ";");
        store(s.slot, "i", self);
      } else if (s.kind == step_kind::add_up) {
        std::string const sum = row_sum(s) ? named("row_sum", j) : to;
        say(sum, " = join", peak(s.slot), "(", sum, ", ", a, ");");
      } else if (s.kind == step_kind::add_into) {
        if (is_total(s.slot) && row_by_row(s.slot))
          say(place(s.slot, "i"), " += ", a, ";");
        else
          say(to, "[k] = join", peak(s.slot), "(", to, "[k], ", a, ");");
      }
    }
    say("}\n}");
    for (int j = 0; j < b.count; ++j) {
      step const& s = all[std::size_t(j)];
      if (!row_sum(s)) continue;
      std::string const sum = "of_team" + std::string(peak(s.slot)) + "(" + named("row_sum", j) + ")";
      if (is_total(s.slot)) {
        say("row_sum", j, " = ", sum, ";\nif (lane == 0) ", place(s.slot, "0"), " += row_sum", j, ";");
      } else {
        say("s", s.slot, " = ", sum, ";");
        store(s.slot, "0", named("s", s.slot));
      }
    }
    say("}");
  }

  /// For every element of a value without places.
  template <class Work>
  void on_value(int k, Work&& work) {
    if (!wide(k)) return work(named("s", k), "0");
    each();
    say("const int i = lane + k * LANES;\n(void)i;");
    work(named("s", k) + "[k]", "i");
    say("}");
  }
  void end_section() {
    for (int k = 0; k < p_.slot_count; ++k) {
      if (at(k).run != run_ || section_[std::size_t(k)] != now_ || scan(k) || !over_section(k)) continue;
      bool const by_lane = wide(k) || !inner(of(k).a);
      on_value(k, [&](std::string const& value, std::string_view i) {
        if (!by_samples())
          say(value, " = of_block", peak(k), "(", value, ", ", by_lane ? "LANES" : "1", ");");
        else if (!by_lane)
          say(value, " = of_team", peak(k), "(", value, ");");
        if (wide(k)) say("if (i < LENGTH) {");
        store(k, i, value);
        if (wide(k)) say("}");
      });
    }
  }

  void begin_totals() {
    for (int k = 0; k < p_.slot_count; ++k) {
      if (!is_total(k)) continue;
      if (!row_by_row(k)) {
        declare(k);
        continue;
      }
      say("for (int row = team; row < (int)PLACES; row += TEAMS) {");
      if (wide(k)) each_channel();
      say(wide(k) ? "" : "if (lane == 0) ", place(k, "i"), " = 0;", wide(k) ? "\n}\n}" : "", "\n}");
    }
  }
  void end_totals() {
    for (int k = 0; k < p_.slot_count; ++k) {
      if (!is_total(k) || row_by_row(k)) continue;
      bool const lanes = inner(of(k).a) && has(of(k).along, channels),
                 teams = by_rows() || by_samples() || section_[std::size_t(k)] % 2 == 1;
      on_value(k, [&](std::string const& value, std::string_view i) {
        if (teams) say(value, " = of_block<false>(", value, ", ", lanes ? "1" : "LANES", ");");
        if (lanes && !teams) say(value, " = of_team<false>(", value, ");");
        say(wide(k) ? "if (team == 0 && i < LENGTH) " : "if (threadIdx.x == 0) ", place(k, i), " = ", value,
            ";");
      });
    }
  }

  program const& p_;
  shape in_;
  team_layout l_;
  std::array<std::int8_t, program::most_slots> section_{};  ///< in which a slot is computed
  std::string out_;
  int run_ = 0, now_ = 0;
  std::size_t words_ = 1;  ///< elements of a row for each lane
};

}  // namespace detail

EDL_INLINE std::string cuda_source(program const& p, shape in) { return detail::cuda_writer(p, in).all(); }

EDL_INLINE bool move_on_accelerator(backend& on, view<float> from, std::span<float> to) {
  auto* const gpu = dynamic_cast<accelerator*>(&on);
  if (gpu) gpu->move(from, to);
  return gpu != nullptr;
}

EDL_INLINE bool run_on_accelerator(backend& on, program const& p, call<float> const& a) {
  auto* const gpu = dynamic_cast<accelerator*>(&on);
  if (!gpu) return false;
  team_layout const l(p, a.in);
  generated_call with{.dy = a.dy.data(),
                      .variables = a.variables.data(),
                      .labels = a.labels.data(),
                      .y = a.y.data(),
                      .gradients = a.gradients.empty() ? nullptr : a.gradients.data(),
                      .kept = a.kept.data(),
                      .batch = a.batch,
                      .key = a.random.key,
                      .step = a.random.step,
                      .training = a.training};
  static_assert(generated_call::most_inputs == form::most_inputs);
  std::size_t activations = a.dy.size() + a.y.size();
  for (std::size_t i = 0; i < a.x.size(); ++i) with.x[i] = a.x[i].data(), activations += a.x[i].size();
  for (std::size_t i = 0; i < a.dx.size(); ++i)
    if (!a.dx[i].empty()) with.dx[i] = a.dx[i].data(), activations += a.dx[i].size();
  numbers_of(p, a, with.numbers);
  std::size_t const rows = l.whole_samples ? a.batch : (a.batch * a.in.size() + l.length - 1) / l.length;
  bool const any = p.sections(1) > 0 && a.batch > 0;
  generated const what{
      .program = &p,
      .in = a.in,
      .name = a.name,
      .source = [](void const* of, shape in) { return cuda_source(*static_cast<program const*>(of), in); },
      .draws = draws(p) && a.draws,
      .before = p.sections(0) > 0,
      .after = p.sections(2) > 0,
      .rows = !any                           ? 0
              : p.by_rows || l.whole_samples ? (rows + std::size_t(l.teams) - 1) / std::size_t(l.teams)
                                             : a.batch,
      .totals = l.totals,
      .scratch = l.shared + l.totals,
      .of_block = l.own + l.totals,
      .activations = activations};
  gpu->run(what, with);
  return true;
}

}  // namespace edl::nn::expression
