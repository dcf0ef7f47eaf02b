// SPDX-License-Identifier: Apache-2.0
// bench-serve PORT MODEL INPUT VALUES [SECONDS]: asks a server of the Open Inference Protocol on this
// machine, with tensors of FP32 as bytes. First one request at a time. Then `depth` records at a time in
// flight, alone and several to a request. Beside them an echo of as many bytes over the same kind of socket,
// in this process.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <asio/connect.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using tcp = asio::ip::tcp;
using clock_type = std::chrono::steady_clock;

std::string request_of(std::string const& model, std::string const& input, std::size_t rows,
                       std::size_t values) {
  std::string const head = fmt::format(
      R"({{"inputs":[{{"name":"{}","shape":[{},{}],"datatype":"FP32","parameters":{{"binary_data_size":{}}}}}],)"
      R"("parameters":{{"binary_data_output":true}}}})",
      input, rows, values, rows * values * 4);
  std::vector<float> const data(rows * values, 0.25f);
  std::string body = head + std::string(reinterpret_cast<char const*>(data.data()), data.size() * 4);
  return fmt::format(
             "POST /v2/models/{}/infer HTTP/1.1\r\nHost: localhost\r\nInference-Header-Content-Length: {}\r\n"
             "Content-Length: {}\r\n\r\n",
             model, head.size(), body.size()) +
         body;
}

struct client {
  explicit client(std::uint16_t port) : socket(io) {
    socket.connect({asio::ip::address_v4::loopback(), port});
    socket.set_option(tcp::no_delay(true));
  }
  void ask(std::string const& request) { asio::write(socket, asio::buffer(request)); }
  void answer() {
    for (;;) {
      auto const end = buffer.find("\r\n\r\n");
      if (end != buffer.npos) {
        if (!buffer.starts_with("HTTP/1.1 200")) throw std::runtime_error(buffer.substr(0, 400));
        auto const size = std::stoul(buffer.substr(buffer.find("Content-Length: ") + 16));
        if (buffer.size() >= end + 4 + size) {
          buffer.erase(0, end + 4 + size);
          return;
        }
      }
      std::array<char, 65536> some;
      buffer.append(some.data(), socket.read_some(asio::buffer(some)));
    }
  }
  asio::io_context io;
  tcp::socket socket;
  std::string buffer;
};

struct times {
  double p50, p99;
};
times quantiles(std::vector<double>& all) {
  std::sort(all.begin(), all.end());
  return {all[all.size() / 2], all[all.size() * 99 / 100]};
}

template <class Act>
times measure(double seconds, Act&& act) {
  for (int i = 0; i < 200; ++i) act();
  std::vector<double> all;
  for (auto const end = clock_type::now() + std::chrono::duration<double>(seconds);
       clock_type::now() < end;) {
    auto const began = clock_type::now();
    act();
    all.push_back(std::chrono::duration<double, std::milli>(clock_type::now() - began).count());
  }
  return quantiles(all);
}

double rate(std::uint16_t port, std::string const& request, std::size_t rows, int connections,
            double seconds) {
  std::vector<std::unique_ptr<client>> all;
  for (int i = 0; i < connections; ++i) all.push_back(std::make_unique<client>(port));
  for (auto& c : all) c->ask(request);
  std::size_t done = 0;
  auto const began = clock_type::now(), end = began + std::chrono::duration_cast<clock_type::duration>(
                                                          std::chrono::duration<double>(seconds));
  while (clock_type::now() < end)
    for (auto& c : all) {
      c->answer();
      c->ask(request);
      done += rows;
    }
  double const took = std::chrono::duration<double>(clock_type::now() - began).count();
  for (auto& c : all) c->answer();
  return double(done) / took;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 5) throw std::runtime_error("usage: bench-serve PORT MODEL INPUT VALUES [SECONDS]");
  auto const port = std::uint16_t(std::stoi(argv[1]));
  std::size_t const values = std::stoul(argv[4]);
  double const seconds = argc > 5 ? std::stod(argv[5]) : 3;
  std::string const one = request_of(argv[2], argv[3], 1, values);

  asio::io_context io;
  tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
  std::thread echo([&] {
    tcp::socket s = acceptor.accept();
    s.set_option(tcp::no_delay(true));
    std::string bytes(one.size(), '\0');
    asio::error_code failed;
    while (asio::read(s, asio::buffer(bytes), failed), !failed)
      asio::write(s, asio::buffer(bytes.data(), 300), failed);
  });
  times bare{}, ours{};
  {
    client c(acceptor.local_endpoint().port());
    std::array<char, 300> back;
    bare = measure(seconds, [&] {
      c.ask(one);
      asio::read(c.socket, asio::buffer(back));
    });
  }
  echo.join();
  {
    client c(port);
    ours = measure(seconds, [&] {
      c.ask(one);
      c.answer();
    });
  }
  fmt::print(
      "one at a time, ms: bare sockets p50 {:.3f} p99 {:.3f}; serve p50 {:.3f} p99 {:.3f}; ratio {:.2f}, "
      "{:.2f}\n",
      bare.p50, bare.p99, ours.p50, ours.p99, ours.p50 / bare.p50, ours.p99 / bare.p99);
  fmt::print(
      "records a second: 32 connections, 1 in a request: {:.0f}; 8 connections, 64 in a request: {:.0f}\n",
      rate(port, one, 1, 32, seconds), rate(port, request_of(argv[2], argv[3], 64, values), 64, 8, seconds));
} catch (std::exception const& e) {
  fmt::print(stderr, "bench-serve: {}\n", e.what());
  return 1;
}
