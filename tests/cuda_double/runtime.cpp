// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include "state.hpp"

namespace edl::cuda_double {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local int current_device = 0;

/// The default stream. It waits for all that do not refuse, and they for it, so its work is done at once.
CUstream_st& default_stream() {
  static CUstream_st stream;
  return stream;
}

CUstream_st* find(cudaStream_t stream) {
  if (!stream) return &default_stream();
  if (!all().streams.contains(stream)) fail("a stream that does not exist, or was destroyed");
  return stream;
}

CUevent_st* find(cudaEvent_t event) {
  if (!all().events.contains(event)) fail("an event that does not exist, or was destroyed");
  return event;
}

/// False: what is next waits for others.
bool do_next(CUstream_st* stream) {
  attempt next = std::move(stream->waiting.front());
  stream->waiting.pop_front();
  access const open;
  bool const done = next();
  if (!done) stream->waiting.push_front(std::move(next));
  check_ends();
  return done;
}

/// Does what comes before the point, and no more. False: it waits for others.
bool reach(mark const& m) {
  access const open;
  while (!m.reached && !m.stream->waiting.empty())
    if (!do_next(m.stream)) return false;
  return true;
}

/// Waits until `done` says so, as a GPU would for ever.
template <class Done>
void insist(Done done) {
  auto const until = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!done()) {
    if (std::chrono::steady_clock::now() > until) fail("a wait for work that waits for others has no end");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

double now() {
  if (whim("count_work")) return all().spent * 1e-3;
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

runtime::runtime() {
  char const* const how = std::getenv("EDL_CUDA_DOUBLE");
  eager = how && std::string_view(how) == "eager";
  if (char const* const many = std::getenv("EDL_CUDA_DOUBLE_DEVICES")) devices = std::atoi(many);
}

runtime& all() {
  static auto* const it = new runtime;  // what outlives main may still use it
  return *it;
}

std::optional<int> whim(std::string_view name) {
  char const* const given = std::getenv("EDL_CUDA_DOUBLE_WHIMS");
  for (std::string_view left = given ? given : ""; !left.empty();) {
    std::string_view const one = left.substr(0, left.find(','));
    left.remove_prefix(std::min(left.size(), one.size() + 1));
    if (one.substr(0, one.find('=')) == name)
      return one.size() > name.size() ? std::atoi(one.data() + name.size() + 1) : 0;
  }
  return {};
}

void spend(int milliseconds) {
  std::lock_guard const hold(all().lock);
  all().spent += milliseconds;
}

void fail(std::string const& what) {
  std::fprintf(stderr, "cuda double: %s\n", what.c_str());
  std::abort();
}

cudaError_t note(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

bool capturing(cudaStream_t stream) {
  std::lock_guard const hold(all().lock);
  return find(stream)->recorded != nullptr;
}

bool forbidden() {
  std::lock_guard const hold(all().lock);
  bool any = false;
  for (recording* r : all().recordings) {
    bool const own = r->thread == std::this_thread::get_id();
    if (r->mode == cudaStreamCaptureModeRelaxed || (r->mode == cudaStreamCaptureModeThreadLocal && !own))
      continue;
    r->spoiled = any = true;
  }
  return any;
}

cudaError_t enqueue(cudaStream_t stream, work w) {
  std::lock_guard const hold(all().lock);
  CUstream_st* const s = find(stream);
  if (s == &default_stream()) {
    for (recording* r : all().recordings)
      if (r->origin->blocking) {
        r->spoiled = true;
        return note(cudaErrorStreamCaptureImplicit);
      }
    for (CUstream_st* other : all().streams)
      if (other->blocking) finish(other);
  }
  if (s->recorded) {
    if (s->recorded->spoiled) return note(cudaErrorStreamCaptureInvalidated);
    s->recorded->steps->push_back(std::move(w));
    if (s != s->recorded->origin) s->recorded->joined[s] = s->recorded->steps->size();
    return cudaSuccess;
  }
  s->waiting.push_back([w = std::move(w)] {
    ++all().spent;
    return w(), true;
  });
  if (all().eager || s == &default_stream()) finish(s);
  return cudaSuccess;
}

cudaError_t enqueue_attempt(cudaStream_t stream, attempt w) {
  std::lock_guard const hold(all().lock);
  CUstream_st* const s = find(stream);
  if (s->recorded || s == &default_stream())
    fail("work that waits for others, where this double has no place for it");
  s->waiting.push_back(std::move(w));
  return cudaSuccess;
}

void finish(CUstream_st* stream) {
  stream = find(stream);
  if (stream->waiting.empty()) return;
  access const open;  // for all of it
  insist([&] {
    while (!stream->waiting.empty())
      if (!do_next(stream)) return false;
    return true;
  });
}

void finish_all() {
  for (CUstream_st* each : all().streams) finish(each);
}

}  // namespace edl::cuda_double

using namespace edl::cuda_double;

char const* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidMemcpyDirection:
      return "cudaErrorInvalidMemcpyDirection";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorHostMemoryAlreadyRegistered:
      return "cudaErrorHostMemoryAlreadyRegistered";
    case cudaErrorHostMemoryNotRegistered:
      return "cudaErrorHostMemoryNotRegistered";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureMerge:
      return "cudaErrorStreamCaptureMerge";
    case cudaErrorStreamCaptureUnmatched:
      return "cudaErrorStreamCaptureUnmatched";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureIsolation:
      return "cudaErrorStreamCaptureIsolation";
    case cudaErrorStreamCaptureImplicit:
      return "cudaErrorStreamCaptureImplicit";
    case cudaErrorCapturedEvent:
      return "cudaErrorCapturedEvent";
    case cudaErrorUnknown:
      break;
  }
  return "cudaErrorUnknown";
}

char const* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    default:
      return cudaGetErrorName(error);
  }
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }

cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) { return *count = all().devices, cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= all().devices) return note(cudaErrorInvalidDevice);
  return current_device = device, cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) { return *device = current_device, cudaSuccess; }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= all().devices) return note(cudaErrorInvalidDevice);
  *properties = {"double of a GPU", {}, all().total, 48 * 1024, 32, 1024, 9, 0, 3, 1 << 20};
  properties->uuid.bytes[0] = char(device + 1);
  // Tests that run at the same time are on machines of their own.
  char const* const run = std::getenv("EDL_TEST_RUN");
  std::size_t const machine = std::hash<std::string>()(run ? run : std::to_string(::getpid()));
  std::memcpy(properties->uuid.bytes + 8, &machine, sizeof(machine));
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp p;
  if (cudaError_t const error = cudaGetDeviceProperties(&p, device); error != cudaSuccess) return error;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = p.maxThreadsPerBlock;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = int(p.sharedMemPerBlock);
      break;
    case cudaDevAttrWarpSize:
      *value = p.warpSize;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = p.multiProcessorCount;
      break;
    case cudaDevAttrL2CacheSize:
      *value = p.l2CacheSize;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = p.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = p.minor;
      break;
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  std::lock_guard const hold(all().lock);
  if (forbidden()) return note(cudaErrorStreamCaptureUnsupported);
  finish_all();
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  std::lock_guard const hold(all().lock);
  if (!stream || flags > cudaStreamNonBlocking) return note(cudaErrorInvalidValue);
  *stream = new CUstream_st{flags != cudaStreamNonBlocking, current_device, {}, {}};
  all().streams.insert(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, 0); }

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::lock_guard const hold(all().lock);
  if (!stream) return note(cudaErrorInvalidResourceHandle);
  if (find(stream)->recorded) fail("a stream was destroyed while it was recorded");
  finish(stream);
  all().streams.erase(stream);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  std::lock_guard const hold(all().lock);
  if (auto const& r = find(stream)->recorded) {
    r->spoiled = true;
    return note(cudaErrorStreamCaptureUnsupported);
  }
  finish(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  std::lock_guard const hold(all().lock);
  CUstream_st* const s = find(stream);
  if (s->recorded) {
    s->recorded->spoiled = true;
    return note(cudaErrorStreamCaptureUnsupported);
  }
  if (s->waiting.empty()) return cudaSuccess;
  (void)do_next(s);  // who asks again sees it go on
  return cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  std::lock_guard const hold(all().lock);
  CUstream_st* const s = find(stream);
  auto const at = find(event)->at;
  if (!at) return cudaSuccess;
  if (auto const r = at->recorded) {
    if (!all().recordings.contains(r.get())) return note(cudaErrorInvalidValue);
    if (s->recorded && s->recorded != r) return note(cudaErrorStreamCaptureMerge);
    if (!s->recorded && !s->waiting.empty()) finish(s);
    if (s == r->origin) {
      auto const it = r->joined.find(at->stream);
      if (it != r->joined.end() && at->step >= it->second) it->second = 0;
    } else if (!s->recorded) {
      s->recorded = r;
      r->joined[s] = r->steps->size() + 1;
    }
    return cudaSuccess;
  }
  if (s->recorded) {
    s->recorded->spoiled = true;
    return note(cudaErrorStreamCaptureIsolation);
  }
  if (all().eager || !stream) return enqueue(stream, [at] { insist([&] { return reach(*at); }); });
  return enqueue_attempt(stream, [at] { return reach(*at); });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return enqueue(stream, [=] { function(data); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  std::lock_guard const hold(all().lock);
  if (!event || flags > 3) return note(cudaErrorInvalidValue);
  *event = new CUevent_st{!(flags & cudaEventDisableTiming), {}};
  all().events.insert(*event);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  std::lock_guard const hold(all().lock);
  all().events.erase(find(event));
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  std::lock_guard const hold(all().lock);
  CUstream_st* const s = find(stream);
  auto const at = std::make_shared<mark>();
  at->stream = s;
  find(event)->at = at;
  if (s->recorded) {
    at->recorded = s->recorded;
    at->step = s->recorded->steps->size() + 1;
    return cudaSuccess;
  }
  return enqueue(stream, [at] {
    at->reached = true;
    at->seconds = now();
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  std::lock_guard const hold(all().lock);
  auto const at = find(event)->at;
  if (!at || at->reached) return cudaSuccess;
  if (at->recorded) return note(cudaErrorCapturedEvent);
  (void)do_next(at->stream);
  return at->reached ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  std::lock_guard const hold(all().lock);
  auto const at = find(event)->at;
  if (!at || at->reached) return cudaSuccess;
  if (at->recorded) return note(cudaErrorCapturedEvent);
  insist([&] { return reach(*at); });
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  std::lock_guard const hold(all().lock);
  auto const *const a = find(start), *const b = find(end);
  if (!a->timed || !b->timed || !a->at || !b->at) return note(cudaErrorInvalidResourceHandle);
  if (!a->at->reached || !b->at->reached) return cudaErrorNotReady;
  *milliseconds = float((b->at->seconds - a->at->seconds) * 1e3);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  std::lock_guard const hold(all().lock);
  if (!stream) return note(cudaErrorStreamCaptureUnsupported);
  CUstream_st* const s = find(stream);
  if (s->recorded) return note(cudaErrorInvalidValue);
  s->recorded = std::make_shared<recording>();
  s->recorded->origin = s;
  s->recorded->mode = mode;
  all().recordings.insert(s->recorded.get());
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  std::lock_guard const hold(all().lock);
  CUstream_st* const s = find(stream);
  *graph = nullptr;
  if (!s->recorded) return note(cudaErrorInvalidValue);
  if (s->recorded->origin != s) return note(cudaErrorStreamCaptureUnmatched);
  auto const r = s->recorded;
  all().recordings.erase(r.get());
  s->recorded = nullptr;
  bool joined = true;
  for (auto const& [other, step] : r->joined) {
    other->recorded = nullptr;
    if (step != 0) joined = false;
  }
  if (r->spoiled) return note(cudaErrorStreamCaptureInvalidated);
  if (!joined) return note(cudaErrorStreamCaptureUnjoined);
  if (whim("captures_fail")) return note(cudaErrorUnknown);
  *graph = new CUgraph_st{r->steps};
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  std::lock_guard const hold(all().lock);
  auto const& r = find(stream)->recorded;
  *status = !r           ? cudaStreamCaptureStatusNone
            : r->spoiled ? cudaStreamCaptureStatusInvalidated
                         : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  if (!executable || !graph) return note(cudaErrorInvalidValue);
  if (whim("graphs_fail")) return note(cudaErrorMemoryAllocation);
  *executable = new CUgraphExec_st{graph->steps};
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t) {
  return executable ? cudaSuccess : note(cudaErrorInvalidValue);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (!executable) return note(cudaErrorInvalidValue);
  return enqueue(stream, [steps = executable->steps] {
    for (work const& each : *steps) each();
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  if (!graph || nodes) return note(cudaErrorInvalidValue);
  *count = graph->steps->size();
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) { return delete executable, cudaSuccess; }
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, cudaSuccess; }
