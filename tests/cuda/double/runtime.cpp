// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
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

__global__ void add_one(float* to) { to[threadIdx.x] += 1; }

__global__ void half_at_barrier(float*) {
  if (threadIdx.x < 16) __syncthreads();
}
__global__ void half_in_shuffle(float* to) {
  if (threadIdx.x < 16) to[0] = __shfl_xor_sync(0xffff'ffffu, to[0], 1);
}
__global__ void write_at(float* to, long i) { to[i] = 1; }

}  // namespace

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
