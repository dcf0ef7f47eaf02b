// SPDX-License-Identifier: Apache-2.0
// What becomes of a job when answers of the master are lost with their connections.
#include <array>
#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "app/tiny_job.hpp"
#include "edl/wire/frame.hpp"
#include "edl/wire/method.hpp"

namespace lost_replies_test {

using namespace tiny;

namespace {

using asio::ip::tcp;

/// Stands between the members of a job and its master. Of each method it loses the first answer, and the
/// connection that the answer came on.
class lossy_proxy {
 public:
  explicit lossy_proxy(tcp::endpoint master)
      : master_(std::move(master)), acceptor_(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {
    accepts_ = std::thread([this] { accept(); });
  }
  ~lossy_proxy() {
    asio::error_code ignored;
    closing_ = true;
    tcp::socket(io_).connect(acceptor_.local_endpoint(), ignored);  // it waits for one
    accepts_.join();
    for (auto& one : connections_) {
      one.close();
      one.there.join();
      one.back.join();
    }
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()); }
  std::set<std::uint16_t> lost() {
    std::lock_guard const guard(lock_);
    return lost_;
  }

 private:
  struct connection {
    explicit connection(asio::io_context& io) : member(io), master(io) {}
    void close() {
      for (tcp::socket* s : {&member, &master}) ::shutdown(s->native_handle(), SHUT_RDWR);
    }
    tcp::socket member, master;
    std::map<std::uint64_t, std::uint16_t> methods;  // by call; under the lock
    std::thread there, back;
  };

  void accept() {
    for (;;) {
      auto& c = connections_.emplace_back(io_);
      asio::error_code failed;
      acceptor_.accept(c.member);
      c.master.connect(master_, failed);
      if (failed || closing_) c.close();
      c.there = std::thread([this, &c] { pass(c, c.member, c.master); });
      c.back = std::thread([this, &c] { pass(c, c.master, c.member); });
      if (closing_) return;
    }
  }

  void pass(connection& c, tcp::socket& from, tcp::socket& to) {
    std::vector<std::byte> frame;
    asio::error_code failed;
    while (!failed) {
      frame.resize(edl::wire::frame_header_size);
      if (asio::read(from, asio::buffer(frame), failed); failed) break;
      auto const h = edl::wire::decode(std::span(frame).first<edl::wire::frame_header_size>());
      std::size_t const head = frame.size();
      frame.resize(head + h.message_size + edl::wire::frame_padding(h) + h.payload_size);
      asio::read(from, asio::buffer(frame.data() + head, frame.size() - head), failed);
      if (failed || loses(c, h)) break;
      asio::write(to, asio::buffer(frame), failed);
    }
    c.close();
  }

  bool loses(connection& c, edl::wire::frame_header const& h) {
    std::lock_guard const guard(lock_);
    if (h.kind == edl::wire::frame_kind::request) c.methods[h.call] = h.method;
    return h.kind == edl::wire::frame_kind::response && lost_.insert(c.methods.at(h.call)).second;
  }

  tcp::endpoint master_;
  asio::io_context io_;
  tcp::acceptor acceptor_;
  std::atomic<bool> closing_{false};
  std::list<connection> connections_;
  std::mutex lock_;
  std::set<std::uint16_t> lost_;
  std::thread accepts_;
};

}  // namespace

TEST_CASE("each answer of the master may be lost once: every record counts once all the same") {
  namespace method = edl::wire::method;
  for (bool const servers : {true, false}) {
    CAPTURE(servers);
    job::scratch const dir;
    lines const flags{"--num_epochs=2", "--transport_security=none",
                      "--validation_data=" + job::data().validation, "--evaluation_steps=16",
                      "--checkpoint_dir=" + dir / "checkpoints"};
    auto const command = servers ? cluster(1, 2, flags) : replicas(2, flags);
    auto const role = [&](job::environment more) {
      more.insert(more.end(),
                  {{"EDL_JOB_NAME", "lossy"}, {"EDL_JOB_TOKEN", "0123456789abcdef0123456789abcdef"}});
      return std::make_unique<job::run>(command, job::options{.env = more});
    };
    auto const master = role({{"EDL_ROLE", "master"}});
    REQUIRE(master->says("listens at "));
    std::string log = master->log();
    std::string const where = log.substr(log.find("tcp:", log.find("listens at ")) + 4);
    lossy_proxy proxy(
        {asio::ip::address_v4::loopback(), std::uint16_t(std::stoi(where.substr(where.find(':') + 1)))});
    std::vector<std::unique_ptr<job::run>> members;
    if (servers)
      members.push_back(role({{"EDL_ROLE", "ps"}, {"PS_ID", "0"}, {"MASTER_ADDR", proxy.address()}}));
    for (char const* id : {"0", "1"})
      members.push_back(role({{"EDL_ROLE", "worker"}, {"WORKER_ID", id}, {"MASTER_ADDR", proxy.address()}}));
    CHECK(master->wait() == 0);
    log = master->log();
    CAPTURE(log);
    check_account(log, 2);
    check_ledgers(dir / "checkpoints", 2);
    auto const lost = proxy.lost();
    for (std::uint16_t const m : {method::join, method::heartbeat, method::task, method::report,
                                  method::version, servers ? method::cluster : method::enter})
      CHECK_MESSAGE(lost.contains(m), "method ", m);
    for (auto const& m : members) {
      INFO(m->log());
      CHECK(m->wait() == 0);
    }
  }
}

}  // namespace lost_replies_test
