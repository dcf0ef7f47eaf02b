// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/front.hpp"

#include <arpa/inet.h>
#include <dirent.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "kubernetes/table.hpp"

namespace edl::testing::kubernetes {
namespace {

// Whether the peer of the connection that this thread serves has shown a certificate that the CA has signed.
thread_local bool certified = false;

// A thread for each connection: watches hold theirs for as long as they last.
class threads : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> serve) override {
    std::lock_guard const held(mutex_);
    ++running_;
    std::thread([this, serve = std::move(serve)] {
      serve();
      std::lock_guard const held_too(mutex_);
      --running_;
      idle_.notify_all();
    }).detach();
  }
  void shutdown() override {
    std::unique_lock held(mutex_);
    idle_.wait(held, [this] { return running_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable idle_;
  int running_ = 0;
};

bool secure(SSL_CTX& context, std::string const& directory) {
  auto const file = [&](char const* name) { return directory + "/" + name; };
  SSL_CTX_set_options(&context, SSL_OP_NO_TICKET);  // a resumed session would not show its certificate again
  SSL_CTX_set_session_cache_mode(&context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(&context, SSL_VERIFY_PEER, [](int good, X509_STORE_CTX*) {
    certified = good == 1;
    return good;
  });
  bool const loaded =
      SSL_CTX_use_certificate_file(&context, file("server.crt").c_str(), SSL_FILETYPE_PEM) == 1 &&
      SSL_CTX_use_PrivateKey_file(&context, file("server.key").c_str(), SSL_FILETYPE_PEM) == 1 &&
      SSL_CTX_load_verify_locations(&context, file("ca.crt").c_str(), nullptr) == 1;
  // The library notes what a certificate is when it first asks: here, before several threads do.
  X509_check_purpose(SSL_CTX_get0_certificate(&context), -1, 0);
  auto* const known = X509_STORE_get0_objects(SSL_CTX_get_cert_store(&context));
  for (int i = 0; i < sk_X509_OBJECT_num(known); ++i)
    X509_check_purpose(X509_OBJECT_get0_X509(sk_X509_OBJECT_value(known, i)), -1, 0);
  return loaded;
}

// Ends all connections of this process to that port of its own, whatever they are doing.
void cut_connections(std::uint16_t port) {
  DIR* const all = ::opendir("/proc/self/fd");
  while (dirent const* entry = ::readdir(all)) {
    int const fd = std::atoi(entry->d_name);
    sockaddr_in here{};
    socklen_t size = sizeof here;
    if (fd > 2 && ::getsockname(fd, reinterpret_cast<sockaddr*>(&here), &size) == 0 &&
        here.sin_family == AF_INET && ntohs(here.sin_port) == port)
      ::shutdown(fd, SHUT_RDWR);
  }
  ::closedir(all);
}

void send(httplib::Response& to, answer const& a) {
  to.status = a.code;
  if (a.retry_after) to.set_header("Retry-After", std::to_string(a.retry_after));
  to.set_content(a.body, a.content_type);
}

}  // namespace

front::front(store& s, api& a, options const& o, faults& f, sources from)
    : store_(s), api_(a), options_(o), faults_(f), from_(std::move(from)), port_(o.port), token_(o.token) {}

front::~front() { close(); }

void front::open() {
  if (server_) return;
  server_ =
      options_.tls
          ? std::make_unique<httplib::SSLServer>([this](SSL_CTX& c) { return secure(c, options_.directory); })
          : std::make_unique<httplib::Server>();
  server_->new_task_queue = [] { return new threads; };
  server_->set_tcp_nodelay(true);
  server_->set_keep_alive_max_count(1'000'000);
  server_->set_keep_alive_timeout(300);
  server_->set_payload_max_length(3 << 20);
  server_->set_socket_options([](int s) {
    int const yes = 1;
    ::setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server_->set_pre_routing_handler([](httplib::Request const& r, httplib::Response&) {
    auto& headers = const_cast<httplib::Request&>(r).headers;
    headers.erase("Accept-Encoding");  // compression would hold back the events of a watch
    if (!r.has_header("Content-Length") && !r.has_header("Transfer-Encoding"))
      headers.emplace("Content-Length", "0");  // the library would wait for a body until the peer closes
    return httplib::Server::HandlerResponse::Unhandled;
  });
  auto const take_it = [this](httplib::Request const& r, httplib::Response& to) { take(r, to); };
  server_->Get(".*", take_it)
      .Post(".*", take_it)
      .Put(".*", take_it)
      .Patch(".*", take_it)
      .Delete(".*", take_it);
  int const bound =
      port_ ? server_->bind_to_port("127.0.0.1", port_) ? port_ : -1 : server_->bind_to_any_port("127.0.0.1");
  if (bound <= 0) throw std::runtime_error(fmt::format("cannot listen on 127.0.0.1:{}", port_));
  port_ = std::uint16_t(bound);
  open_ = true;
  thread_ = std::thread([this] { server_->listen_after_bind(); });
  while (!server_->is_running()) std::this_thread::yield();
}

void front::close() {
  if (!server_) return;
  open_ = false;
  store_.wake();
  server_->stop();
  cut_connections(port_);
  thread_.join();
  server_.reset();
}

void front::accept_token(std::string const& token) {
  std::lock_guard const held(token_mutex_);
  token_ = token;
}

std::string front::user(httplib::Request const& r) const {
  if (!r.has_header("Authorization")) return certified ? options_.user : "";
  std::lock_guard const held(token_mutex_);
  std::string const shown = r.get_header_value("Authorization"), own = "Bearer " + token_;
  if (shown == own) return options_.user;
  if (shown.starts_with(own + account_mark)) return "system:serviceaccount:" + shown.substr(own.size() + 1);
  throw refusal{401, failure(401, "Unauthorized", "Unauthorized")};
}

bool front::trip(std::string const& path, httplib::Response& to) {
  std::chrono::milliseconds late(faults_.delay_ms);
  int code = 0, retry_after = 0;
  {
    std::lock_guard const held(faults_.mutex);
    for (faults::on_path& f : faults_.paths) {
      if (path.find(f.path) == path.npos) continue;
      late = std::max(late, f.delay);
      if (f.failures > 0) --f.failures, code = f.code, retry_after = f.retry_after;
    }
    if (code == 0 && faults_.failures > 0)
      --faults_.failures, code = faults_.code, retry_after = faults_.retry_after;
  }
  store_.wait(clock::now() + late, [this] { return !open_; });
  store_.wait(clock::now() + std::chrono::hours(1), [this] { return !faults_.hanging || !open_; });
  if (code == 0) return false;
  std::string const reason = code == 429   ? "TooManyRequests"
                             : code == 503 ? "ServiceUnavailable"
                                           : "InternalError";
  std::string const message = code == 429 ? "too many requests, please try again later"
                                          : "the server is currently unable to handle the request";
  send(to, {code, failure(code, reason, message).dump(), "application/json", retry_after});
  return true;
}

void front::take(httplib::Request const& r, httplib::Response& to) try {
  to.set_header("Cache-Control", "no-cache, private");
  request asked{
      r.method, r.path, r.params, r.body, r.get_header_value("Content-Type"), r.get_header_value("Accept")};
  if (r.path.starts_with("/double/")) return send(to, from_.control(asked));
  if (trip(r.path, to)) return;
  asked.user = user(r);
  response what = api_.handle(asked);
  if (auto* a = std::get_if<answer>(&what)) send(to, *a);
  if (auto* w = std::get_if<watch>(&what)) stream(std::move(*w), to);
  if (auto* l = std::get_if<log_request>(&what)) stream(*l, to);
} catch (refusal const& no) {
  send(to, {no.code, no.body.dump(), "application/json", no.retry_after});
}

void front::stream(watch w, httplib::Response& to) {
  struct state {
    watch w;
    clock::time_point end, bookmark;
    std::uint64_t generation;
  };
  auto const s = std::make_shared<state>(std::move(w), clock::time_point(), clock::time_point(), 0);
  s->end = clock::now() + s->w.timeout;
  s->bookmark = clock::now() + options_.bookmarks;
  s->generation = faults_.watch_generation;
  ++watches_;
  auto const next = [this, s](std::size_t, httplib::DataSink& sink) {
    watch& w = s->w;
    auto const is_over = [&] {
      return !open_ || s->generation != faults_.watch_generation || clock::now() >= s->end;
    };
    // Now and then, whether the peer is still there.
    auto const until = std::min({s->end, s->bookmark, clock::now() + std::chrono::seconds(1)});
    store_.wait(until, [&] {
      return is_over() || (!faults_.hanging && (!w.first.empty() || store_.version() > w.from));
    });
    if (auto const late = std::chrono::milliseconds(faults_.events_late_ms); late.count() > 0)
      store_.wait(clock::now() + late, is_over);
    if (!open_) return false;
    std::string out;
    auto const write = [&](json event) {
      if (w.as_table && event["type"] != "ERROR")
        event["object"] = table(*w.resource, {std::make_shared<json const>(event["object"])});
      out += event.dump() + "\n";
      if (faults_.events_twice && event["type"] != "ERROR" && event["type"] != "BOOKMARK")
        out += event.dump() + "\n";
    };
    auto const bookmark = [&] {
      write({{"type", "BOOKMARK"},
             {"object",
              {{"kind", w.resource->kind},
               {"apiVersion", w.resource->api_version()},
               {"metadata", {{"resourceVersion", std::to_string(w.from)}}}}}});
      s->bookmark = clock::now() + options_.bookmarks;
    };
    bool done = is_over();
    if (!faults_.hanging) {
      auto const held = store_.lock();
      for (json const& event : std::exchange(w.first, {})) write(event);
      if (w.from < store_.oldest()) {
        write(
            {{"type", "ERROR"},
             {"object", expired(fmt::format("too old resource version: {} ({})", w.from, store_.oldest()))}});
        done = true;
      } else {
        for (store::change const& c : store_.since(w.from))
          if (json const event = event_of(w, c); !event.is_null()) write(event);
        w.from = std::max(w.from, store_.version());
        if (w.bookmarks && (done || clock::now() >= s->bookmark)) bookmark();
      }
    }
    if (!out.empty() && !sink.write(out.data(), out.size())) return false;
    if (done) sink.done();
    return sink.is_writable();
  };
  to.set_chunked_content_provider("application/json", next, [this](bool) { --watches_; });
}

namespace {

/// Writes a time before each line.
class line_clock {
 public:
  line_clock(std::string const& begun, std::size_t lines)
      : begun_(begun.substr(0, begun.find('Z'))), line_(lines) {}
  std::string operator()(std::string const& text) {
    if (begun_.empty()) return text;
    std::string out;
    for (char const c : text) {
      if (std::exchange(at_start_, c == '\n')) out += fmt::format("{}.{:09}Z ", begun_, line_++);
      out += c;
    }
    return out;
  }

 private:
  std::string begun_;
  std::size_t line_;
  bool at_start_ = true;
};

}  // namespace

void front::stream(log_request const& l, httplib::Response& to) {
  std::string const path = from_.log_file(l);
  std::ifstream in(path, std::ios::binary);
  std::string const all((std::istreambuf_iterator<char>(in)), {});
  std::string text = all;
  if (l.tail) {
    std::size_t at = text.size(), lines = 0;
    while (at > 0 && (lines < *l.tail || text[at - 1] != '\n' || at == text.size()))
      if (text[--at] == '\n' && at + 1 < text.size() && ++lines == *l.tail) {
        ++at;
        break;
      }
    text = *l.tail ? text.substr(at) : "";
  }
  line_clock stamped(l.begun,
                     std::size_t(std::count(all.begin(), all.end() - std::ptrdiff_t(text.size()), '\n')));
  if (!l.follow) return to.set_content(stamped(text), "text/plain");
  auto const next = [this, path, first = text, at = all.size(), stamped](std::size_t,
                                                                         httplib::DataSink& sink) mutable {
    bool const ended = !from_.still_written(path);  // asked before the last look
    std::ifstream file(path, std::ios::binary);
    file.seekg(std::streamoff(at));
    std::string const more((std::istreambuf_iterator<char>(file)), {});
    at += more.size();
    std::string const out = stamped(std::exchange(first, "") + more);
    if (!open_ || (!out.empty() && !sink.write(out.data(), out.size()))) return false;
    if (ended)
      sink.done();
    else if (out.empty())
      store_.wait(clock::now() + std::chrono::milliseconds(50), [this] { return !open_; });
    return sink.is_writable();
  };
  to.set_chunked_content_provider("text/plain", next);
}

}  // namespace edl::testing::kubernetes
