// TLS 1.3 over a socket that does not block: with certificates, or with a key that both sides have. Needs OpenSSL.
// needs: openssl
#pragma once
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/net/byte_stream.hpp>
#include <string>
#include <system_error>
#include <utility>

namespace strata::detail {

/// 256 bits that both sides of a connection have, and no other process.
using shared_key = std::array<unsigned char, 32>;

/// The reason of the last failure in OpenSSL on this thread, in its words; empty: there is none.
inline std::string reason_of_openssl() {
  const unsigned long code = ::ERR_get_error();
  ::ERR_clear_error();
  const char* const reason = code == 0 ? nullptr : ::ERR_reason_error_string(code);
  return reason ? reason : "";
}

/// PEM files: the authority that is trusted, and the certificate and key of this process.
struct pem_files {
  const std::string &authority, &certificate, &key;
};

/// The proof that a process presents, and the one that it requires. Copies share their contents.
class tls_identity {
  struct deleter {
    void operator()(SSL_CTX* c) const { ::SSL_CTX_free(c); }
    void operator()(BIO_METHOD* m) const { ::BIO_meth_free(m); }
  };
  struct contents {
    std::unique_ptr<SSL_CTX, deleter> context{::SSL_CTX_new(::TLS_method())};
    std::unique_ptr<BIO_METHOD, deleter> over_socket{::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket")};
    bool has_key = false;
    shared_key key{};
    ~contents() { ::OPENSSL_cleanse(key.data(), key.size()); }
  };
  std::shared_ptr<contents> contents_ = std::make_shared<contents>();

 public:
  /// Both sides prove that they have the key; no certificates.
  explicit tls_identity(const shared_key& key) {
    prepare();
    contents_->has_key = true;
    contents_->key = key;
    SSL_CTX* const c = context();
    ::SSL_CTX_set_psk_use_session_callback(
        c, [](SSL* s, const EVP_MD*, const unsigned char** id, std::size_t* bytes, SSL_SESSION** out) {
          *id = reinterpret_cast<const unsigned char*>(name_of_key);
          *bytes = std::strlen(name_of_key);
          *out = session_of(s);
          return int(*out != nullptr);
        });
    ::SSL_CTX_set_psk_find_session_callback(c, [](SSL* s, const unsigned char* id, std::size_t bytes, SSL_SESSION** out) {
      const bool is_ours = bytes == std::strlen(name_of_key) && std::memcmp(id, name_of_key, bytes) == 0;
      *out = is_ours ? session_of(s) : nullptr;
      return 1;
    });
  }
  /// Both sides show certificates of the authority. Throws strata_error, naming the file, if one is of no use.
  explicit tls_identity(const pem_files& files) {
    prepare();
    SSL_CTX* const c = context();
    const auto refuse = [](const std::string& file) { throw_error({file, " cannot be used for TLS: ", reason_of_openssl()}); };
    if (::SSL_CTX_load_verify_file(c, files.authority.c_str()) != 1) refuse(files.authority);
    if (::SSL_CTX_use_certificate_chain_file(c, files.certificate.c_str()) != 1) refuse(files.certificate);
    if (::SSL_CTX_use_PrivateKey_file(c, files.key.c_str(), SSL_FILETYPE_PEM) != 1) refuse(files.key);
    if (::SSL_CTX_check_private_key(c) != 1) refuse(files.key);
  }

  SSL_CTX* context() const { return contents_->context.get(); }
  const BIO_METHOD* over_socket() const { return contents_->over_socket.get(); }
  bool has_key() const { return contents_->has_key; }

 private:
  static constexpr const char* name_of_key = "strata";
  static constexpr unsigned char id_of_context[] = {'s', 't', 'r', 'a', 't', 'a'};

  void prepare() {
    SSL_CTX* const c = context();
    if (!c || !contents_->over_socket) throw_error({"OpenSSL cannot be used: ", reason_of_openssl()});
    ::SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION);
    ::SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256");
    // Sessions are never taken up again, so the other side proves itself each time.
    ::SSL_CTX_set_num_tickets(c, 0);
    // Several records of 16 KB with one call of the system.
    ::SSL_CTX_set_read_ahead(c, 1);
    ::SSL_CTX_set_default_read_buffer_len(c, 1 << 16);
    ::SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    // Without a common key, each side needs a certificate that the other trusts.
    ::SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    ::SSL_CTX_set_session_id_context(c, id_of_context, sizeof id_of_context);
    ::SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_app_data(c, contents_.get());
    BIO_METHOD* const m = contents_->over_socket.get();
    ::BIO_meth_set_write(m, [](BIO* b, const char* from, int bytes) {
      return moved(b, ::send(number_of(b), from, std::size_t(bytes), MSG_NOSIGNAL), BIO_FLAGS_WRITE);
    });
    ::BIO_meth_set_read(
        m, [](BIO* b, char* to, int most) { return moved(b, ::recv(number_of(b), to, std::size_t(most), 0), BIO_FLAGS_READ); });
    ::BIO_meth_set_ctrl(m, [](BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1L : 0L; });
    ::BIO_meth_set_create(m, [](BIO* b) {
      ::BIO_set_init(b, 1);
      return 1;
    });
  }
  // OpenSSL's own socket would end the process with SIGPIPE when the other side has closed the connection.
  static int number_of(BIO* b) { return int(reinterpret_cast<std::intptr_t>(::BIO_get_data(b))); }
  static int moved(BIO* b, ::ssize_t bytes, int direction) {
    ::BIO_clear_flags(b, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    const bool would_block = bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    if (would_block) ::BIO_set_flags(b, direction | BIO_FLAGS_SHOULD_RETRY);
    return int(bytes);
  }
  static SSL_SESSION* session_of(SSL* s) {
    const auto* const c = static_cast<const contents*>(SSL_CTX_get_app_data(::SSL_get_SSL_CTX(s)));
    static constexpr unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
    SSL_SESSION* const session = ::SSL_SESSION_new();
    if (session && ::SSL_SESSION_set1_master_key(session, c->key.data(), c->key.size()) == 1 &&
        ::SSL_SESSION_set_cipher(session, ::SSL_CIPHER_find(s, aes_128_gcm_sha256)) == 1 &&
        ::SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1 &&
        ::SSL_SESSION_set1_id_context(session, id_of_context, sizeof id_of_context) == 1)
      return session;
    ::SSL_SESSION_free(session);
    return nullptr;
  }
};

/// One connection. `greet` proves that the other side has the key, or a certificate of the authority for `host`.
class tls_stream final : public byte_stream {
  struct deleter {
    void operator()(SSL* s) const { ::SSL_free(s); }
  };
  io::file_descriptor socket_;
  tls_identity identity_;
  std::unique_ptr<SSL, deleter> ssl_;
  std::string why_;
  bool is_refused_ = false;
  const std::uint64_t bytes_per_key_;
  std::uint64_t sealed_ = 0;  // bytes with one key

 public:
  /// The socket must be non-blocking. `host`: the host that was dialled; unused with a key, or for an accepted connection.
  tls_stream(io::file_descriptor socket, tls_identity identity, bool accepts, const std::string& host = {},
             std::uint64_t bytes_per_key = std::uint64_t(1) << 36)
      : socket_(std::move(socket)),
        identity_(std::move(identity)),
        ssl_(::SSL_new(identity_.context())),
        bytes_per_key_(bytes_per_key) {
    BIO* const over = ssl_ ? ::BIO_new(identity_.over_socket()) : nullptr;
    if (!over) throw_error({"OpenSSL cannot begin a connection: ", reason_of_openssl()});
    ::BIO_set_data(over, reinterpret_cast<void*>(std::intptr_t(socket_.number())));
    ::SSL_set_bio(ssl_.get(), over, over);
    accepts ? ::SSL_set_accept_state(ssl_.get()) : ::SSL_set_connect_state(ssl_.get());
    if (accepts || identity_.has_key()) return;
    if (::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(ssl_.get()), host.c_str()) != 1) {
      ::SSL_set1_host(ssl_.get(), host.c_str());
      SSL_set_tlsext_host_name(ssl_.get(), host.c_str());
    }
    ::ERR_clear_error();
  }

  stream_progress greet() override {
    const stream_progress p = judged(::SSL_do_handshake(ssl_.get()), 0);
    if (p.waits_for != 0 || p.is_broken || p.is_closed || !identity_.has_key() || ::SSL_session_reused(ssl_.get()) == 1) return p;
    return broken("the other side has not proved that it has the key");
  }
  stream_progress read(std::byte* to, std::size_t most) override {
    std::size_t bytes = 0;
    const int result = ::SSL_read_ex(ssl_.get(), to, most, &bytes);
    return judged(result, bytes);
  }
  stream_progress write(const std::byte* from, std::size_t bytes) override {
    // RFC 8446, 5.5: AES-GCM seals 2^24.5 records of 16 KB with one key.
    // While an update waits for room in the socket OpenSSL reads nothing: two sides would wait for each other.
    if (sealed_ > bytes_per_key_ && has_room()) {
      if (::SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
        sealed_ = 0;
      else
        ::ERR_clear_error();  // a record is still pending
    }
    std::size_t moved = 0;
    const int result = ::SSL_write_ex(ssl_.get(), from, bytes, &moved);
    sealed_ += moved;
    return judged(result, moved);
  }
  const std::string& why_broken() const override { return why_; }
  int socket() const override { return socket_.number(); }
  /// Broken because one of the sides does not let the other in, not because the network is.
  bool is_refused() const { return is_refused_; }

 private:
  bool has_room() const {
    ::pollfd on{socket_.number(), POLLOUT, 0};
    return ::poll(&on, 1, 0) == 1 && (on.revents & POLLOUT);
  }

  stream_progress judged(int result, std::size_t bytes) {
    const int number = errno;
    if (result == 1) return {.bytes = bytes};
    switch (::SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return {.waits_for = POLLIN};
      case SSL_ERROR_WANT_WRITE:
        return {.waits_for = POLLOUT};
      case SSL_ERROR_ZERO_RETURN:
        return {.is_closed = true};
      case SSL_ERROR_SYSCALL:
        ::ERR_clear_error();
        return broken(number == 0 ? "the other side has closed the connection" : std::generic_category().message(number));
      default:
        const long verified = ::SSL_get_verify_result(ssl_.get());
        const std::string reason = reason_of_openssl();
        is_refused_ = true;
        return broken(verified == X509_V_OK || identity_.has_key() ? reason : ::X509_verify_cert_error_string(verified));
    }
  }
  stream_progress broken(std::string why) {
    why_ = std::move(why);
    return {.is_broken = true};
  }
};

/// Protects connections between processes that all have one key.
class tls_protection final : public socket_protection {
  shared_key key_;

 public:
  explicit tls_protection(const shared_key& key) : key_(key) {}
  ~tls_protection() override { ::OPENSSL_cleanse(key_.data(), key_.size()); }
  /// Each pair has a key of its own, so that a connection cannot be led to another process of the training.
  std::unique_ptr<byte_stream> protect(io::file_descriptor socket, bool accepts, int lower_rank, int higher_rank) const override {
    const std::string pair = text_of({"strata pair ", lower_rank, ' ', higher_rank});
    shared_key key{};
    unsigned bytes = 0;
    if (!::HMAC(::EVP_sha256(), key_.data(), int(key_.size()), reinterpret_cast<const unsigned char*>(pair.data()), pair.size(),
                key.data(), &bytes) ||
        bytes != key.size())
      throw_error("OpenSSL has no HMAC");
    return std::make_unique<tls_stream>(std::move(socket), tls_identity(key), accepts);
  }
};

}  // namespace strata::detail
