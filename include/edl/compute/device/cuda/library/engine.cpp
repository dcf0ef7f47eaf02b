// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "edl/compute/device/cuda/library/check.hpp"
#include "edl/compute/device/cuda/library/choose.hpp"
#include "edl/core/names.hpp"

namespace edl::cuda_library {
namespace {

constexpr std::size_t least_scratch = std::size_t(1) << 20;  // floats
constexpr int most_failures = 2;                             // of recordings of a step
constexpr std::size_t most_own_memory = std::size_t(1)
                                        << 24;  // floats, of the blocks of an expression's kernels

}  // namespace

engine::engine(cuda_options const& o)
    : index_(o.index), precision_(o.precision), warn_(o.warn ? o.warn : [](std::string const&) {}) {
  int driver = 0, count = 0;
  check(cudaDriverGetVersion(&driver), "looking for the driver");
  if (driver == 0) throw error("GPU: this machine has no NVIDIA driver");
  check(cudaGetDeviceCount(&count), "looking for GPUs");
  if (count < 1) throw error("GPU: this process sees none");
  index_ = std::max(index_, 0) % count;
  if (o.alone) take_free_one(count);
  use();
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, index_), "reading its properties");
  if (properties.major < 8)
    throw error(
        fmt::format("GPU: {} has compute capability {}.{}; 8.0 (A100) is the least that this library "
                    "was built for",
                    properties.name, properties.major, properties.minor));
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  queue_ = {.stream = stream_,
            .half = precision_ == precision::bfloat16,
            .step = nullptr,
            .processors = properties.multiProcessorCount};
  compiler_.emplace(10 * properties.major + properties.minor, queue_.half, o.compiled);
  step_ = reinterpret_cast<std::uint64_t*>(allocate(2));
  products_.emplace(queue_, products::shared_state{
                                .precision = precision_,
                                .measured = o.measured,
                                .scratch = [this](std::size_t n) { return scratch(n); },
                                .moments = [this](std::size_t n) { return grown(moments_of_, n); },
                                .rounded = [this](float const* w) { return rounded(w); },
                                .warn = warn_,
                            });
}

engine::~engine() {
  (void)cudaSetDevice(index_);
  (void)cudaStreamSynchronize(stream_);
  products_.reset();
  for (auto& [key, r] : recordings_) destroy(r.pieces);
  for (auto& [program, c] : compiled_) (void)cudaLibraryUnload(c.library);
  for (cudaEvent_t each : points_)
    if (each) (void)cudaEventDestroy(each);
  for (growing const* each : {&scratch_, &moments_of_, &matrices_})
    for (float* s : each->all) (void)cudaFree(s);
  (void)cudaFree(rounded_);
  (void)cudaFree(step_);
  (void)cudaStreamDestroy(stream_);
}

void engine::take_free_one(int count) {
  for (int i = 0; i < count && !claim_; ++i) {
    cudaDeviceProp properties;
    int const index = (index_ + i) % count;
    check(cudaGetDeviceProperties(&properties, index), "reading its properties");
    claim_ = claim(properties.uuid.bytes);
    if (claim_) index_ = index;
  }
}

void engine::use() { check(cudaSetDevice(index_), "taking the GPU"); }

std::string engine::describe() const {
  cudaDeviceProp properties;
  int runtime = 0;
  check(cudaGetDeviceProperties(&properties, index_), "reading its properties");
  check(cudaRuntimeGetVersion(&runtime), "asking for CUDA's version");
  return fmt::format("{}, {:.1f} GiB, CUDA {}.{}, {}, {}", properties.name,
                     double(properties.totalGlobalMem) / double(1u << 30), runtime / 1000,
                     runtime % 1000 / 10, products::libraries(), edl::name_of(precision_));
}

// ---- Memory ----

float* engine::allocate(std::size_t floats) {
  use();
  void* memory = nullptr;
  cudaError_t const code = cudaMalloc(&memory, std::max<std::size_t>(floats, 1) * sizeof(float));
  if (code == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    throw error(
        fmt::format("GPU: no memory for {:.1f} MiB more; a smaller --minibatch_size or "
                    "--precision=bfloat16 needs less",
                    double(floats) * sizeof(float) / (1 << 20)));
  }
  check(code, "allocating memory");
  check(cudaMemsetAsync(memory, 0, floats * sizeof(float), stream_), "zeroing memory");
  return static_cast<float*>(memory);
}

void engine::release(float* memory, std::size_t) noexcept {
  (void)cudaSetDevice(index_);
  (void)cudaStreamSynchronize(stream_);
  (void)cudaFree(memory);
}

float* engine::allocate_host(std::size_t floats) {
  use();
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, std::max<std::size_t>(floats, 1) * sizeof(float), cudaHostAllocDefault),
        "allocating pinned memory");
  std::memset(memory, 0, floats * sizeof(float));
  return static_cast<float*>(memory);
}

void engine::release_host(float* memory) noexcept {
  (void)cudaSetDevice(index_);
  (void)cudaFreeHost(memory);
}

bool engine::pin(std::span<std::byte const> host) {
  use();
  cudaError_t const code =
      cudaHostRegister(const_cast<std::byte*>(host.data()), host.size(), cudaHostRegisterDefault);
  if (code != cudaSuccess) (void)cudaGetLastError();
  return code == cudaSuccess;
}

void engine::unpin(std::byte const* host) noexcept {
  (void)cudaSetDevice(index_);
  (void)cudaHostUnregister(const_cast<std::byte*>(host));
}

void engine::upload(std::span<std::byte const> host, void* to) {
  check(cudaMemcpyAsync(to, host.data(), host.size(), cudaMemcpyHostToDevice, stream_), "copying to the GPU");
}

void engine::download(void const* from, std::span<std::byte> host) {
  check(cudaMemcpyAsync(host.data(), from, host.size(), cudaMemcpyDeviceToHost, stream_),
        "copying from the GPU");
}

void engine::move(in from, out to) {
  if (from.empty()) return;
  check(cudaMemcpyAsync(to.data(), from.data(), from.size_bytes(), cudaMemcpyDeviceToDevice, stream_),
        "copying on the GPU");
}

std::size_t engine::free_memory() {
  std::size_t left = 0, all = 0;
  use();
  check(cudaMemGetInfo(&left, &all), "asking for its free memory");
  return left;
}

void engine::synchronize() { check(cudaStreamSynchronize(stream_), "computing"); }

float* engine::grown(growing& of, std::size_t floats) {
  if (floats <= of.size) return of.all.back();
  std::size_t const size = std::max({floats, 2 * of.size, least_scratch});
  of.all.push_back(allocate(size));
  of.size = size;
  return of.all.back();
}

// ---- Steps ----

void engine::bind(in parameters) {
  bool const same = bound_.data() == parameters.data() && bound_.size() == parameters.size();
  if (same) return refresh();  // recorded graphs refer to the rounded ones
  synchronize();
  bound_ = parameters;
  if (!queue_.half) return;
  check(cudaFree(rounded_), "freeing memory");
  rounded_ = nullptr;
  rounded_ = reinterpret_cast<std::uint16_t*>(allocate((parameters.size() + 1) / 2));
  refresh();
}

void engine::refresh() {
  if (rounded_) cuda_kernels::round(queue_, bound_.data(), rounded_, bound_.size());
}

std::uint16_t* engine::rounded(float const* weights) const {
  bool const within = rounded_ && weights >= bound_.data() && weights < bound_.data() + bound_.size();
  return within ? rounded_ + (weights - bound_.data()) : nullptr;
}

void engine::begin_piece() {
  check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "recording a step");
}

engine::piece engine::end_piece(int mark) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream_, &graph), "recording a step");
  std::size_t nodes = 0;
  cudaGraphExec_t made = nullptr;
  cudaError_t code = cudaGraphGetNodes(graph, nullptr, &nodes);
  if (code == cudaSuccess && nodes > 0) code = cudaGraphInstantiate(&made, graph, 0);
  (void)cudaGraphDestroy(graph);
  if (code == cudaSuccess && made) code = cudaGraphUpload(made, stream_);  // allocates its memory now
  if (code != cudaSuccess && made) (void)cudaGraphExecDestroy(made);
  check(code, "making a graph of a step");
  return {made, mark};
}

std::vector<engine::piece> engine::record(std::function<void()> const& work) {
  std::vector<piece> pieces;
  auto const end = [&] { queue_.step = nullptr, recorded_ = nullptr; };
  queue_.step = step_, recorded_ = &pieces;
  begin_piece();
  try {
    work();
    pieces.push_back(end_piece(-1));
  } catch (...) {
    end();
    cudaGraph_t graph = nullptr;
    (void)cudaStreamEndCapture(stream_, &graph);
    (void)cudaGetLastError();  // if no capture was active
    if (graph) (void)cudaGraphDestroy(graph);
    destroy(pieces);
    throw;
  }
  end();
  return pieces;
}

void engine::destroy(std::vector<piece> const& pieces) noexcept {
  for (piece const& p : pieces)
    if (p.graph) (void)cudaGraphExecDestroy(p.graph);
}

void engine::replay(std::uint64_t key, std::uint64_t step, std::function<void()> const& work) {
  recording& r = recordings_[key];
  if (r.times++ == 0) return work();  // the first run chooses kernels and allocates memory
  if (r.pieces.empty()) {
    if (r.failures == most_failures) return work();
    try {
      r.pieces = record(work);
    } catch (error const& e) {  // what it lacked may exist the next time
      if (++r.failures == most_failures)
        warn_(std::string("GPU: steps are done operation by operation, since they cannot be recorded: ") +
              e.what());
      return work();
    }
  }
  cuda_kernels::set_step(queue_, step_, step);
  for (piece const& p : r.pieces) {
    if (p.graph) check(cudaGraphLaunch(p.graph, stream_), "starting a step");
    if (p.mark >= 0) mark(p.mark);
  }
}

// ---- Generated kernels ----

engine::compiled const& engine::compiled_of(generated const& what) {
  std::tuple const key{what.program, what.in.height, what.in.width, what.in.channels};
  auto const known = compiled_.find(key);
  if (known != compiled_.end()) return known->second;
  if (cuda_library::recording(queue_))
    throw met_while_recording(fmt::format("the expression `{}`", what.name));
  std::string const code = compiler_->compile(what.source(what.program, what.in), what.name);
  std::string const loading = fmt::format("loading the kernels of `{}`", what.name);
  compiled c;
  check(cudaLibraryLoadData(&c.library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        loading.c_str());
  auto const find = [&](bool there, cudaKernel_t& kernel, char const* name) {
    if (there) check(cudaLibraryGetKernel(&kernel, c.library, name), loading.c_str());
  };
  try {
    find(what.draws, c.draw, "draw");
    find(what.before, c.before, "before");
    find(what.rows > 0, c.rows, "rows");
    find(what.totals > 0, c.join, "join");
    find(what.after, c.after, "after");
  } catch (...) {
    (void)cudaLibraryUnload(c.library);
    throw;
  }
  return compiled_.emplace(key, c).first->second;
}

void engine::launch(std::string_view of, cudaKernel_t kernel, std::size_t blocks, generated_call& with) {
  if (!kernel || blocks == 0) return;
  void* arguments[] = {&with};
  check(cudaLaunchKernel(reinterpret_cast<void const*>(kernel), dim3(unsigned(blocks)),
                         dim3(generated::threads), arguments, 0, stream_),
        fmt::format("starting the kernels of `{}`", of).c_str());
}

void engine::run(generated const& what, generated_call const& with) {
  count("expression", {.activations = what.activations});
  compiled const& c = compiled_of(what);
  // Blocks have memory of their own, of which the scratch memory should not be much.
  std::size_t const most =
                        std::max<std::size_t>(1, most_own_memory / std::max<std::size_t>(1, what.of_block)),
                    some = 8 * std::size_t(queue_.processors), blocks = std::min({what.rows, most, some});
  generated_call now = with;
  now.scratch = scratch(what.scratch + std::max<std::size_t>(1, blocks) * what.of_block + 1);
  now.step_now = queue_.step;
  now.blocks = blocks;
  launch(what.name, c.draw, some, now);
  launch(what.name, c.before, 1, now);
  launch(what.name, c.rows, blocks, now);
  launch(what.name, c.join, std::min(some, (what.totals + generated::threads - 1) / generated::threads), now);
  launch(what.name, c.after, 1, now);
}

}  // namespace edl::cuda_library
