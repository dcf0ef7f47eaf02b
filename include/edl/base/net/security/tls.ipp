// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/error.hpp>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "edl/base/net/security/openssl.hpp"
#include "edl/base/net/security/tls.hpp"
#include "edl/base/net/security/token.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::net {

namespace detail {

// The identity of the pre-shared key. The key itself, and the proofs that follow, identify the job.
inline constexpr std::string_view psk_identity = "edl 2";
inline constexpr unsigned char psk_context[] = {'e', 'd',
                                                'l'};        // OpenSSL asks for one where peers are verified
inline constexpr std::size_t record_size = 16u << 10;        // bytes of plain text, RFC 8446 §5.1
inline constexpr std::size_t read_ahead = 4 * record_size;   // taken from the socket at once
inline constexpr std::size_t small_piece = record_size / 2;  // below: copied together into one record
// A few records per send cost few system calls, and the peer decrypts them while the next are encrypted.
inline constexpr std::size_t sent_at_once = 64u << 10;
// Bytes written in one call, so that other connections get a turn: an all-reduce reads what has arrived
// between two calls.
inline constexpr std::size_t write_turn = 64u << 10;
inline constexpr std::size_t read_turn = 1u << 20;
// Both sides' handshakes take less than 1 KiB; an unauthenticated peer gets no more memory than this.
inline constexpr std::size_t handshake_size = 16u << 10;
// A key may encrypt 2^24.5 full records (RFC 8446 §5.5): 2^22 leave room for small records that OpenSSL adds.
inline constexpr std::uint64_t records_per_key = 1u << 22;

struct tls_key {
  std::array<unsigned char, 32> bytes{};
  ~tls_key() { OPENSSL_cleanse(bytes.data(), bytes.size()); }
};

inline int tls_key_index() {
  static int const index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

// TLS_AES_128_GCM_SHA256 only determines the hash for the key; the negotiated cipher may be another with that
// hash.
inline SSL_SESSION* psk_session(SSL* ssl) {
  auto const* const key =
      static_cast<tls_key const*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), tls_key_index()));
  static constexpr unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
  SSL_CIPHER const* const cipher = SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
  openssl_ptr<SSL_SESSION, SSL_SESSION_free> session(SSL_SESSION_new());
  if (!key || !cipher || !session ||
      SSL_SESSION_set1_master_key(session.get(), key->bytes.data(), key->bytes.size()) != 1 ||
      SSL_SESSION_set_cipher(session.get(), cipher) != 1 ||
      SSL_SESSION_set1_id_context(session.get(), psk_context, sizeof psk_context) != 1 ||
      SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) != 1)
    return nullptr;
  return session.release();
}

inline int offer_psk(SSL* ssl, EVP_MD const* hash, unsigned char const** id, std::size_t* size,
                     SSL_SESSION** session) {
  *session = nullptr;
  *id = reinterpret_cast<unsigned char const*>(psk_identity.data());
  *size = psk_identity.size();
  if (hash && EVP_MD_get_type(hash) != NID_sha256) return 1;  // no key for this hash
  *session = psk_session(ssl);
  return *session != nullptr;
}

inline int find_psk(SSL* ssl, unsigned char const* id, std::size_t size, SSL_SESSION** session) {
  *session = nullptr;
  if (size != psk_identity.size() || std::memcmp(id, psk_identity.data(), size) != 0) return 1;
  *session = psk_session(ssl);
  return *session != nullptr;
}

inline constexpr std::size_t unlimited = SIZE_MAX;

// The socket as OpenSSL's engine sees it. Consecutive records are sent together. They wait here while the
// socket accepts none, so that a record is never half accepted.
struct tls_wire {
  int socket = -1;
  bool more = false;     // another record follows at once
  bool blocked = false;  // the socket accepted only a part
  std::vector<unsigned char> waiting;
  std::size_t sent = 0;
  std::size_t allowed = handshake_size;  // bytes that the peer may still send
  int failed = 0;                        // errno

  // Sends the bytes, and returns how many the socket accepted.
  std::size_t send(unsigned char const* data, std::size_t size) {
    std::size_t done = 0;
    blocked = false;
    while (done < size && !blocked && failed == 0) {
      ssize_t const n =
          ::send(socket, data + done, size - done, MSG_DONTWAIT | MSG_NOSIGNAL | (more ? MSG_MORE : 0));
      if (n >= 0)
        done += std::size_t(n);
      else if (errno == EAGAIN || errno == EWOULDBLOCK)
        blocked = true;
      else if (errno != EINTR)
        failed = errno;
    }
    return done;
  }
  bool empty() const { return sent == waiting.size(); }
  void drain() {
    sent += send(waiting.data() + sent, waiting.size() - sent);
    if (!empty()) return;
    waiting.clear();
    sent = 0;
  }
};

inline int write_wire(BIO* bio, char const* data, std::size_t size, std::size_t* taken) {
  auto& wire = *static_cast<tls_wire*>(BIO_get_data(bio));
  auto const* const bytes = reinterpret_cast<unsigned char const*>(data);
  std::size_t const done = wire.empty() && !wire.more ? wire.send(bytes, size) : 0;
  wire.waiting.insert(wire.waiting.end(), bytes + done, bytes + size);
  if (!wire.blocked && (!wire.more || wire.waiting.size() >= sent_at_once)) wire.drain();
  *taken = size;
  return wire.failed == 0;
}

inline int read_wire(BIO* bio, char* data, std::size_t size, std::size_t* got) {
  auto& wire = *static_cast<tls_wire*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  *got = 0;
  if (wire.allowed == 0) return 0;
  ssize_t const n = ::recv(wire.socket, data, std::min(size, wire.allowed), MSG_DONTWAIT);
  *got = n > 0 ? std::size_t(n) : 0;
  if (wire.allowed != unlimited) wire.allowed -= *got;
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_read(bio);
  return n > 0;
}

inline long control_wire(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH; }

inline BIO_METHOD* make_wire_method() {
  BIO_METHOD* const m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "edl");
  if (!m) return nullptr;
  BIO_meth_set_write_ex(m, write_wire);
  BIO_meth_set_read_ex(m, read_wire);
  BIO_meth_set_ctrl(m, control_wire);
  return m;
}

}  // namespace detail

struct tls_context::state {
  detail::tls_key key;
  openssl_ptr<BIO_METHOD, BIO_meth_free> wire{detail::make_wire_method()};
  openssl_ptr<SSL_CTX, SSL_CTX_free> context{SSL_CTX_new(TLS_method())};
};

EDL_INLINE tls_context::tls_context(token const& secret, std::string_view job)
    : state_(std::make_shared<state>()) {
  SSL_CTX* const c = state_->context.get();
  auto const key = secret.derive("edl 2 tls", job);
  std::memcpy(state_->key.bytes.data(), key.data(), key.size());
  if (!c || !state_->wire || SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") != 1 ||
      SSL_CTX_set1_groups_list(c, "X25519") != 1 || SSL_CTX_set_num_tickets(c, 0) != 1 ||
      SSL_CTX_set_session_id_context(c, detail::psk_context, sizeof detail::psk_context) != 1 ||
      SSL_CTX_set_ex_data(c, detail::tls_key_index(), &state_->key) != 1)
    throw error("OpenSSL cannot be set up for TLS 1.3: " + openssl_errors());
  SSL_CTX_set_psk_use_session_callback(c, detail::offer_psk);
  SSL_CTX_set_psk_find_session_callback(c, detail::find_psk);
  // A peer that does not know the key has no trusted certificate either.
  SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_options(c, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_read_ahead(c, 1);
  SSL_CTX_set_default_read_buffer_len(c, detail::read_ahead);
}

struct tls_session::state {
  std::shared_ptr<tls_context::state> context;  // the callbacks find its key there
  detail::tls_wire wire;
  openssl_ptr<SSL, SSL_free> ssl;
  std::vector<std::byte> together;  // small pieces, to be sent as one record
  std::uint64_t records = 0;        // since the last change of the key
  std::chrono::milliseconds timeout;
  std::optional<time_point> partial;  // when the first part of a pending record arrived
  bool done = false;
  bool drained = false;  // the last read emptied the socket

  void encrypt(std::byte const* data, std::size_t size);
};

EDL_INLINE tls_session::tls_session(tls_context const& on, int socket, side who,
                                    std::chrono::milliseconds timeout)
    : state_(std::make_unique<state>()) {
  state_->context = on.state_;
  state_->wire.socket = socket;
  state_->timeout = timeout;
  state_->ssl.reset(SSL_new(state_->context->context.get()));
  BIO* const wire = BIO_new(state_->context->wire.get());
  if (!state_->ssl || !wire) {
    BIO_free(wire);
    throw error("no memory for a TLS connection: " + openssl_errors());
  }
  BIO_set_data(wire, &state_->wire);
  BIO_set_init(wire, 1);
  SSL_set_bio(state_->ssl.get(), wire, wire);
  who == side::client ? SSL_set_connect_state(state_->ssl.get()) : SSL_set_accept_state(state_->ssl.get());
}

EDL_INLINE tls_session::~tls_session() = default;

EDL_INLINE tls_session::step tls_session::handshake() {
  state& s = *state_;
  s.wire.drain();
  if (!s.done) {
    ERR_clear_error();
    int const result = SSL_do_handshake(s.ssl.get());
    if (result != 1) {
      int const why = SSL_get_error(s.ssl.get(), result);
      if (why == SSL_ERROR_WANT_READ) return s.wire.empty() ? step::wants_read : step::wants_write;
      s.wire.drain();  // the alert, as far as the socket accepts it
      if (s.wire.allowed == 0)
        throw error(fmt::format("TLS: a handshake of more than {} bytes", detail::handshake_size));
      std::string const reason = openssl_errors("");
      if (reason.empty())  // as from a member that waited for a process that stood still
        throw error(
            "TLS: the peer closed the connection before the handshake was over; it may have waited too long, "
            "or be no member of this job");
      throw error(fmt::format("TLS: {}; does it belong to this job, with the same EDL_JOB_TOKEN?", reason));
    }
    // Both peers must have proved the key, not a certificate.
    if (SSL_session_reused(s.ssl.get()) != 1) throw error("TLS: the peer did not use the job's key");
    s.done = true;
    s.wire.allowed = detail::unlimited;
  }
  return s.wire.empty() ? step::done : step::wants_write;
}

EDL_INLINE tls_session::binding tls_session::channel_binding() const {
  static constexpr std::string_view label = "EXPORTER-Channel-Binding";
  binding b;
  if (SSL_export_keying_material(state_->ssl.get(), reinterpret_cast<unsigned char*>(b.data()), b.size(),
                                 label.data(), label.size(), nullptr, 0, 0) != 1)
    throw error("TLS: " + openssl_errors());
  return b;
}

EDL_INLINE std::size_t tls_session::read(std::span<std::byte> into, asio::error_code& failed) {
  failed = {};
  std::size_t done = 0;
  into = into.first(std::min(into.size(), detail::read_turn));
  state_->drained = false;
  while (done < into.size()) {
    std::size_t n = 0;
    ERR_clear_error();
    int const result = SSL_read_ex(state_->ssl.get(), into.data() + done, into.size() - done, &n);
    if (result == 1) {
      done += n;
      state_->partial.reset();
      continue;
    }
    int const why = SSL_get_error(state_->ssl.get(), result);
    state_->drained = true;
    if (why == SSL_ERROR_WANT_READ && SSL_has_pending(state_->ssl.get()) == 1) {
      auto const now = clock::now();
      if (!state_->partial) state_->partial = now;
      if (now - *state_->partial > state_->timeout)
        throw error(fmt::format("TLS: a record does not end within {} ms", state_->timeout.count()));
    }
    if (done > 0 && (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)) return done;
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
      failed = asio::error::would_block;
    else if (why == SSL_ERROR_ZERO_RETURN || why == SSL_ERROR_SYSCALL)
      failed = asio::error::eof;
    else
      throw error("TLS: " + openssl_errors());
    return done;
  }
  return done;
}

// OpenSSL's pending bytes may be an incomplete record, which no read returns.
EDL_INLINE bool tls_session::buffered() const {
  return !state_->drained && SSL_has_pending(state_->ssl.get()) == 1;
}

EDL_INLINE bool tls_session::unsent() const { return !state_->wire.empty(); }

EDL_INLINE void tls_session::detach() { state_->wire.socket = -1; }

EDL_INLINE void tls_session::state::encrypt(std::byte const* data, std::size_t size) {
  if (records >= detail::records_per_key) {
    SSL_key_update(ssl.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
    records = 0;
  }
  records += (size + detail::record_size - 1) / detail::record_size;
  std::size_t n = 0;
  ERR_clear_error();
  if (SSL_write_ex(ssl.get(), data, size, &n) != 1 || n != size) {
    if (wire.failed == 0) throw error("TLS: " + openssl_errors());
  }
}

EDL_INLINE std::size_t tls_session::write(std::span<asio::const_buffer const> parts,
                                          asio::error_code& failed) {
  state& s = *state_;
  failed = {};
  s.wire.more = s.wire.blocked = false;
  if (!s.wire.empty()) s.wire.drain();
  std::size_t moved = 0, part = 0, at = 0, left = 0;
  for (auto const& p : parts) left += p.size();
  while (left > 0 && !s.wire.blocked && s.wire.failed == 0 && moved < detail::write_turn) {
    invariant(part < parts.size(), "as many bytes are left as the pieces have");
    while (at == parts[part].size()) ++part, at = 0;
    auto const* const here = static_cast<std::byte const*>(parts[part].data()) + at;
    std::size_t size = std::min(parts[part].size() - at, detail::record_size);
    std::byte const* from = here;
    if (size < detail::small_piece && part + 1 < parts.size()) {
      s.together.resize(detail::record_size);
      from = s.together.data();
      for (size = 0; part < parts.size() && size < detail::record_size;) {
        std::size_t const n = std::min(parts[part].size() - at, detail::record_size - size);
        std::memcpy(s.together.data() + size, static_cast<std::byte const*>(parts[part].data()) + at, n);
        size += n;
        at += n;
        if (at == parts[part].size() && part + 1 < parts.size())
          ++part, at = 0;
        else if (at == parts[part].size())
          break;
      }
    } else {
      at += size;
    }
    invariant(size > 0 && size <= left && size <= detail::record_size, "a record has some of the bytes left");
    left -= size;
    moved += size;
    s.wire.more = left > 0 && moved < detail::write_turn;
    s.encrypt(from, size);
  }
  if (s.wire.failed != 0) {
    failed = asio::error_code(s.wire.failed, asio::system_category());
    return 0;
  }
  if (moved == 0 && (left > 0 || !s.wire.empty())) failed = asio::error::would_block;
  return moved;
}

}  // namespace edl::net
