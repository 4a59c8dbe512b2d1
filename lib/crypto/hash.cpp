#include "crypto/hash.hpp"

#include <openssl/core_names.h>
#include <openssl/params.h>

#include <stdexcept>

#include "crypto/libraries.hpp"

namespace adit::crypto {
namespace {

// Fetched once and kept for the life of the process: a fetch takes locks and searches providers.
const EVP_MD* blake2sDigest() {
  static const EVP_MD* const digest = EVP_MD_fetch(nullptr, "BLAKE2S-256", nullptr);
  requireOpenSsl(digest != nullptr, "OpenSSL has no BLAKE2S-256");
  return digest;
}

EVP_MAC* blake2sMac() {
  static EVP_MAC* const mac = EVP_MAC_fetch(nullptr, "BLAKE2SMAC", nullptr);
  requireOpenSsl(mac != nullptr, "OpenSSL has no BLAKE2SMAC");
  return mac;
}

EVP_MAC* hmac() {
  static EVP_MAC* const mac = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  requireOpenSsl(mac != nullptr, "OpenSSL has no HMAC");
  return mac;
}

/// A context of HMAC-BLAKE2s without a key; copying it saves the search for the digest by name.
const EVP_MAC_CTX* hmacTemplate() {
  static const EVP_MAC_CTX* const context = [] {
    EVP_MAC_CTX* fresh = EVP_MAC_CTX_new(hmac());
    char digest[] = "BLAKE2S-256";
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end()};
    requireOpenSsl(fresh != nullptr && EVP_MAC_CTX_set_params(fresh, parameters) == 1,
                   "OpenSSL cannot do HMAC over BLAKE2S-256");
    return fresh;
  }();
  return context;
}

void hmacBlake2s(const Secret<32>& key, std::initializer_list<Bytes> parts, Secret<32>& out) {
  const MacContext context(EVP_MAC_CTX_dup(hmacTemplate()));
  requireOpenSsl(
      context != nullptr && EVP_MAC_init(context.get(), key.data(), key.size(), nullptr) == 1,
      "HMAC-BLAKE2s cannot start");
  for (const Bytes part : parts) {
    requireOpenSsl(EVP_MAC_update(context.get(), part.data(), part.size()) == 1,
                   "HMAC-BLAKE2s failed");
  }
  std::size_t length = 0;
  requireOpenSsl(
      EVP_MAC_final(context.get(), out.data(), &length, out.size()) == 1 && length == out.size(),
      "HMAC-BLAKE2s failed");
}

MacContext newKeyedContext(Bytes key) {
  if (key.empty() || key.size() > 32) {
    throw std::invalid_argument("keyed BLAKE2s takes a key of 1 to 32 bytes");
  }
  MacContext context(EVP_MAC_CTX_new(blake2sMac()));
  std::size_t size = Mac{}.size();
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
                                   OSSL_PARAM_construct_end()};
  requireOpenSsl(
      context != nullptr && EVP_MAC_init(context.get(), key.data(), key.size(), parameters) == 1,
      "keyed BLAKE2s cannot start");
  return context;
}

Mac finishKeyed(EVP_MAC_CTX* context, std::initializer_list<Bytes> parts) {
  for (const Bytes part : parts) {
    requireOpenSsl(EVP_MAC_update(context, part.data(), part.size()) == 1, "keyed BLAKE2s failed");
  }
  Mac mac;
  std::size_t length = 0;
  requireOpenSsl(
      EVP_MAC_final(context, mac.data(), &length, mac.size()) == 1 && length == mac.size(),
      "keyed BLAKE2s failed");
  return mac;
}

/// The first step and the first output of KDF_n; `pseudorandomKey` serves the next outputs.
void startKdf(const Secret<32>& chainingKey, Bytes input, Secret<32>& pseudorandomKey,
              Secret<32>& out1) {
  hmacBlake2s(chainingKey, {input}, pseudorandomKey);
  const std::uint8_t one = 1;
  hmacBlake2s(pseudorandomKey, {Bytes(&one, 1)}, out1);
}

void continueKdf(const Secret<32>& pseudorandomKey, const Secret<32>& previous, std::uint8_t index,
                 Secret<32>& out) {
  hmacBlake2s(pseudorandomKey, {previous.bytes(), Bytes(&index, 1)}, out);
}

}  // namespace

Hash blake2s(std::initializer_list<Bytes> parts) {
  // One context per thread: the handshake hashes often, and OpenSSL clears the state at the end.
  thread_local const DigestContext context(EVP_MD_CTX_new());
  requireOpenSsl(
      context != nullptr && EVP_DigestInit_ex2(context.get(), blake2sDigest(), nullptr) == 1,
      "BLAKE2s cannot start");
  for (const Bytes part : parts) {
    requireOpenSsl(EVP_DigestUpdate(context.get(), part.data(), part.size()) == 1,
                   "BLAKE2s failed");
  }
  Hash hash;
  requireOpenSsl(EVP_DigestFinal_ex(context.get(), hash.data(), nullptr) == 1, "BLAKE2s failed");
  return hash;
}

Mac keyedBlake2s(Bytes key, std::initializer_list<Bytes> parts) {
  const MacContext context = newKeyedContext(key);
  return finishKeyed(context.get(), parts);
}

struct KeyedBlake2s::Context {
  MacContext mac;
};

KeyedBlake2s::KeyedBlake2s(Bytes key) : context_(new Context{newKeyedContext(key)}) {}

KeyedBlake2s::~KeyedBlake2s() = default;

Mac KeyedBlake2s::operator()(Bytes message) {
  // A null key starts again with the one that the context holds.
  requireOpenSsl(EVP_MAC_init(context_->mac.get(), nullptr, 0, nullptr) == 1,
                 "keyed BLAKE2s cannot start");
  return finishKeyed(context_->mac.get(), {message});
}

void kdf(const Secret<32>& chainingKey, Bytes input, Secret<32>& out1) {
  Secret<32> pseudorandomKey;
  startKdf(chainingKey, input, pseudorandomKey, out1);
}

void kdf(const Secret<32>& chainingKey, Bytes input, Secret<32>& out1, Secret<32>& out2) {
  Secret<32> pseudorandomKey;
  startKdf(chainingKey, input, pseudorandomKey, out1);
  continueKdf(pseudorandomKey, out1, 2, out2);
}

void kdf(const Secret<32>& chainingKey, Bytes input, Secret<32>& out1, Secret<32>& out2,
         Secret<32>& out3) {
  Secret<32> pseudorandomKey;
  startKdf(chainingKey, input, pseudorandomKey, out1);
  continueKdf(pseudorandomKey, out1, 2, out2);
  continueKdf(pseudorandomKey, out2, 3, out3);
}

}  // namespace adit::crypto
