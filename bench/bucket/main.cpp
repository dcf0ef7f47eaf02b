// SPDX-License-Identifier: Apache-2.0
// Objects of a bucket copied to a disk, by edl and by curl, in turns: as many connections, the same server on
// this machine, the same file system. The server is another process, and serves each connection on a thread
// of its own. What a pair of turns differs by is told as a ratio of bytes a second, and as one of processor
// time, which other programs disturb less.
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include "../serve/load.hpp"
#include "../serve/program_at_work.hpp"
#include "edl/base/bucket/cache.hpp"
#include "edl/base/bucket/signature.hpp"
#include "edl/cli/program.hpp"
#include "edl/compute/data/format/compression.hpp"
#include "edl/core/quantity.hpp"

namespace {

using namespace bench;
using edl::cli::flag, edl::cli::words;
namespace fs = std::filesystem;

/// A bucket "box" of equal objects "set/0" and so on.
struct contents {
  std::int64_t objects = 0;
  std::uint64_t bytes = 0;
  std::string piece, tag, crc;  // `crc`: in base64; empty: the server sends none

  contents(std::int64_t n, std::uint64_t size, std::string const& sums)
      : objects(n), bytes(size), piece(1 << 20, '\0') {
    std::mt19937 drawn(1);
    for (char& c : piece) c = char(drawn());
    tag = "\"0-2\"";  // of an upload in parts
    if (sums == "crc32c") {
      std::uint32_t all = 0;
      for (std::uint64_t at = 0; at < size; at += piece.size())
        all = edl::data::detail::crc32c(std::string_view(piece).substr(0, size - at), all);
      std::string bytes;
      for (int shift = 24; shift >= 0; shift -= 8) bytes += char(all >> shift & 0xff);
      crc = edl::bucket::base64(bytes);
    }
    if (sums != "md5") return;
    std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> const sum(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    EVP_DigestInit_ex(sum.get(), EVP_md5(), nullptr);
    for (std::uint64_t at = 0; at < size; at += piece.size())
      EVP_DigestUpdate(sum.get(), piece.data(), std::min<std::uint64_t>(piece.size(), size - at));
    std::string out(16, '\0');
    EVP_DigestFinal_ex(sum.get(), reinterpret_cast<unsigned char*>(out.data()), nullptr);
    tag = "\"" + edl::bucket::hexadecimal(out) + "\"";
  }

  std::string list() const {
    std::string all = "<ListBucketResult><Name>box</Name><IsTruncated>false</IsTruncated>";
    for (std::int64_t i = 0; i < objects; ++i)
      all +=
          fmt::format("<Contents><Key>set/{}</Key><ETag>{}</ETag><Size>{}</Size></Contents>", i, tag, bytes);
    return all + "</ListBucketResult>";
  }
};

bool send_all(int to, std::string_view text) {
  while (!text.empty()) {
    auto const n = ::send(to, text.data(), text.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    text.remove_prefix(std::size_t(n));
  }
  return true;
}

void serve(int line, contents const& c) {
  std::string in;
  for (char some[8192];;) {
    auto const end = in.find("\r\n\r\n");
    if (end == in.npos) {
      auto const n = ::recv(line, some, sizeof some, 0);
      if (n <= 0) break;
      in.append(some, std::size_t(n));
      continue;
    }
    std::string const head = in.substr(0, end);
    in.erase(0, end + 4);
    if (head.find("list-type=2") != head.npos) {
      std::string const text = c.list();
      if (!send_all(line, fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", text.size(), text)))
        break;
      continue;
    }
    std::uint64_t from = 0, to = c.bytes;
    std::string range = c.crc.empty() ? "" : "x-amz-checksum-crc32c: " + c.crc + "\r\n";
    bool const part = head.find("ange: bytes=") != head.npos;
    if (auto const at = head.find("ange: bytes="); at != head.npos) {
      from = std::strtoull(head.c_str() + at + 12, nullptr, 10);
      to = std::strtoull(head.c_str() + head.find('-', at + 12) + 1, nullptr, 10) + 1;
      range = fmt::format("Content-Range: bytes {}-{}/{}\r\n", from, to - 1, c.bytes);
    }
    bool lives =
        send_all(line, fmt::format("HTTP/1.1 {}\r\nETag: {}\r\n{}Content-Length: {}\r\n\r\n",
                                   part ? "206 Partial Content" : "200 OK", c.tag, range, to - from));
    for (std::uint64_t at = from; lives && at < to;) {
      std::size_t const within = at % c.piece.size();
      auto const n = std::min<std::uint64_t>(c.piece.size() - within, to - at);
      lives = send_all(line, std::string_view(c.piece).substr(within, n));
      at += n;
    }
    if (!lives) break;
  }
  ::close(line);
}

/// Forks the server, and returns its process and port.
std::pair<pid_t, int> start(contents const& c) {
  int const at = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in here{
      .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t size = sizeof here;
  if (at < 0 || ::bind(at, reinterpret_cast<sockaddr*>(&here), size) != 0 || ::listen(at, 128) != 0 ||
      ::getsockname(at, reinterpret_cast<sockaddr*>(&here), &size) != 0)
    throw edl::error("no socket for the server");
  pid_t const id = ::fork();
  if (id == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int line; (line = ::accept(at, nullptr, nullptr)) >= 0;)
      std::thread(serve, line, std::cref(c)).detach();
    ::_exit(0);
  }
  ::close(at);
  return {id, ntohs(here.sin_port)};
}

double seconds_of(int who) {
  rusage used{};
  ::getrusage(who, &used);
  auto const of = [](timeval const& t) { return double(t.tv_sec) + double(t.tv_usec) * 1e-6; };
  return of(used.ru_utime) + of(used.ru_stime);
}

struct turn {
  double seconds = 0, processor = 0;
};

/// `act` runs in a process of its own, which `exec`s or ends.
turn measured(std::function<void()> const& act) {
  double const before = seconds_of(RUSAGE_CHILDREN);
  auto const began = clock_type::now();
  pid_t const id = ::fork();
  if (id == 0) {
    act();
    ::_exit(0);
  }
  int status = 0;
  if (::waitpid(id, &status, 0) != id || status != 0) throw edl::error("a turn has failed");
  return {std::chrono::duration<double>(clock_type::now() - began).count(),
          seconds_of(RUSAGE_CHILDREN) - before};
}

int contest(edl::cli::command_line const& l) {
  contents const c(l.number("objects"), edl::bytes_of(l.text("bytes")), l.text("sums"));
  auto const [server, port] = start(c);
  std::string const own = fmt::format("{}/bench-bucket-{}", l.text("directory"), ::getpid());
  int const connections = int(l.number("connections"));
  auto const by_edl = [&] {
    edl::bucket::cache_options o{.directory = own + "/edl", .connections = connections};
    o.log = edl::logger(edl::severity::critical);
    o.store.find = [port = port] {
      return edl::bucket::account{.who = {"A", "secret"},
                                  .endpoint = fmt::format("http://127.0.0.1:{}", port)};
    };
    edl::bucket::copy_of("s3://box/set/", o);
  };
  auto const by_curl = [&] {
    words line{"curl",
               "-sS",
               "--no-progress-meter",
               "-Z",
               "--parallel-immediate",
               "--parallel-max",
               std::to_string(connections)};
    fs::create_directories(own + "/curl");
    for (std::int64_t i = 0; i < c.objects; ++i) {
      line.push_back(fmt::format("http://127.0.0.1:{}/box/set/{}", port, i));
      line.push_back("-o");
      line.push_back(fmt::format("{}/curl/{}", own, i));
    }
    std::vector<char*> all;
    for (auto& word : line) all.push_back(word.data());
    all.push_back(nullptr);
    ::execvp("curl", all.data());
    ::_exit(127);
  };
  std::vector<double> rates, processor, edls, curls;
  std::mt19937 drawn(std::random_device{}());
  for (std::int64_t pair = 0; pair <= l.number("rounds"); ++pair) {
    turn both[2];
    bool const first = drawn() % 2 == 0;
    for (bool const edl : {first, !first}) {
      both[edl] = edl ? measured(by_edl) : measured(by_curl);
      fs::remove_all(own);
      ::sync();
    }
    if (pair == 0) continue;  // it warms up
    rates.push_back(both[0].seconds / both[1].seconds);
    processor.push_back(both[1].processor / both[0].processor);
    edls.push_back(both[1].seconds), curls.push_back(both[0].seconds);
  }
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  double const all = double(c.objects) * double(c.bytes) * 1e-6;
  fmt::print("{} objects of {} bytes, {} connections, {}: edl {:.0f} MB/s, curl {:.0f} MB/s\n\n", c.objects,
             c.bytes, connections, "sums: " + l.text("sums"), all / quantile(edls, 0.5),
             all / quantile(curls, 0.5));
  fmt::print("| edl beside curl | median | quartiles |\n|---|---|---|\n");
  for (auto const& [what, of] : {std::pair{"bytes a second", &rates}, {"processor time", &processor}})
    fmt::print("| {} | {:.2f} | {:.2f} to {:.2f} |\n", what, quantile(*of, 0.5), quantile(*of, 0.25),
               quantile(*of, 0.75));
  fmt::print("\n{}\n", load_average());
  return 0;
}

std::vector<flag> flags() {
  using enum flag::value_type;
  return {
      {.name = "rounds",
       .fallback = "10",
       .help = "pairs of turns",
       .type = whole,
       .least = 1,
       .most = 10'000},
      {.name = "objects",
       .fallback = "8",
       .help = "of the set",
       .type = whole,
       .least = 1,
       .most = 1'000'000},
      {.name = "bytes", .fallback = "64Mi", .help = "of an object", .type = text},
      {.name = "connections", .fallback = "8", .help = "of each", .type = whole, .least = 1, .most = 64},
      {.name = "sums",
       .fallback = "md5",
       .help =
           "what edl compares and curl does not: the objects' tags are MD5 sums, or the server sends a sum",
       .choices = {"md5", "crc32c", "none"}},
      {.name = "directory",
       .fallback = "/tmp",
       .help = "where the copies go, and are removed",
       .type = text}};
}

}  // namespace

int main(int argc, char** argv) {
  return edl::cli::run_program(
      {.command = "bench-bucket", .flags = flags(), .most = 0},
      "How fast the objects of a bucket are copied to a disk, beside curl, in turns.",
      {argv + 1, argv + argc}, contest);
}
