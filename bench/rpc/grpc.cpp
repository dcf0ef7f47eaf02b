// SPDX-License-Identifier: Apache-2.0
// The peer: gRPC's callback server and its synchronous client, tensors as one bytes field.
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>

#include "calls.grpc.pb.h"
#include "contestant.hpp"

namespace bench {
namespace {

using namespace edl::bench;

class service final : public Calls::CallbackService {
 public:
  grpc::ServerUnaryReactor* Ping(grpc::CallbackServerContext* c, Small const* in, Small* out) override {
    out->set_text(in->text());
    return over(c);
  }
  grpc::ServerUnaryReactor* Push(grpc::CallbackServerContext* c, Large const*, Small*) override {
    return over(c);
  }
  grpc::ServerUnaryReactor* Pull(grpc::CallbackServerContext* c, Size const* in, Large* out) override {
    out->set_content(arena_.data(), in->bytes());
    return over(c);
  }

 private:
  static grpc::ServerUnaryReactor* over(grpc::CallbackServerContext* c) {
    auto* const r = c->DefaultReactor();
    r->Finish(grpc::Status::OK);
    return r;
  }
  std::string arena_ = std::string(largest, 'x');
};

void serve(bool tcp, std::string const& path, std::function<void(std::string const&)> const& listening) {
  service s;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(tcp ? "127.0.0.1:0" : "unix-abstract:" + path, grpc::InsecureServerCredentials(),
                           &port);
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetMaxSendMessageSize(-1);
  builder.RegisterService(&s);
  auto const server = builder.BuildAndStart();
  listening(tcp ? "127.0.0.1:" + std::to_string(port) : "unix-abstract:" + path);
  server->Wait();
}

void must(grpc::Status const& s) {
  if (s.ok()) return;
  std::fprintf(stderr, "gRPC: %s\n", s.error_message().c_str());
  std::_Exit(1);
}

std::vector<double> calls_per_second(Calls::Stub& stub) {
  struct one {
    std::unique_ptr<grpc::ClientContext> context;
    Small in, out;
  };
  std::vector<one> all(16);
  std::atomic<bool> over = false;
  std::atomic<long> done = 0, running = 16;
  std::function<void(one&)> const go = [&](one& c) {
    c.context = std::make_unique<grpc::ClientContext>();
    stub.async()->Ping(c.context.get(), &c.in, &c.out, [&](grpc::Status const& s) {
      must(s);
      ++done;
      if (over)
        --running;
      else
        go(c);
    });
  };
  auto const begin = std::chrono::steady_clock::now();
  for (auto& c : all) {
    c.in.set_text(std::string(small_bytes, 'x'));
    go(c);
  }
  ::usleep(400'000);
  double const rate =
      double(done) / std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  over = true;
  while (running > 0) std::this_thread::yield();
  return {rate};
}

std::vector<double> measure(std::string const& where, load l) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  auto const channel = grpc::CreateCustomChannel(where, grpc::InsecureChannelCredentials(), arguments);
  channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10));
  auto const stub = Calls::NewStub(channel);
  if (l == load::in_flight_16) return calls_per_second(*stub);
  Small small, answer;
  small.set_text(std::string(small_bytes, 'x'));
  Size size;
  size.set_bytes(bytes_of(l));
  // The client's variables and gradients, which the others send and receive in place.
  std::string arena(bytes_of(l), 'x');
  return timed(l, [&] {
    grpc::ClientContext c;
    if (bytes_of(l) == 0) {
      must(stub->Ping(&c, small, &answer));
    } else if (pushes(l)) {
      Large large;
      large.set_content(arena.data(), arena.size());
      must(stub->Push(&c, large, &answer));
    } else {
      Large large;
      must(stub->Pull(&c, size, &large));
      std::copy(large.content().begin(), large.content().end(), arena.begin());
    }
  });
}

}  // namespace

std::vector<contestant> grpc() {
  std::vector<contestant> all;
  for (bool const tcp : {true, false})
    all.push_back({"gRPC", tcp ? "TCP" : "Unix",
                   [tcp, path = "edl-bench-grpc-" + std::to_string(::getpid())](auto const& listening) {
                     serve(tcp, path, listening);
                   },
                   measure});
  return all;
}

}  // namespace bench
