// genkey, genpsk and pubkey: as wg(8) does them.
#include <array>
#include <cstdio>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "crypto/key.hpp"

namespace adit::cli {
namespace {

constexpr std::size_t kKeyCharacters = 44;
constexpr const char* kBadKey = "Key is not the correct length or format";

int printKey(std::string key) {
  key += '\n';
  const int status = print(key);
  sodium_memzero(key.data(), key.size());
  return status;
}

int generatePrivateKey() {
  warnOfReadableOutput();
  return printKey(crypto::PrivateKey::generate().toBase64());
}

int generatePresharedKey() {
  warnOfReadableOutput();
  crypto::PresharedKey key;
  crypto::SystemRandom().fill(key.bytes());
  return printKey(crypto::presharedKeyToBase64(key));
}

/// Blanks and zero bytes may follow a key.
bool onlyBlanksFollow() {
  for (int c = std::getchar(); c != EOF; c = std::getchar()) {
    const bool blank = c == '\0' || c == ' ' || (c >= '\t' && c <= '\r');
    if (!blank) return false;
  }
  return true;
}

int printPublicKey() {
  // Without a buffer of stdio's that would keep the key.
  std::setvbuf(stdin, nullptr, _IONBF, 0);
  Secret<kKeyCharacters> text;
  if (std::fread(text.data(), 1, text.size(), stdin) != text.size()) return complain(kBadKey);
  if (!onlyBlanksFollow()) return complain("Trailing characters found after key");
  const auto key =
      crypto::PrivateKey::fromBase64({reinterpret_cast<const char*>(text.data()), text.size()});
  if (!key) return complain(kBadKey);
  return print(key->publicKey().toBase64() + '\n');
}

}  // namespace

void addKeyCommands(CLI::App& app, Action& action) {
  app.add_subcommand("genkey", "Make a private key and print it")
      ->footer(
          "Example:\n"
          "  umask 077; adit genkey | tee private.key | adit pubkey > public.key")
      ->callback([&action] { action = generatePrivateKey; });
  app.add_subcommand("genpsk", "Make a preshared key and print it")
      ->footer("Example:\n  umask 077; adit genpsk > psk")
      ->callback([&action] { action = generatePresharedKey; });
  app.add_subcommand("pubkey", "Read a private key from standard input, print its public key")
      ->footer("Example:\n  adit pubkey < private.key")
      ->callback([&action] { action = printPublicKey; });
}

}  // namespace adit::cli
