// Built where there is no intel-ipsec-mb.
#include "crypto/aead_backend.hpp"

namespace adit::crypto {
namespace {

std::unique_ptr<AeadEngine> makeEngine() {
  return nullptr;
}

std::unique_ptr<AeadKey> makeKey(Suite /*suite*/, const Secret<32>& /*key*/,
                                 const NonceSalt& /*salt*/) {
  return nullptr;
}

}  // namespace

const AeadBackendOperations kIpsecMbOperations{makeEngine, makeKey};

}  // namespace adit::crypto
