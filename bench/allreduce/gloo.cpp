// SPDX-License-Identifier: Apache-2.0
// Gloo over TCP, each of its algorithms.
#include <gloo/allreduce.h>
#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>

#include "contestant.hpp"

namespace bench {
namespace {

using context = std::shared_ptr<gloo::rendezvous::Context>;

// Where its members meet before they are linked; removed by who made it.
struct folder {
  std::string path = std::filesystem::temp_directory_path() / "bench-allreduce-XXXXXX";
  pid_t maker = ::getpid();
  folder() {
    if (!::mkdtemp(path.data())) std::abort();
  }
  ~folder() {
    if (::getpid() == maker) std::filesystem::remove_all(path);
  }
};

context meet(folder const& where, int rank, int size) {
  auto store = gloo::rendezvous::FileStore(where.path);
  gloo::transport::tcp::attr at;
  at.hostname = "127.0.0.1";
  auto device = gloo::transport::tcp::CreateDevice(at);
  auto const c = std::make_shared<gloo::rendezvous::Context>(rank, size);
  c->connectFullMesh(store, device);
  return c;
}

ready newer(context const& c, gloo::AllreduceOptions::Algorithm algorithm, std::span<float> values) {
  auto const o = std::make_shared<gloo::AllreduceOptions>(c);
  o->setAlgorithm(algorithm);
  o->setOutput(values.data(), values.size());
  o->setReduceFunction(
      static_cast<void (*)(void*, void const*, void const*, std::size_t)>(&gloo::sum<float>));
  return [o] { gloo::allreduce(*o); };
}

template <class Algorithm>
ready older(context const& c, std::span<float> values) {
  auto const a = std::make_shared<Algorithm>(c, std::vector<float*>{values.data()}, int(values.size()));
  return [a] { a->run(); };
}

}  // namespace

std::vector<contestant> gloo(int size) {
  using ::gloo::AllreduceOptions;
  struct way {
    char const* name;
    std::function<ready(context const&, std::span<float>)> make;
  };
  std::vector<contestant> all;
  for (way const &w : {
           way{"ring", [](auto const& c, auto v) { return newer(c, AllreduceOptions::Algorithm::RING, v); }},
           way{"bcube",
               [](auto const& c, auto v) { return newer(c, AllreduceOptions::Algorithm::BCUBE, v); }},
           way{"AllreduceRing", older<::gloo::AllreduceRing<float>>},
           way{"AllreduceRingChunked", older<::gloo::AllreduceRingChunked<float>>},
           way{"AllreduceHalvingDoubling", older<::gloo::AllreduceHalvingDoubling<float>>},
           way{"AllreduceBcube", older<::gloo::AllreduceBcube<float>>},
       }) {
    auto const where = std::make_shared<folder>();
    all.push_back({"Gloo", w.name, "TCP", true, [=](int rank) -> member {
                     auto const c = meet(*where, rank, size);
                     return [=, make = w.make](std::span<float> values) { return make(c, values); };
                   }});
  }
  return all;
}

}  // namespace bench
