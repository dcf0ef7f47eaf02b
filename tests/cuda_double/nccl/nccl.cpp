// SPDX-License-Identifier: Apache-2.0
// A double of NCCL, as a library that is opened in its place: the few functions that edl calls, between
// threads and between processes of one machine. Members meet in a directory that the unique id names; what
// they bring to a sum are files there. As strict as NCCL, or stricter: misuse ends the program.
#include "edl/compute/device/cuda/library/nccl.hpp"

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device.hpp"

namespace fs = std::filesystem;
using namespace edl::cuda_library;

namespace {

[[noreturn]] void misuse(std::string const& what) { edl::cuda_double::fail("NCCL: " + what); }

/// A file is there as a whole, or not at all.
void publish(fs::path const& path, void const* data, std::size_t size) {
  fs::path const temporary = path.string() + ".new";
  std::ofstream(temporary, std::ios::binary).write(static_cast<char const*>(data), std::streamsize(size));
  std::error_code gone;  // with the directory, by a member that has left
  fs::rename(temporary, path, gone);
}

/// What the members of a communicator share, and who this one is.
struct member {
  fs::path where;
  int size = 0, rank = 0;
  std::uint64_t sums = 0;             // called for
  std::atomic<bool> aborted = false;  // seen by work that is still in a stream

  fs::path file(std::string const& what, int of) const { return where / (what + "-" + std::to_string(of)); }

  bool all_have(std::string const& what) const {
    for (int r = 0; r < size; ++r)
      if (!fs::exists(file(what, r))) return false;
    return true;
  }
};

/// One member's part in one sum.
struct part {
  std::shared_ptr<member> of;
  std::uint64_t number;
  float const* from;
  float* to;
  std::size_t count;
  bool begun = false;

  bool go_on() {
    if (of->aborted) return true;
    std::string const name = "sum-" + std::to_string(number);
    if (!begun) publish(of->file(name, of->rank), from, count * sizeof(float));
    begun = true;
    if (!of->all_have(name)) return false;
    std::vector<float> one(count);
    for (int r = 0; r < of->size; ++r) {
      std::error_code gone;
      auto const size = fs::file_size(of->file(name, r), gone);
      if (gone) return false;  // with who has drawn the place, and ended
      if (size != count * sizeof(float)) misuse("members' sums are not of as many numbers");
      std::ifstream(of->file(name, r), std::ios::binary)
          .read(reinterpret_cast<char*>(one.data()), std::streamsize(count * sizeof(float)));
      for (std::size_t i = 0; i < count; ++i) to[i] = r == 0 ? one[i] : to[i] + one[i];
    }
    // Who has begun this one has the one before.
    std::error_code gone;
    if (number > 0) fs::remove(of->file("sum-" + std::to_string(number - 1), of->rank), gone);
    return true;
  }
};

/// Places that this process has drawn: what members who were killed have left there goes with it.
struct places {
  std::mutex lock;
  std::vector<std::string> drawn;
  ~places() {
    std::error_code gone;
    for (std::string const& each : drawn) fs::remove_all(each, gone);
  }
};
places all_places;

}  // namespace

struct ncclComm {
  std::shared_ptr<member> self;
  bool joined = false;
  std::shared_ptr<part> called;  // not with the stream yet
  cudaStream_t stream = nullptr;
};

extern "C" {

__attribute__((visibility("default"))) int ncclGetVersion(int* version) {
  return *version = 22803, nccl::success;
}

__attribute__((visibility("default"))) char const* ncclGetErrorString(int result) {
  return result == nccl::success ? "no error" : "an error of the double of NCCL";
}

__attribute__((visibility("default"))) int ncclGetUniqueId(nccl::unique_id* id) {
  std::string name = (fs::temp_directory_path() / "edl-nccl-XXXXXX").string();
  if (!mkdtemp(name.data()) || name.size() >= sizeof(id->internal)) return 2;
  std::lock_guard const hold(all_places.lock);
  all_places.drawn.push_back(name);
  *id = {};
  std::memcpy(id->internal, name.data(), name.size());
  return nccl::success;
}

/// EDL_NCCL_DOUBLE=refuses in the environment: nobody can be joined.
__attribute__((visibility("default"))) int ncclCommInitRankConfig(ncclComm** comm, int size,
                                                                  nccl::unique_id id, int rank,
                                                                  nccl::config* config) {
  if (!config || config->magic != 0xcafebeef || config->blocking != 0) misuse("a communicator that blocks");
  if (rank < 0 || rank >= size) return 4;
  char const* const how = std::getenv("EDL_NCCL_DOUBLE");
  if (how && std::string(how) == "refuses") return 2;
  auto const self = std::make_shared<member>();
  self->where = id.internal;
  self->size = size;
  self->rank = rank;
  if (fs::exists(self->file("join", rank))) misuse("two members of one rank");
  publish(self->file("join", rank), &size, sizeof(size));
  *comm = new ncclComm{self, false, nullptr, nullptr};
  return nccl::in_progress;
}

__attribute__((visibility("default"))) int ncclCommGetAsyncError(ncclComm* comm, int* state) {
  *state = nccl::success;
  if (!comm->joined) {
    comm->joined = comm->self->all_have("join");
    if (!comm->joined) *state = nccl::in_progress;
  } else if (comm->called) {
    // Only now: what was put behind it before comes before it.
    edl::cuda_double::enqueue_attempt(comm->stream, [p = comm->called] { return p->go_on(); });
    comm->called = nullptr;
  }
  return nccl::success;
}

__attribute__((visibility("default"))) int ncclAllReduce(void const* from, void* to, std::size_t count,
                                                         int type, int operation, ncclComm* comm,
                                                         cudaStream_t stream) {
  if (!comm->joined || comm->called) misuse("a call while the one before is in progress");
  if (type != nccl::float32 || operation != nccl::sum) misuse("what this double does not sum");
  if (count == 0 || !edl::cuda_double::on_device(from, count * sizeof(float)) ||
      !edl::cuda_double::on_device(to, count * sizeof(float)))
    misuse("a sum of what is not on the GPU");
  comm->called = std::make_shared<part>(
      part{comm->self, comm->self->sums++, static_cast<float const*>(from), static_cast<float*>(to), count});
  comm->stream = stream;
  return nccl::in_progress;
}

__attribute__((visibility("default"))) int ncclCommAbort(ncclComm* comm) {
  member& self = *comm->self;
  self.aborted = true;
  std::error_code ignored;
  publish(self.file("left", self.rank), &self.rank, sizeof(self.rank));
  if (self.all_have("left")) fs::remove_all(self.where, ignored);
  delete comm;
  return nccl::success;
}

}  // extern "C"
