#include "dataplane/user/key_history.hpp"

#include <sodium.h>

#include <algorithm>

namespace adit::dataplane::user {

KeyHistory::KeyHistory() {
  ::randombytes_buf(fingerprintKey_.data(), fingerprintKey_.size());
}

KeyHistory::~KeyHistory() {
  ::sodium_memzero(fingerprintKey_.data(), fingerprintKey_.size());
}

KeyHistory::Fingerprint KeyHistory::fingerprint(const Secret<32>& key) const {
  Fingerprint result{};
  ::crypto_generichash(result.data(), result.size(), key.data(), key.size(), fingerprintKey_.data(),
                       fingerprintKey_.size());
  return result;
}

bool KeyHistory::add(const noise::SessionKeys& keys) {
  const Fingerprint send = fingerprint(keys.send);
  const Fingerprint receive = fingerprint(keys.receive);
  const auto known = std::span(known_).first(std::min(count_, known_.size()));
  const auto isKnown = [&](const Fingerprint& print) {
    return std::ranges::find(known, print) != known.end();
  };
  if (isKnown(send) || isKnown(receive)) return false;
  known_[count_ % known_.size()] = send;
  known_[(count_ + 1) % known_.size()] = receive;
  count_ += 2;
  return true;
}

}  // namespace adit::dataplane::user
