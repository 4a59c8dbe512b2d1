#include "cli/peer_rotate.hpp"

#include <chrono>
#include <thread>

#include "cli/drop_in.hpp"
#include "cli/output.hpp"
#include "cli/peer_file.hpp"
#include "cli/server.hpp"
#include "cli/sources.hpp"
#include "config/file_io.hpp"
#include "config/lexer.hpp"
#include "config/parser.hpp"
#include "config/writer.hpp"
#include "control/control_client.hpp"
#include "control/device_enrol_file.hpp"
#include "util/file.hpp"

namespace adit::cli {
namespace {

using config::PeerConfig;
using control::ControlClient;
using Notes = Result<std::vector<std::string>>;

Result<crypto::PresharedKey> keyOf(const std::string& source) {
  if (source.empty()) {
    crypto::PresharedKey key;
    crypto::SystemRandom().fill(key.bytes());
    return key;
  }
  const auto text = readFile(source == "-" ? "/dev/stdin" : source);
  if (!text) return tl::unexpected(text.error());
  auto key = crypto::presharedKeyFromBase64(
      std::string_view(*text).substr(0, text->find_last_not_of(" \r\n\t") + 1));
  if (!key || key->isZero()) return fail("--key: this is no preshared key");
  return key;
}

/// In a file of NAME.d.
Notes rotatedThere(const Server& server, const PeerConfig& peer, PeerPlace& place) {
  const std::string section = config::writeSection(config::Section::Peer, {.peer = &peer});
  const auto written = place.file.write(withSection(place.text, place.lines, section));
  return written ? applied(server.named.interface, {&place.file}) : tl::unexpected(written.error());
}

/// In the person's own file, as `adit save` changes it: this one line, and nothing else.
Notes rotatedInPlace(const Server& server, const PeerConfig& peer) {
  const config::Outcome loaded = config::load(server.named.file);
  if (!loaded.ok()) return fail("{}", errorsOf(loaded.diagnostics));
  config::Config wanted = *loaded.config;
  for (PeerConfig& each : wanted.peers) {
    if (each.publicKey == peer.publicKey) each = peer;
  }
  const auto before = config::readFile(server.named.file, config::kMaxFileSize, true);
  if (!before) return wrapError(before.error(), server.named.file.string());
  const auto saved = config::save(loaded, wanted);
  if (!saved) return tl::unexpected(saved.error());
  auto notes = applied(server.named.interface, {});
  if (!notes) (void)replaceFile(server.named.file, before->text(), 0600, Durability::PowerCut);
  return notes;
}

Notes rotated(const Server& server, PeerConfig peer, const crypto::PresharedKey& key) {
  if (!peer.presharedKeyFile.empty()) {
    return fail("{} has its preshared key in {}: write the new one there, and run `adit reload {}`",
                labelOf(peer), peer.presharedKeyFile, server.named.interface);
  }
  peer.presharedKey = key;
  if (peer.location.file && *peer.location.file == server.named.file.string()) {
    return rotatedInPlace(server, peer);
  }
  auto place = placeOf(peer.location, labelOf(peer), server.named.file);
  return place ? rotatedThere(server, peer, *place) : tl::unexpected(place.error());
}

/// The key alone on standard output, so that a pipe can bring it to the other side.
int tellOtherSide(const PeerConfig& peer, const crypto::PresharedKey& key) {
  remark(fmt::format(
      "{} has a new preshared key here. Within a minute, as root on the other side, with what this "
      "machine is called there:\n"
      "  adit peer rotate NAME --key -       and give it the line below\n"
      "The session that is up goes on meanwhile. Until both sides have the key no new one begins.",
      labelOf(peer)));
  return print(crypto::presharedKeyToBase64(key) + '\n');
}

std::optional<std::chrono::nanoseconds> handshakeOf(ControlClient& client,
                                                    const crypto::PublicKey& key) {
  const auto view = client.show(false);
  if (!view) return std::nullopt;
  for (const control::PeerSnapshot& peer : view->device.peers) {
    if (peer.publicKey == key) return peer.lastHandshake;
  }
  return std::nullopt;
}

/// A keepalive that is set, even to what it is, asks for a session.
void askForSession(ControlClient& client, const PeerConfig& peer) {
  control::DeviceChange change;
  control::PeerChange& each = change.peers.emplace_back();
  each.publicKey = peer.publicKey;
  each.persistentKeepalive = peer.persistentKeepalive;
  (void)client.set(change);
}

/// Of the side that has got the key: whether the two agree.
int awaitSession(const Server& server, const PeerConfig& peer) {
  constexpr auto kPatience = std::chrono::seconds(15);
  constexpr auto kInterval = std::chrono::milliseconds(100);
  auto client = ControlClient::connect(server.named.interface);
  const auto before = client ? handshakeOf(*client, peer.publicKey) : std::nullopt;
  if (!before || peer.persistentKeepalive == 0) {
    return print("the key is in force with the next session\n");
  }
  askForSession(*client, peer);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < until) {
    const auto now = handshakeOf(*client, peer.publicKey);
    if (now && *now > *before) return print("a session with the new key is up\n");
    std::this_thread::sleep_for(kInterval);
  }
  return complain(fmt::format(
      "no session with the new key: is it the one that {} has made? `adit status` tells more",
      labelOf(peer)));
}

}  // namespace

int rotatePeer(const RotateArguments& arguments) {
  const auto server = Server::find(arguments.interface);
  if (!server) return complain(server.error());
  const auto peer = peerCalled(server->config, arguments.peer);
  if (!peer) return complain(peer.error());
  const auto key = keyOf(arguments.key);
  if (!key) return complain(key.error());
  const auto lock = control::lockPeerFiles(server->named.file);
  if (!lock) return complain(lock.error());
  const auto notes = rotated(*server, *peer, *key);
  if (!notes) return complain(notes.error());
  for (const std::string& note : *notes) {
    remark(note);
  }
  return arguments.key.empty() ? tellOtherSide(*peer, *key) : awaitSession(*server, *peer);
}

}  // namespace adit::cli
