// intel-ipsec-mb: the fastest on x86-64. AES-GCM by its direct calls; ChaCha20-Poly1305, which has
// no direct call for a whole message, by its job interface.
//
// The library decrypts before anyone has compared the tag, and leaves the comparison to its
// caller: it is done here, in constant time, and plaintext that fails it is wiped.
#include <intel-ipsec-mb.h>
#include <sodium.h>

#include <algorithm>

#include "crypto/aead_backend.hpp"
#include "crypto/libraries.hpp"

namespace adit::crypto {
namespace {

using Manager = std::unique_ptr<IMB_MGR, FreeWith<free_mb_mgr>>;
using Tag = std::array<std::uint8_t, ADIT_TAG_LENGTH>;

/// A manager for the best instructions that this CPU has. Null where it has none of use, or where
/// the library fails its own test.
Manager makeManager() {
  Manager manager(alloc_mb_mgr(0));
  if (manager == nullptr) {
    return nullptr;
  }
  init_mb_mgr_auto(manager.get(), nullptr);
  const bool tested = (manager->features & IMB_FEATURE_SELF_TEST) != 0;
  const bool passed = (manager->features & IMB_FEATURE_SELF_TEST_PASS) != 0;
  if (imb_get_errno(manager.get()) != 0 || (tested && !passed)) {
    return nullptr;
  }
  return manager;
}

/// For expanding keys only, which changes nothing in it.
IMB_MGR* sharedManager() {
  static const Manager manager = makeManager();
  return manager.get();
}

/// Without these instructions the library falls back on tables, which leak the key.
bool hasAesInstructions(const IMB_MGR* manager) {
  constexpr std::uint64_t kNeeded = IMB_FEATURE_AESNI | IMB_FEATURE_PCLMULQDQ;
  return (manager->features & kNeeded) == kNeeded;
}

class IpsecMbChaChaKey final : public SaltedAeadKey {
 public:
  IpsecMbChaChaKey(const Secret<32>& key, const NonceSalt& salt)
      : SaltedAeadKey(Suite::ChaCha20Poly1305, AeadBackend::IpsecMb, salt), key_(key) {}
  [[nodiscard]] const std::uint8_t* key() const { return key_.data(); }

 private:
  Secret<32> key_;
};

class IpsecMbGcmKey final : public SaltedAeadKey {
 public:
  IpsecMbGcmKey(const IMB_MGR* manager, Suite suite, const Secret<32>& key, const NonceSalt& salt)
      : SaltedAeadKey(suite, AeadBackend::IpsecMb, salt) {
    if (suite == Suite::Aes256Gcm) {
      IMB_AES256_GCM_PRE(manager, key.data(), &expanded_);
    } else {
      IMB_AES128_GCM_PRE(manager, key.data(), &expanded_);
    }
  }
  ~IpsecMbGcmKey() override { sodium_memzero(&expanded_, sizeof(expanded_)); }
  IpsecMbGcmKey(const IpsecMbGcmKey&) = delete;
  IpsecMbGcmKey& operator=(const IpsecMbGcmKey&) = delete;
  [[nodiscard]] const gcm_key_data* expanded() const { return &expanded_; }

 private:
  alignas(64) gcm_key_data expanded_{};
};

/// `computed` against the tag that arrived behind the ciphertext; wipes the output if they differ.
void judge(AeadJob& job, const Tag& computed) {
  job.ok = sodium_memcmp(computed.data(), job.in + job.length, computed.size()) == 0;
  if (!job.ok) {
    sodium_memzero(job.out, job.length);
  }
}

class IpsecMbEngine final : public AeadEngine {
 public:
  explicit IpsecMbEngine(Manager manager) : manager_(std::move(manager)) {}

  void seal(const AeadKey& key, std::span<AeadJob> jobs) override {
    if (key.suite() != Suite::ChaCha20Poly1305) {
      sealGcm(static_cast<const IpsecMbGcmKey&>(key), jobs);
      return;
    }
    const auto& own = static_cast<const IpsecMbChaChaKey&>(key);
    for (; !jobs.empty(); jobs = jobs.subspan(std::min(jobs.size(), kBurst))) {
      runChaCha(own, jobs.first(std::min(jobs.size(), kBurst)), IMB_DIR_ENCRYPT);
    }
  }

  void open(const AeadKey& key, std::span<AeadJob> jobs) override {
    if (key.suite() != Suite::ChaCha20Poly1305) {
      openGcm(static_cast<const IpsecMbGcmKey&>(key), jobs);
      return;
    }
    const auto& own = static_cast<const IpsecMbChaChaKey&>(key);
    for (; !jobs.empty(); jobs = jobs.subspan(std::min(jobs.size(), kBurst))) {
      const std::span<AeadJob> burst = jobs.first(std::min(jobs.size(), kBurst));
      runChaCha(own, burst, IMB_DIR_DECRYPT);
      for (std::size_t i = 0; i < burst.size(); ++i) {
        judge(burst[i], tags_[i]);
      }
    }
  }

 private:
  /// Well below the jobs that a manager holds.
  static constexpr std::size_t kBurst = 64;

  void sealGcm(const IpsecMbGcmKey& key, std::span<AeadJob> jobs) {
    const aes_gcm_enc_dec_t encrypt =
        key.suite() == Suite::Aes256Gcm ? manager_->gcm256_enc : manager_->gcm128_enc;
    for (const AeadJob& job : jobs) {
      runGcm(encrypt, key, job, job.out + job.length);
    }
    sodium_memzero(&gcmContext_, sizeof(gcmContext_));
  }

  void openGcm(const IpsecMbGcmKey& key, std::span<AeadJob> jobs) {
    const aes_gcm_enc_dec_t decrypt =
        key.suite() == Suite::Aes256Gcm ? manager_->gcm256_dec : manager_->gcm128_dec;
    for (AeadJob& job : jobs) {
      runGcm(decrypt, key, job, tags_[0].data());
      judge(job, tags_[0]);
    }
    sodium_memzero(&gcmContext_, sizeof(gcmContext_));
  }

  void runGcm(aes_gcm_enc_dec_t function, const IpsecMbGcmKey& key, const AeadJob& job,
              std::uint8_t* tag) {
    const Nonce12 nonce = key.nonce(job.counter);
    function(key.expanded(), &gcmContext_, job.out, job.in, job.length, nonce.data(), nonce.data(),
             0, tag, ADIT_TAG_LENGTH);
  }

  /// All jobs of a burst go in before any is waited for. Leaves a decrypted job's tag in tags_.
  void runChaCha(const IpsecMbChaChaKey& key, std::span<AeadJob> jobs,
                 IMB_CIPHER_DIRECTION direction) {
    std::size_t completed = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      nonces_[i] = key.nonce(jobs[i].counter);
      std::uint8_t* const tag =
          direction == IMB_DIR_ENCRYPT ? jobs[i].out + jobs[i].length : tags_[i].data();
      fillChaCha(*IMB_GET_NEXT_JOB(manager_.get()), key, jobs[i], direction, nonces_[i], tag);
      completed += countCompleted(IMB_SUBMIT_JOB(manager_.get()));
    }
    while (completed < jobs.size()) {
      IMB_JOB* const done = IMB_FLUSH_JOB(manager_.get());
      requireAead(done != nullptr, "intel-ipsec-mb lost a job");
      completed += countCompleted(done);
    }
  }

  static void fillChaCha(IMB_JOB& out, const IpsecMbChaChaKey& key, const AeadJob& job,
                         IMB_CIPHER_DIRECTION direction, const Nonce12& nonce, std::uint8_t* tag) {
    out.cipher_mode = IMB_CIPHER_CHACHA20_POLY1305;
    out.hash_alg = IMB_AUTH_CHACHA20_POLY1305;
    out.cipher_direction = direction;
    out.chain_order = direction == IMB_DIR_ENCRYPT ? IMB_ORDER_CIPHER_HASH : IMB_ORDER_HASH_CIPHER;
    out.enc_keys = key.key();
    out.dec_keys = key.key();
    out.key_len_in_bytes = Secret<32>::size();
    out.iv = nonce.data();
    out.iv_len_in_bytes = nonce.size();
    out.src = job.in;
    out.dst = job.out;
    out.cipher_start_src_offset_in_bytes = 0;
    out.hash_start_src_offset_in_bytes = 0;
    out.msg_len_to_cipher_in_bytes = job.length;
    out.msg_len_to_hash_in_bytes = job.length;
    out.u.CHACHA20_POLY1305.aad = nonce.data();
    out.u.CHACHA20_POLY1305.aad_len_in_bytes = 0;
    out.auth_tag_output = tag;
    out.auth_tag_output_len_in_bytes = ADIT_TAG_LENGTH;
  }

  /// 1 for a job that is done, 0 for none yet.
  static std::size_t countCompleted(const IMB_JOB* job) {
    if (job == nullptr) {
      return 0;
    }
    requireAead(job->status == IMB_STATUS_COMPLETED, "intel-ipsec-mb refuses a job");
    return 1;
  }

  Manager manager_;
  gcm_context_data gcmContext_{};
  std::array<Nonce12, kBurst> nonces_{};
  std::array<Tag, kBurst> tags_{};
};

std::unique_ptr<AeadEngine> makeEngine() {
  Manager manager = makeManager();
  if (manager == nullptr) {
    return nullptr;
  }
  return std::make_unique<IpsecMbEngine>(std::move(manager));
}

std::unique_ptr<AeadKey> makeKey(Suite suite, const Secret<32>& key, const NonceSalt& salt) {
  const IMB_MGR* const manager = sharedManager();
  if (manager == nullptr) {
    return nullptr;
  }
  if (suite == Suite::ChaCha20Poly1305) {
    return std::make_unique<IpsecMbChaChaKey>(key, salt);
  }
  if (!hasAesInstructions(manager)) {
    return nullptr;
  }
  return std::make_unique<IpsecMbGcmKey>(manager, suite, key, salt);
}

}  // namespace

const AeadBackendOperations kIpsecMbOperations{makeEngine, makeKey};

}  // namespace adit::crypto
