#include "cli/join_file.hpp"

#include <sodium.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "cli/onboarding.hpp"
#include "config/file_io.hpp"
#include "config/parser.hpp"
#include "config/values.hpp"
#include "crypto/hash.hpp"
#include "util/clock.hpp"
#include "util/file.hpp"

namespace adit::cli {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kFileMode = 0600;
constexpr std::size_t kMaxKeyFile = 4096;
constexpr std::string_view kTokenKey = "Token = ";
constexpr std::string_view kPrivateKey = "PrivateKey = ";

std::string markOf(const enrol::Token& token) {
  constexpr std::string_view kLabel = "adit join file 1";
  const crypto::Hash hash =
      crypto::blake2s({{reinterpret_cast<const std::uint8_t*>(kLabel.data()), kLabel.size()},
                       token.secret.bytes()});
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < kShown; ++i) {
    text += fmt::format("{:02x}", hash[i]);
  }
  return text;
}

/// What follows `key` on its line; empty where there is none.
std::string_view valueOf(std::string_view text, std::string_view key) {
  const auto start = text.starts_with(key) ? 0 : text.find('\n' + std::string(key));
  if (start == std::string_view::npos) return {};
  const std::string_view rest = text.substr(text.find('=', start) + 2);
  return rest.substr(0, rest.find('\n'));
}

std::string addressesText(const std::vector<InterfaceAddress>& addresses) {
  std::vector<std::string> texts;
  for (const InterfaceAddress& address : addresses) {
    texts.push_back(address.toString());
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

Result<JoinKeyFile> JoinKeyFile::open(const fs::path& configFile, const enrol::Token& token) {
  fs::path path = configFile;
  path.replace_extension(".join");
  std::string mark = markOf(token);
  const auto file = config::readFile(path, kMaxKeyFile, true);
  if (file && valueOf(file->text(), kTokenKey) == mark) {
    auto key = crypto::PrivateKey::fromBase64(valueOf(file->text(), kPrivateKey));
    if (key) return JoinKeyFile(std::move(path), std::move(mark), std::move(*key), true);
  }
  if (!file && file.error().code != ENOENT) return wrapError(file.error(), path.string());
  // Of another token, that is of a join that was given up.
  return JoinKeyFile(std::move(path), std::move(mark), crypto::PrivateKey::generate(), false);
}

Result<void> JoinKeyFile::keep() {
  if (kept_) return {};
  if (auto made = makeConfigFolder(path_); !made) return made;
  std::string text = fmt::format(
      "# The key of a join that is under way: `adit join` with the same token goes on with it and\n"
      "# removes this file.\n{}{}\n{}{}\n",
      kTokenKey, mark_, kPrivateKey, key_.toBase64());
  const auto written = replaceFile(path_, text, kFileMode, Durability::PowerCut);
  sodium_memzero(text.data(), text.size());
  kept_ = written.has_value();
  return written;
}

void JoinKeyFile::remove() {
  if (kept_) ::unlink(path_.c_str());
  kept_ = false;
}

Result<void> writeJoinedConfig(const fs::path& file, const enrol::Token& token,
                               const crypto::PrivateKey& key, const Joined& joined) {
  const auto now = std::chrono::floor<std::chrono::seconds>(SystemClock().realTime());
  std::string text = fmt::format(
      "# Written by `adit join` at {}; it is yours from here on.\n"
      "# `adit reload {}` applies a change. Every key stands in adit.conf(5).\n"
      "# The server calls this machine {}; ports that it may ask for: {}.\n"
      "\n"
      "[Interface]\n"
      "# Made on this machine; no other has ever had it.\n"
      "PrivateKey = {}\n"
      "Address = {}\n"
      "{}"
      "# Only answers to what came in by the tunnel go back through it.\n"
      "Table = reply\n"
      "# The server reaches what [Map] names, and nothing else here.\n"
      "Expose = maps\n"
      "\n"
      "[Peer]\n"
      "Name = server\n"
      "PublicKey = {}\n"
      "PresharedKey = {}\n"
      "Endpoint = {}\n"
      "# Clients of mapped ports keep their own addresses, which may be any.\n"
      "AllowedIPs = 0.0.0.0/0, ::/0\n"
      "# Keeps the way through the router at home open.\n"
      "PersistentKeepalive = 25\n",
      config::formatUtcTime(now), file.stem().string(), token.name,
      grantsText(joined.answer.grants, joined.answer.thirdParty), key.toBase64(),
      addressesText(joined.answer.addresses),
      joined.answer.mtu == 0 ? "" : fmt::format("MTU = {}\n", joined.answer.mtu),
      token.server.toBase64(), crypto::presharedKeyToBase64(joined.answer.presharedKey),
      joined.endpoint);
  const config::Outcome outcome = config::parse(text, file.string());
  Result<void> written = outcome.ok() ? makeConfigFolder(file)
                                      : fail("the server's answer makes no sense: {}",
                                             outcome.diagnostics.front().toString());
  if (written) written = createFile(file, text, kFileMode);
  sodium_memzero(text.data(), text.size());
  return written;
}

}  // namespace adit::cli
