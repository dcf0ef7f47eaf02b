// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/conv2d.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "edl/compute/device/cuda/library/operand.hpp"
#include "edl/core/error.hpp"

namespace edl::cuda_library {
namespace {

constexpr std::size_t most_workspace = std::size_t(256) << 20;  // bytes
// Limits of measured alternatives: cuDNN proposes one engine dozens of times.
constexpr std::size_t most_ways = 8, most_of_a_kind = 4, most_of_an_engine = 3;

enum tensor_id : std::int64_t { image = 1, kernel, response, bias_id, convolved, shifted };

/// The padding after the image on one axis for which cuDNN computes the right number of places: equal to that
/// before if possible, since not every kernel accepts two values. Nothing if no such padding exists.
std::optional<std::int64_t> padding_after(int in, int out, int window, int stride, int before) {
  auto const places = [&](int after) { return (in + before + after - window) / stride + 1; };
  int const least = std::max(0, (out - 1) * stride + window - in - before);
  if (before >= least && places(before) == out) return before;
  if (places(least) == out) return least;
  return {};
}

std::optional<extent> padding_after(conv_geometry const& g) {
  auto const rows =
      padding_after(g.in.height, g.out.height, g.kernel.height, g.stride.height, g.before.height);
  auto const columns = padding_after(g.in.width, g.out.width, g.kernel.width, g.stride.width, g.before.width);
  if (!rows || !columns) return {};
  return extent(int(*rows), int(*columns));
}

/// The image with its border in memory: exactly what the windows cover.
shape framed(conv_geometry const& g) {
  return {(g.out.height - 1) * g.stride.height + g.kernel.height,
          (g.out.width - 1) * g.stride.width + g.kernel.width, g.in.channels};
}

/// Whether a kernel has the promised precision, and gives the same bits in every run. Kernels that round
/// inputs are handled separately: see `collect`.
bool keeps(precision p, cudnn::kernel_choice const& c) {
  for (auto note :
       {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
        CUDNN_NUMERICAL_NOTE_FFT, CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4,
        CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13})
    if (c.notes_that(note)) return false;
  return p != precision::float32 || !c.notes_that(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
}

std::int64_t up_to_16(void const* p) { return std::int64_t(std::min<std::size_t>(16, alignment_of(p))); }

}  // namespace

convolutions::problem::key convolutions::problem::identity() const {
  return {std::int64_t(direction),
          batch,
          g.in.height,
          g.in.width,
          g.in.channels,
          g.out.height,
          g.out.width,
          g.out.channels,
          g.kernel.height,
          g.kernel.width,
          g.stride.height,
          g.stride.width,
          g.before.height,
          g.before.width,
          g.groups,
          std::int64_t(f),
          bias,
          aligned[0],
          aligned[1],
          moments + 2 * adds + 4 * masked};
}

std::string convolutions::problem::describe() const {
  constexpr std::array names{"forward", "back to the image", "back to the kernel"};
  return fmt::format(
      "a convolution {}, {} samples of {} × {} × {} to {} × {} × {}, kernel {} × {}, stride {} × {}, {} × {} "
      "before, {} groups{}{}",
      names[std::size_t(direction)], batch, g.in.height, g.in.width, g.in.channels, g.out.height, g.out.width,
      g.out.channels, g.kernel.height, g.kernel.width, g.stride.height, g.stride.width, g.before.height,
      g.before.width, g.groups, bias ? ", bias" : "", f == activation::relu ? ", relu" : "");
}

convolutions::convolutions(cuda_kernels::queue const& q, products::shared_state const& shared)
    : q_(q), shared_(shared) {}

convolutions::convolutions(cuda_kernels::queue const& q, products::shared_state const& shared,
                           std::string_view gpu)
    : q_(q), shared_(shared), gpu_(gpu) {}

std::shared_ptr<cudnn::graph> convolutions::build(problem const& p, kind const& w) const {
  conv_geometry const& g = p.g;
  shape const in = w.padded ? framed(g) : g.in;
  extent const after = w.padded ? extent(0) : *padding_after(g), before = w.padded ? extent(0) : g.before;
  cudnn::padding const padding{.before = {before.height, before.width},
                               .after = {after.height, after.width},
                               .stride = {g.stride.height, g.stride.width}};
  std::int64_t const filters = g.out.channels;
  cudnn::tensor const x{.name = "x",
                        .id = image,
                        .type = type(),
                        .extents = {p.batch, in.channels, in.height, in.width},
                        .alignment = w.padded ? 16 : p.aligned[0]};
  cudnn::tensor const k{.name = "kernel",
                        .id = kernel,
                        .type = p.direction == pass::weights && w.wide ? CUDNN_DATA_FLOAT : type(),
                        .extents = {filters, g.in.channels / g.groups, g.kernel.height, g.kernel.width}};
  cudnn::tensor const y{.name = "y",
                        .id = response,
                        .type = type(),
                        .extents = {p.batch, filters, g.out.height, g.out.width},
                        .alignment = p.aligned[1]};
  auto made = std::make_shared<cudnn::graph>(p.describe());
  if (p.direction == pass::data) {
    made->convolve_data(x, k, y, padding);
  } else if (p.direction == pass::weights) {
    made->convolve_weights(x, k, y, padding);
  } else if (!w.fused) {
    made->convolve(x, k, y, padding);
  } else {
    auto const between = [&](char const* name, std::int64_t id) {
      cudnn::tensor t = y;
      t.name = name, t.id = id, t.type = CUDNN_DATA_FLOAT, t.alignment = 16, t.virtual_ = true;
      return t;
    };
    cudnn::tensor const product = between("the product", convolved), sum = between("the sum", shifted);
    bool const relu = p.f == activation::relu;
    made->convolve(x, k, product, padding);
    if (p.bias) {
      // cuDNN's own kernels accept only a bias of the image's type.
      cudnn::tensor const b{.name = "bias", .id = bias_id, .type = type(), .extents = {1, filters, 1, 1}};
      made->add(product, b, relu ? sum : y);
    }
    if (relu) made->relu(p.bias ? sum : product, y);
  }
  made->finalize(gpu_);
  return made;
}

/// Adds at most `most` alternatives of one kind, in the order of cuDNN's estimates. Returns the reason if
/// there are none.
std::string convolutions::collect(problem const& p, kind const& k, std::size_t most,
                                  std::vector<way>& ways) const {
  std::shared_ptr<cudnn::graph const> graph;
  try {
    graph = build(p, k);
  } catch (error const& e) {
    return e.what();
  }
  std::string why;
  std::vector<cudnn::kernel_choice> choices;
  for (auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    for (auto& c : cudnn::propose(gpu_, *graph, mode, why))
      if (keeps(shared_.precision, c)) choices.push_back(std::move(c));
  auto const rounds = [](auto const& c) { return c.notes_that(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS); };
  auto const fast = [](auto const& c) { return c.notes_that(CUDNN_NUMERICAL_NOTE_TENSOR_CORE); };
  // Rounding inputs is the purpose of tf32. But the note does not say to which precision, so we accept only
  // kernels with tensor cores, and only if no such kernel lacks the note.
  bool const may_round = shared_.precision == precision::tf32 &&
                         std::ranges::none_of(choices, [&](auto const& c) { return fast(c) && !rounds(c); });
  std::erase_if(choices, [&](auto const& c) { return rounds(c) && !(may_round && fast(c)); });

  std::size_t found = 0;
  std::map<std::int64_t, std::size_t> used;
  if (choices.empty()) why = "cuDNN has no kernel that keeps the precision; " + why;
  for (auto& c : choices) {
    if (found == most) break;
    std::int64_t const engine = c.engine;
    if (used[engine] == most_of_an_engine) continue;
    way w{k, {}, {}};
    w.plan = cudnn::plan::make(gpu_, graph, std::move(c), why);
    if (w.plan && w.workspace() > most_workspace)
      why =
          fmt::format("engine {} asks for {} MiB of workspace", w.plan->choice().engine, w.workspace() >> 20);
    else if (w.plan)
      ways.push_back(std::move(w)), ++found, ++used[engine];
  }
  return found > 0 ? std::string() : why;
}

std::vector<convolutions::way> convolutions::ways(problem const& p, bool measures) const {
  bool const follows = p.direction == pass::forward && (p.bias || p.f != activation::none);
  auto const after = padding_after(p.g);
  std::vector<kind> kinds;
  for (bool wide : {true, false})
    for (bool padded : {false, true}) {
      // A border in memory is for paddings that differ between the two ends, which few kernels accept.
      if (padded ? after == p.g.before : !after) continue;
      // Kernels that round gradients once are used if there are no others, or if they are faster: a kernel of
      // cuDNN 9.19 that writes float32 took thirty times as long on an H200.
      if (!wide && !(p.direction == pass::weights && half())) continue;
      if (follows) kinds.push_back({.fused = true, .padded = padded, .wide = wide});
      kinds.push_back({.fused = false, .padded = padded, .wide = wide});
    }
  std::size_t const all = measures ? most_ways : 1;
  std::vector<way> found;
  std::string why;
  for (kind const& k : kinds) {
    if (found.size() == all) break;
    std::size_t const most = kinds.size() == 1 ? all : std::min(most_of_a_kind, all - found.size());
    std::string const here = collect(p, k, most, found);
    if (!k.fused && why.empty()) why = here;
  }
  bool const own =
      shared_.precision != precision::float32 &&
      (p.direction == pass::weights ? cuda_kernels::tensor_cores_take(p.g, half())
                                    : cuda_kernels::tensor_conv2d_takes(p.g, p.direction == pass::data));
  if (own && (measures || found.empty())) found.emplace_back().tensor_cores = true;
  if (found.empty()) found.push_back({{}, {}, why});
  return found;
}

/// The alternatives that compute correctly; if there are none, our own kernel, which always does.
std::vector<convolutions::way> convolutions::right_ways(problem const& p, tensors const& of,
                                                        runner const& with) {
  trial const tried(q_, shared_.precision, p.g, p.batch, p.f, of);
  std::string last;
  auto const right = [&](way const& w) {
    std::string why;
    bool const last_resort = !w.plan && !w.tensor_cores;
    if (w.plan && failed_.contains({p.identity(), w.plan->choice().engine})) return false;
    if (last_resort || tried.accepts([&](tensors const& t) { with(w, t); }, why)) return true;
    std::int64_t const engine = w.plan ? w.plan->choice().engine : -1;
    std::string const name = w.plan ? fmt::format("engine {}", engine) : "edl's own kernel";
    last = fmt::format("{} is left out: {}", name, why);
    if (told_.emplace(p.direction, engine).second)
      shared_.warn(
          fmt::format("{}{} is left out of {}: {}", w.plan ? "cuDNN's " : "", name, p.describe(), why));
    return false;
  };
  std::vector<way> found = ways(p, shared_.measured);
  std::erase_if(found, std::not_fn(right));
  if (found.empty() && !shared_.measured) {  // the rule needs at least one
    found = ways(p, true);
    found.erase(found.begin(), std::ranges::find_if(found, right));
    found.resize(std::min<std::size_t>(found.size(), 1));
  }
  if (found.empty()) found.push_back({{}, {}, last});
  return found;
}

void convolutions::run(problem const& p, tensors const& of, runner const& with) {
  auto const choose = [&] {
    if (recording(q_)) throw met_while_recording(p.describe());
    std::vector<way> found = right_ways(p, of, with);
    std::size_t const best =
        found.size() > 1 ? fastest(q_, found.size(), [&](std::size_t i) { with(found[i], of); }) : 0;
    return std::move(found[best]);
  };
  auto const key = p.identity();
  auto at = known_.find(key);
  if (at == known_.end()) at = known_.emplace(key, choose()).first;
  for (;;) try {
      return with(at->second, of);
    } catch (error const& e) {  // it has passed its trial before
      if (!at->second.plan || recording(q_)) throw;
      std::int64_t const engine = at->second.plan->choice().engine;
      failed_.emplace(key, engine);
      shared_.warn(
          fmt::format("cuDNN's engine {} is left out of {} from now on: {}", engine, p.describe(), e.what()));
      at->second = choose();
    }
}

/// The kernel's bfloat16 copy, if products read bfloat16.
std::uint16_t const* convolutions::rounded(float const* kernel) const {
  return half() ? shared_.rounded(kernel) : nullptr;
}

/// Where products read the kernel, and whether it is bfloat16 there.
std::pair<void const*, bool> convolutions::kept(tensors const& t) {
  if (t.rounded) return {t.rounded, true};
  return {t.kernel, false};
}

/// Copies the kernel in cuDNN's order, with the type of activations.
void convolutions::pack(conv_geometry const& g, tensors const& t, void* to) const {
  auto const [from, rounded] = kept(t);
  cuda_kernels::transpose_weights(q_, g.patch(), std::size_t(g.out.channels), from, rounded, to);
}

void convolutions::execute(way const& w, std::initializer_list<cudnn::plan::memory> tensors,
                           void* workspace) {
  cudnn::check(cudnnSetStream(gpu_.handle(), q_.stream), "taking the stream");
  w.plan->execute(gpu_, tensors, workspace);
}

void convolutions::forward(conv_geometry const& g, int batch, activation f, void const* x,
                           float const* kernel, float const* bias, void* y,
                           cuda_kernels::moments_in_parts* moments) {
  problem const p{.direction = pass::forward,
                  .g = g,
                  .batch = batch,
                  .f = f,
                  .bias = bias != nullptr,
                  .moments = moments != nullptr,
                  .aligned = {up_to_16(x), up_to_16(y)}};
  auto const filters = std::size_t(g.out.channels);
  float* const found = moments ? shared_.moments(cuda_kernels::moments_floats(q_, filters)) : nullptr;
  auto const convolve = [&](way const& w, tensors const& t) {
    if (!w.plan) return cuda_kernels::conv2d_forward(q_, g, batch, f, t.x, t.kernel, t.bias, t.y);
    room r;
    std::size_t const weights_at = r.add(g.patch() * filters * element()),
                      frame_at = r.add(w.padded ? std::size_t(batch) * framed(g).size() * element() : 0),
                      work_at = r.add(w.workspace());
    operand const b = w.fused && bias ? operand::vector(q_, t.bias, rounded(t.bias), filters, r) : operand();
    auto* const scratch = reinterpret_cast<std::byte*>(shared_.scratch(r.floats()));
    pack(g, t, scratch + weights_at);
    if (w.padded)
      cuda_kernels::place(q_, batch, g.in, framed(g), g.before.height, g.before.width, t.x,
                          scratch + frame_at);
    void const* const from = w.padded ? scratch + frame_at : t.x;
    if (w.fused && bias)
      execute(w,
              {{image, from},
               {tensor_id::kernel, scratch + weights_at},
               {response, t.y},
               {bias_id, b.place(q_, scratch)}},
              scratch + work_at);
    else
      execute(w, {{image, from}, {tensor_id::kernel, scratch + weights_at}, {response, t.y}},
              scratch + work_at);
    if (!w.fused && (bias || f != activation::none))
      cuda_kernels::finish_rows(q_, std::size_t(batch) * g.positions(), filters, f, t.bias, t.y);
  };
  run(p, {.x = x, .kernel = kernel, .bias = bias, .rounded = rounded(kernel), .y = y},
      [&](way const& w, tensors const& t) {
        auto const [at, half_kernel] = kept(t);
        if (w.tensor_cores && moments) {
          *moments =
              cuda_kernels::tensor_conv2d_moments(q_, g, batch, t.x, at, half_kernel, t.bias, t.y, found);
        } else if (w.tensor_cores) {
          cuda_kernels::tensor_conv2d_forward(q_, g, batch, f, t.x, at, half_kernel, t.bias, t.y);
        } else {
          convolve(w, t);
          if (moments)
            *moments =
                cuda_kernels::find_moments(q_, std::size_t(batch) * g.positions(), filters, t.y, found);
        }
      });
}

bool convolutions::backward(conv_geometry const& g, int batch, void const* x, float const* kernel,
                            void const* dy, void* dx, float* dkernel, float* dbias,
                            products::addition const& onto) {
  auto const filters = std::size_t(g.out.channels), rows = std::size_t(batch) * g.positions();
  std::size_t const weights = g.patch() * filters;
  problem p{.direction = pass::weights, .g = g, .batch = batch, .aligned = {up_to_16(x), up_to_16(dy)}};
  auto const weigh = [&](way const& w, tensors const& t) {
    room r;
    if (w.tensor_cores) {
      r.add(cuda_kernels::kernel_gradient_scratch(q_, g, batch) * sizeof(float));
      return cuda_kernels::kernel_gradient(q_, g, batch, t.x, t.dy, t.dkernel, shared_.scratch(r.floats()));
    }
    if (!w.plan) return cuda_kernels::conv2d_weights(q_, g, batch, t.x, t.dy, t.dkernel);
    std::size_t const weights_at = r.add(weights * (w.wide ? sizeof(float) : element())),
                      frame_at = r.add(w.padded ? std::size_t(batch) * framed(g).size() * element() : 0),
                      work_at = r.add(w.workspace());
    auto* const scratch = reinterpret_cast<std::byte*>(shared_.scratch(r.floats()));
    if (w.padded)
      cuda_kernels::place(q_, batch, g.in, framed(g), g.before.height, g.before.width, t.x,
                          scratch + frame_at);
    execute(w,
            {{image, w.padded ? scratch + frame_at : t.x},
             {tensor_id::kernel, scratch + weights_at},
             {response, t.dy}},
            scratch + work_at);
    cuda_kernels::queue q = q_;
    q.half = half() && !w.wide;
    cuda_kernels::transpose_gradients(q, g.patch(), filters, scratch + weights_at, t.dkernel);
  };
  if (dkernel) run(p, {.x = x, .dy = dy, .dkernel = dkernel}, weigh);
  if (dbias) {
    room r;
    r.add(cuda_kernels::sum_rows_scratch(q_, rows, filters) * sizeof(float));
    cuda_kernels::sum_rows(q_, rows, filters, dy, dbias, shared_.scratch(r.floats()));
  }
  if (!dx) return true;
  p.direction = pass::data;
  p.aligned[0] = up_to_16(dx);
  p.adds = onto.more != nullptr, p.masked = onto.above != nullptr;
  auto const convolve = [&](way const& w, tensors const& t) {
    if (!w.plan) return cuda_kernels::conv2d_data(q_, g, batch, t.kernel, t.dy, t.dx);
    room r;
    std::size_t const weights_at = r.add(weights * element()),
                      frame_at = r.add(w.padded ? std::size_t(batch) * framed(g).size() * element() : 0),
                      work_at = r.add(w.workspace());
    auto* const scratch = reinterpret_cast<std::byte*>(shared_.scratch(r.floats()));
    pack(g, t, scratch + weights_at);
    execute(w,
            {{image, w.padded ? scratch + frame_at : t.dx},
             {tensor_id::kernel, scratch + weights_at},
             {response, t.dy}},
            scratch + work_at);
    if (w.padded)
      cuda_kernels::place(q_, batch, framed(g), g.in, -g.before.height, -g.before.width, scratch + frame_at,
                          t.dx);
  };
  bool at_once = true;
  run(p,
      {.x = onto.above, .kernel = kernel, .rounded = rounded(kernel), .dy = dy, .more = onto.more, .dx = dx},
      [&](way const& w, tensors const& t) {
        at_once = w.tensor_cores || !t.more;
        if (w.tensor_cores) {
          auto const [at, half_kernel] = kept(t);
          return cuda_kernels::tensor_conv2d_data(q_, g, batch, at, half_kernel, t.dy, t.dx, t.more, t.x);
        }
        convolve(w, t);
        if (t.more) products::add(q_, {t.more, t.x}, t.dx, std::size_t(batch) * g.in.size());
      });
  return at_once;
}

std::string convolutions::describe(conv_geometry const& g, int batch, activation f, bool bias) {
  auto const words = [&](pass what) {
    bool const forward = what == pass::forward;
    problem const p{.direction = what,
                    .g = g,
                    .batch = batch,
                    .f = forward ? f : activation::none,
                    .bias = forward && bias};
    auto const wanted = p.identity();
    // Matches any following operation, and any alignment of memory.
    auto const at = std::ranges::find_if(known_, [&](auto const& entry) {
      return std::equal(wanted.begin(), wanted.begin() + 15, entry.first.begin());
    });
    std::vector<way> fresh;
    if (at == known_.end()) fresh = ways(p, false);
    way const& w = at == known_.end() ? fresh.front() : at->second;
    if (w.tensor_cores)
      return std::string("edl's own, tensor cores") + (what == pass::weights ? ", to float32" : "");
    if (!w.plan) return fmt::format("edl's own, since {}", w.why);
    auto const& c = w.plan->choice();
    std::string text = fmt::format("cuDNN engine {}", c.engine);
    if (c.notes_that(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) text += ", tensor cores";
    if (c.notes_that(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) text += ", rounds inputs";
    if (w.fused) text += ", with its epilogue";
    if (w.padded) text += ", border in memory";
    if (what == pass::weights && half()) text += w.wide ? ", to float32" : ", to bfloat16";
    return text;
  };
  return fmt::format("{} | {} | {}", words(pass::forward), words(pass::weights), words(pass::data));
}

}  // namespace edl::cuda_library
