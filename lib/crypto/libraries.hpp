// Start-up and handles of the cryptographic libraries; internal to this folder.
#pragma once

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sodium.h>

#include <memory>
#include <stdexcept>

namespace adit::crypto {

/// Without sodium_init() libsodium works, but with its slowest code. Cheap after the first call.
inline void ensureSodium() {
  static const int status = sodium_init();
  if (status < 0) {
    throw std::runtime_error("libsodium cannot be initialised: no source of random bytes");
  }
}

/// Holds for calls that fail only when memory is exhausted or an argument is a programming error.
inline void requireOpenSsl(bool succeeded, const char* what) {
  if (!succeeded) {
    throw std::runtime_error(what);
  }
}

template <auto Free>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};

using DigestContext = std::unique_ptr<EVP_MD_CTX, FreeWith<EVP_MD_CTX_free>>;
using MacContext = std::unique_ptr<EVP_MAC_CTX, FreeWith<EVP_MAC_CTX_free>>;
using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, FreeWith<EVP_CIPHER_CTX_free>>;

}  // namespace adit::crypto
