// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <asio/ip/tcp.hpp>
#include <asio/write.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

using tcp = asio::ip::tcp;
using clock_type = std::chrono::steady_clock;

/// A client that waits in its socket.
class client {
 public:
  explicit client(std::uint16_t port) : socket_(io_) {
    socket_.connect({asio::ip::address_v4::loopback(), port});
    socket_.set_option(tcp::no_delay(true));
  }
  void ask(std::string_view request) { asio::write(socket_, asio::buffer(request)); }

  /// The head of an answer, whose body is read, too.
  std::string answer() {
    for (;;) {
      auto const end = buffer_.find("\r\n\r\n");
      if (end != buffer_.npos) {
        auto const size = std::stoul(buffer_.substr(buffer_.find("Content-Length: ") + 16, 12));
        if (buffer_.size() >= end + 4 + size) {
          std::string head = buffer_.substr(0, end);
          buffer_.erase(0, end + 4 + size);
          return head;
        }
      }
      buffer_.append(some_.data(), socket_.read_some(asio::buffer(some_)));
    }
  }
  void good_answer() {
    if (std::string const head = answer(); !head.starts_with("HTTP/1.1 200")) throw std::runtime_error(head);
  }
  tcp::socket& socket() { return socket_; }

 private:
  asio::io_context io_;
  tcp::socket socket_;
  std::string buffer_;
  std::array<char, 65536> some_;
};

inline std::string post(std::string const& path, std::string const& fields, std::string const& body) {
  return fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\n{}Content-Length: {}\r\n\r\n{}", path, fields,
                     body.size(), body);
}

inline std::string bytes_of(std::size_t values) {
  std::vector<float> const data(values, 0.25f);
  return {reinterpret_cast<char const*>(data.data()), data.size() * sizeof(float)};
}

/// Of the Open Inference Protocol, with tensors as bytes.
inline std::string inference(std::string const& model, std::size_t rows, std::size_t values) {
  std::string const head = fmt::format(
      R"({{"inputs":[{{"name":"image","shape":[{},{}],"datatype":"FP32","parameters":{{"binary_data_size":{}}}}}],)"
      R"("parameters":{{"binary_data_output":true}}}})",
      rows, values, rows * values * sizeof(float));
  return post("/v2/models/" + model + "/infer",
              fmt::format("Inference-Header-Content-Length: {}\r\n", head.size()),
              head + bytes_of(rows * values));
}

/// Of TensorFlow Serving, a record of digits as a picture has them.
inline std::string instances(std::string const& path, std::size_t values) {
  std::string body = "{\"instances\":[[";
  for (std::size_t i = 0; i < values; ++i)
    body += fmt::format("{}{:.4g}", i ? "," : "", double(i % 256) / 255);
  return post(path, "Content-Type: application/json\r\n", body + "]]}");
}

inline double milliseconds_since(clock_type::time_point t) {
  return std::chrono::duration<double, std::milli>(clock_type::now() - t).count();
}

/// Asks one at a time for so many milliseconds; what each took is appended.
inline void one_at_a_time(std::function<void()> const& act, double for_ms, std::vector<double>& times) {
  for (auto const since = clock_type::now(); milliseconds_since(since) < for_ms;) {
    auto const began = clock_type::now();
    act();
    times.push_back(milliseconds_since(began));
  }
}

/// Records a second of a server that so many clients ask at once.
inline double rate(std::uint16_t port, std::string const& request, std::size_t rows, int clients,
                   double for_ms) {
  std::vector<std::unique_ptr<client>> all;
  for (int i = 0; i < clients; ++i) all.push_back(std::make_unique<client>(port));
  for (auto& c : all) c->ask(request);
  std::size_t done = 0;
  auto const began = clock_type::now();
  while (milliseconds_since(began) < for_ms)
    for (auto& c : all) {
      c->good_answer();
      c->ask(request);
      done += rows;
    }
  double const took = milliseconds_since(began);
  for (auto& c : all) c->good_answer();
  return double(done) / took * 1e3;
}

inline double quantile(std::vector<double> all, double q) {
  std::ranges::sort(all);
  return all.empty() ? 0 : all[std::min(all.size() - 1, std::size_t(q * double(all.size())))];
}

}  // namespace bench
