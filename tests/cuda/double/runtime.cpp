// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <numeric>
#include <vector>

#include "device.hpp"

namespace runtime_test {

namespace {

namespace gpu = edl::cuda_double;

/// Whether `work` ends its process.
template <class Work>
bool dies(Work&& work) {
  pid_t const child = fork();
  if (child == 0) {
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    for (int const each : {SIGSEGV, SIGABRT, SIGBUS}) signal(each, SIG_DFL);
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

struct stream {
  cudaStream_t it = nullptr;
  stream() { cudaStreamCreateWithFlags(&it, cudaStreamNonBlocking); }
  ~stream() { cudaStreamDestroy(it); }
  stream(stream const&) = delete;
  stream& operator=(stream const&) = delete;
  operator cudaStream_t() const { return it; }

  template <class... Parameters, class... Arguments>
  cudaError_t launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, Arguments... arguments) const {
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = block;
    config.stream = it;
    return cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
  }
};

struct memory {
  float* it = nullptr;
  std::size_t n;
  explicit memory(std::size_t floats) : n(floats) { cudaMalloc(&it, n * sizeof(float)); }
  ~memory() { cudaFree(it); }
  memory(memory const&) = delete;
  memory& operator=(memory const&) = delete;

  std::vector<float> get(cudaStream_t s) const {
    std::vector<float> v(n);
    CHECK(cudaMemcpyAsync(v.data(), it, n * sizeof(float), cudaMemcpyDeviceToHost, s) == cudaSuccess);
    return v;
  }
};

__global__ void number_threads(float* to) {
  unsigned const block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  unsigned const thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  to[block * blockDim.x * blockDim.y * blockDim.z + thread] += float(thread + 1000 * block);
}

__global__ void add_one(float* to) { to[threadIdx.x] += 1; }

__global__ void sum_block(float* to) {
  __shared__ float shared[96];
  shared[threadIdx.x] = float(threadIdx.x);
  for (unsigned active = 96; active > 1; active = (active + 1) / 2) {
    __syncthreads();
    unsigned const half = (active + 1) / 2;
    if (threadIdx.x + half < active) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  if (threadIdx.x == 0) to[blockIdx.x] = shared[0];
}

__global__ void shuffle_lanes(float* to) {
  unsigned const lane = threadIdx.x % 32;
  float v = float(threadIdx.x);
  for (int bit = 4; bit > 0; bit /= 2) v += __shfl_xor_sync(0xffff'ffffu, v, bit);  // of 8
  double const down = __shfl_down_sync(0xffff'ffffu, double(threadIdx.x), 1u);
  float const first = __shfl_sync(0xffff'ffffu, float(threadIdx.x), 0);
  to[3 * threadIdx.x] = v;
  to[3 * threadIdx.x + 1] = float(down);
  to[3 * threadIdx.x + 2] = lane % 2 ? first : -first;
}

__global__ void match_lanes(float* to) {
  unsigned const lane = threadIdx.x % 32;
  unsigned const same = __match_any_sync(0xffff'ffffu, lane % 3), alone = __match_any_sync(1u << lane, 7);
  to[2 * threadIdx.x] = float(__popc(same & ((1u << lane) - 1)));
  to[2 * threadIdx.x + 1] = alone == 1u << lane ? 1.0f : 0.0f;
}

__global__ void half_at_barrier(float*) {
  if (threadIdx.x < 16) __syncthreads();
}
__global__ void half_in_shuffle(float* to) {
  if (threadIdx.x < 16) to[0] = __shfl_xor_sync(0xffff'ffffu, to[0], 1);
}
__global__ void write_at(float* to, long i) { to[i] = 1; }

}  // namespace

TEST_CASE("every thread of a grid runs once, in either order") {
  for (bool const backwards : {false, true}) {
    gpu::reverse(backwards);
    stream const s;
    memory const m(2 * 3 * 4 * 30);
    cudaMemsetAsync(m.it, 0, m.n * sizeof(float), s);
    CHECK(s.launch(number_threads, dim3(2, 3, 4), dim3(5, 3, 2), m.it) == cudaSuccess);
    auto const v = m.get(s);
    for (std::size_t i = 0; i < v.size(); ++i) CHECK(v[i] == float(i % 30 + 1000 * (i / 30)));
  }
  gpu::reverse(false);
}

TEST_CASE("threads of a block wait for each other, and lanes exchange") {
  for (bool const backwards : {false, true}) {
    gpu::reverse(backwards);
    stream const s;
    memory const sums(3), lanes(3 * 64);
    CHECK(s.launch(sum_block, dim3(3), dim3(96), sums.it) == cudaSuccess);
    CHECK(sums.get(s) == std::vector<float>(3, 96 * 95 / 2));
    CHECK(s.launch(shuffle_lanes, dim3(1), dim3(64), lanes.it) == cudaSuccess);
    auto const v = lanes.get(s);
    for (std::size_t i = 0; i < 64; ++i) {
      std::size_t const group = i / 8 * 8, warp = i / 32 * 32;
      CHECK(v[3 * i] == float(8 * group + 28));
      CHECK(v[3 * i + 1] == float(i % 32 == 31 ? i : i + 1));
      CHECK(v[3 * i + 2] == (i % 2 ? float(warp) : -float(warp)));
    }
    memory const matches(2 * 64);
    CHECK(s.launch(match_lanes, dim3(1), dim3(64), matches.it) == cudaSuccess);
    auto const m = matches.get(s);
    for (std::size_t i = 0; i < 64; ++i) {
      CHECK(m[2 * i] == float(i % 32 / 3));
      CHECK(m[2 * i + 1] == 1);
    }
  }
  gpu::reverse(false);
}

TEST_CASE("what a GPU leaves undefined ends the program") {
  auto const run = [](auto kernel, auto... arguments) {
    return dies([=] {
      stream const s;
      memory const m(100);
      s.launch(kernel, dim3(1), dim3(32), m.it, arguments...);
      cudaStreamSynchronize(s);
    });
  };
  CHECK(!run(add_one));
  CHECK(run(half_at_barrier));
  CHECK(run(half_in_shuffle));
  CHECK(!run(write_at, 99));
  CHECK(run(write_at, 100));     // behind the end: seen afterwards
  CHECK(run(write_at, 10'000));  // and at once
  CHECK(run(write_at, -10'000));
  CHECK(dies([] {
    memory const m(100);
    m.it[0] = 1;  // by the host
  }));
  CHECK(dies([] {
    stream const s;
    float* freed = nullptr;
    {
      memory const m(100);
      freed = m.it;
    }
    s.launch(add_one, dim3(1), dim3(1), freed);
    cudaStreamSynchronize(s);
  }));
}

TEST_CASE("fresh memory is no number, and none is left") {
  std::size_t const before = gpu::allocations();
  {
    stream const s;
    memory const m(1000);
    CHECK(gpu::allocations() == before + 1);
    for (float const x : m.get(s)) CHECK(std::isnan(x));
  }
  CHECK(gpu::allocations() == before);
  void* too_much = nullptr;
  CHECK(cudaMalloc(&too_much, std::size_t{1} << 50) == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("launches and copies that cannot be are errors") {
  stream const s;
  memory const m(4);
  std::vector<float> host(8);
  CHECK(s.launch(add_one, dim3(1), dim3(1025), m.it) == cudaErrorInvalidConfiguration);
  CHECK(s.launch(add_one, dim3(0), dim3(1), m.it) == cudaErrorInvalidConfiguration);
  CHECK(s.launch(add_one, dim3(1, 65536), dim3(1), m.it) == cudaErrorInvalidConfiguration);
  CHECK(cudaMemcpyAsync(m.it, host.data(), 17, cudaMemcpyDefault, s) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyAsync(m.it, host.data(), 16, cudaMemcpyDeviceToDevice, s) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyAsync(m.it, host.data(), 16, cudaMemcpyDeviceToHost, s) == cudaErrorInvalidValue);
  CHECK(cudaMemsetAsync(host.data(), 0, 4, s) == cudaErrorInvalidValue);
  CHECK(cudaHostUnregister(host.data()) == cudaErrorHostMemoryNotRegistered);
}

TEST_CASE("work is done when it is waited for, and no sooner") {
  stream const s, other;
  memory const m(4);
  std::vector<float> to(4, 7), from(4, 1);
  cudaHostRegister(to.data(), 16, cudaHostRegisterDefault);
  cudaMemcpyAsync(m.it, from.data(), 16, cudaMemcpyDefault, s);
  from.assign(4, 2);  // was read
  cudaMemcpyAsync(to.data(), m.it, 16, cudaMemcpyDefault, s);
  CHECK(to[0] == 7);
  cudaEvent_t copied = nullptr;
  cudaEventCreate(&copied);
  cudaEventRecord(copied, s);
  s.launch(add_one, dim3(1), dim3(4), m.it);
  CHECK(cudaEventSynchronize(copied) == cudaSuccess);
  CHECK(to[0] == 1);
  CHECK(cudaStreamQuery(s) == cudaErrorNotReady);  // the kernel
  cudaEventRecord(copied, s);
  cudaStreamWaitEvent(other, copied);
  cudaMemcpyAsync(to.data(), m.it, 16, cudaMemcpyDefault, other);
  cudaStreamSynchronize(other);
  CHECK(to[0] == 2);
  cudaEventDestroy(copied);
  cudaHostUnregister(to.data());
}

TEST_CASE("a graph does again what was recorded") {
  stream const s, other;
  memory const m(4);
  cudaEvent_t fork = nullptr, join = nullptr;
  cudaEventCreate(&fork);
  cudaEventCreate(&join);
  cudaMemsetAsync(m.it, 0, 16, s);
  REQUIRE(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  s.launch(add_one, dim3(1), dim3(4), m.it);
  cudaEventRecord(fork, s);
  cudaStreamWaitEvent(other, fork);
  other.launch(add_one, dim3(1), dim3(2), m.it);
  cudaEventRecord(join, other);
  cudaStreamWaitEvent(s, join);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(s, &graph) == cudaSuccess);
  std::size_t nodes = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes) == cudaSuccess);
  CHECK(nodes == 2);
  CHECK(m.get(s) == std::vector<float>(4, 0));
  cudaGraphExec_t again = nullptr;
  REQUIRE(cudaGraphInstantiate(&again, graph) == cudaSuccess);
  for (int i = 0; i < 3; ++i) cudaGraphLaunch(again, s);
  CHECK(m.get(s) == std::vector<float>{6, 6, 3, 3});
  cudaGraphExecDestroy(again);
  cudaGraphDestroy(graph);
  cudaEventDestroy(fork);
  cudaEventDestroy(join);
}

TEST_CASE("who allocates or waits while a stream is recorded spoils the graph") {
  stream const s, other;
  memory const m(4);
  cudaGraph_t graph = nullptr;
  auto const spoils = [&](auto call, cudaError_t expected) {
    REQUIRE(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    s.launch(add_one, dim3(1), dim3(4), m.it);
    CHECK(call() == expected);
    CHECK(s.launch(add_one, dim3(1), dim3(4), m.it) == cudaErrorStreamCaptureInvalidated);
    return cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureInvalidated && !graph;
  };
  void* more = nullptr;
  CHECK(spoils([&] { return cudaMalloc(&more, 4); }, cudaErrorStreamCaptureUnsupported));
  CHECK(spoils([&] { return cudaFree(m.it); }, cudaErrorStreamCaptureUnsupported));
  CHECK(spoils([&] { return cudaStreamSynchronize(s); }, cudaErrorStreamCaptureUnsupported));
  CHECK(spoils([&] { return cudaDeviceSynchronize(); }, cudaErrorStreamCaptureUnsupported));
  float x = 0;
  CHECK(spoils([&] { return cudaMemcpy(&x, m.it, 4, cudaMemcpyDefault); }, cudaErrorStreamCaptureImplicit));

  REQUIRE(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  CHECK(cudaStreamSynchronize(other) == cudaSuccess);
  cudaEvent_t fork = nullptr;
  cudaEventCreate(&fork);
  cudaEventRecord(fork, s);
  cudaStreamWaitEvent(other, fork);
  CHECK(cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureUnjoined);
  cudaEventDestroy(fork);
}

}  // namespace runtime_test
