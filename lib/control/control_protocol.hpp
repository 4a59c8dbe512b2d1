// adit's own control protocol: one JSON object per line in each direction.
//
// {"op":"show","keys":false}             → {"ok":true,"device":{...}}
// {"op":"status"}                        → the same; never with keys
// {"op":"set","change":{...}}            → {"ok":true,"notes":["..."]}
// {"op":"saved","files":[...]}           → {"ok":true,"notes":[]}
// {"op":"reload"} and {"op":"down"}      → {"ok":true,"notes":["..."]}
// anything that fails                    → {"ok":false,"error":"...","errno":N}
//
// Private and preshared keys are in an answer only when "show" asks with "keys":true. Clients with
// Access::Read have status, and show without keys.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/access.hpp"
#include "control/device_api.hpp"

namespace adit::control {

/// Bytes of one request line; a longer one is refused.
inline constexpr std::size_t kMaxControlRequest = std::size_t{8} << 20;
/// Bytes of one answer.
inline constexpr std::size_t kMaxControlResponse = std::size_t{64} << 20;
/// Nested arrays and objects; the protocol needs 5.
inline constexpr std::size_t kMaxControlDepth = 16;

/// Answers one line (with or without its newline) with one line that ends in a newline. Never
/// throws; a malformed request is answered with an error and the connection may go on.
std::string handleControl(std::string_view line, DeviceApi& device, Access access = Access::Full);

/// A device as a client sees it: keys that were not asked for are known to exist only.
struct DeviceView {
  /// `privateKey` and the peers' `presharedKey` are set only when they were asked for.
  DeviceSnapshot device;
  std::optional<crypto::PublicKey> publicKey;
  bool hasPrivateKey = false;
  /// Parallel to device.peers.
  std::vector<bool> hasPresharedKey;
};

/// Everything that `snapshot` holds, with nothing hidden.
DeviceView viewOf(DeviceSnapshot snapshot);

/// What a client sends; each is one line with its newline.
std::string encodeShowRequest(bool keys);
std::string encodeStatusRequest();
std::string encodeSetRequest(const DeviceChange& change);
/// The configuration's files as `adit save` left them.
std::string encodeSavedRequest(const std::vector<config::FileStamp>& files);
/// "reload" or "down".
std::string encodePlainRequest(std::string_view operation);

/// What a client gets; the daemon's own error is passed on as it is.
Result<DeviceView> decodeShowResponse(std::string_view line);
/// "device" as it came, with members that this client does not know.
Result<nlohmann::ordered_json> decodeDeviceJson(std::string_view line);
/// The answer to set, reload and down.
Result<std::vector<std::string>> decodeNotesResponse(std::string_view line);

/// The members of "device" above. `status --json` prints this object with ages added.
nlohmann::ordered_json snapshotToJson(const DeviceSnapshot& snapshot, bool keys);
/// Unknown members are skipped: the daemon may be newer than its client.
Result<DeviceView> viewFromJson(const nlohmann::ordered_json& json);
/// Files as their path, size and hash.
nlohmann::ordered_json stampsToJson(const std::vector<config::FileStamp>& files);
Result<config::FileStamp> stampFromJson(const nlohmann::ordered_json& json);
nlohmann::ordered_json changeToJson(const DeviceChange& change);
/// Unknown members are errors: a change that is understood by half must not be made.
Result<DeviceChange> changeFromJson(const nlohmann::ordered_json& json);

}  // namespace adit::control
