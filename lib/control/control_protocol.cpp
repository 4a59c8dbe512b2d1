#include "control/control_protocol.hpp"

#include <sodium.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "control/control_protocol_members.hpp"

namespace adit::control {
namespace {

using Json = nlohmann::ordered_json;

/// Text that did not come from us, such as a path, need not be UTF-8.
std::string toLine(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string refusal(const Error& error) {
  return toLine(Json{{"ok", false}, {"error", error.message}, {"errno", error.code}});
}

/// Brackets outside of texts, before the parser allocates anything for them.
bool isTooDeep(std::string_view text) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxControlDepth) return true;
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return false;
}

Result<Json> parseLine(std::string_view line, std::size_t limit) {
  if (line.size() > limit) return fail("a line may have {} bytes; this one has more", limit);
  if (isTooDeep(line)) return fail("JSON nested deeper than {} levels", kMaxControlDepth);
  Json json = Json::parse(line, nullptr, false);
  if (json.is_discarded()) return fail("the line is not valid JSON");
  if (!json.is_object()) return fail("expected a JSON object");
  return json;
}

/// For who is in the group and not root.
std::string notForReaders(std::string_view what) {
  return refusal(Error{fmt::format("only root may {}: run it with sudo", what), EPERM});
}

std::string answerShow(Members& request, DeviceApi& device, bool mayAskForKeys, Access access) {
  bool keys = false;
  if (mayAskForKeys) request.read("keys", keys);
  request.refuseUnknown();
  if (auto done = request.finish(); !done) return refusal(done.error());
  if (keys && access != Access::Full) return notForReaders("see private and preshared keys");
  return toLine(Json{{"ok", true}, {"device", snapshotToJson(device.snapshot(), keys)}});
}

std::string answerNotes(const Result<std::vector<std::string>>& outcome) {
  if (!outcome) return refusal(outcome.error());
  return toLine(Json{{"ok", true}, {"notes", *outcome}});
}

std::string answerSet(Members& request, DeviceApi& device) {
  request.require("change");
  const Json* json = request.find("change");
  request.refuseUnknown();
  if (auto done = request.finish(); !done) return refusal(done.error());
  const auto change = changeFromJson(*json);
  if (!change) return refusal(change.error());
  return answerNotes(device.apply(*change));
}

std::string answerSaved(Members& request, DeviceApi& device) {
  std::vector<config::FileStamp> files;
  request.require("files");
  request.elements("files", [&](const Json& file) -> Result<void> {
    return stampFromJson(file).map(
        [&](config::FileStamp stamp) { files.push_back(std::move(stamp)); });
  });
  request.refuseUnknown();
  if (auto done = request.finish(); !done) return refusal(done.error());
  device.saved(std::move(files));
  return answerNotes(std::vector<std::string>{});
}

std::string answer(const Json& json, DeviceApi& device, Access access) {
  Members request(json, "request");
  std::string operation;
  request.require("op");
  request.read("op", operation);
  if (auto done = request.finish(); !done) return refusal(done.error());
  if (operation == "show") return answerShow(request, device, true, access);
  if (operation == "status") return answerShow(request, device, false, access);
  if (access != Access::Full) return notForReaders("change a tunnel");
  if (operation == "set") return answerSet(request, device);
  if (operation == "saved") return answerSaved(request, device);
  if (operation != "reload" && operation != "down") {
    return refusal(Error{fmt::format("unknown operation \"{}\"; there are show, status, set, "
                                     "reload, saved and down",
                                     operation),
                         0});
  }
  request.refuseUnknown();
  if (auto done = request.finish(); !done) return refusal(done.error());
  return answerNotes(operation == "reload" ? device.reload() : device.down());
}

/// The answer's object, or the error that it carries.
Result<Json> parseAnswer(std::string_view line) {
  auto json = parseLine(line, kMaxControlResponse);
  if (!json) return wrapError(json.error(), "the daemon's answer");
  Members members(*json, "the daemon's answer");
  bool ok = false;
  std::string message;
  std::int64_t code = 0;
  members.require("ok");
  members.read("ok", ok);
  members.read("error", message);
  if (const Json* number = members.find("errno"); number && number->is_number_integer()) {
    code = number->get<std::int64_t>();
  }
  if (auto done = members.finish(); !done) return tl::unexpected(done.error());
  if (!ok)
    return tl::unexpected(
        Error{message, static_cast<int>(std::clamp<std::int64_t>(code, 0, 4095))});
  return json;
}

}  // namespace

std::string handleControl(std::string_view line, DeviceApi& device, Access access) {
  const auto json = parseLine(line, kMaxControlRequest);
  return json ? answer(*json, device, access) : refusal(json.error());
}

std::string encodeShowRequest(bool keys) {
  return toLine(Json{{"op", "show"}, {"keys", keys}});
}

std::string encodeStatusRequest() {
  return toLine(Json{{"op", "status"}});
}

std::string encodeSetRequest(const DeviceChange& change) {
  return toLine(Json{{"op", "set"}, {"change", changeToJson(change)}});
}

std::string encodeSavedRequest(const std::vector<config::FileStamp>& files) {
  return toLine(Json{{"op", "saved"}, {"files", stampsToJson(files)}});
}

std::string encodePlainRequest(std::string_view operation) {
  return toLine(Json{{"op", operation}});
}

Result<Json> decodeDeviceJson(std::string_view line) {
  auto json = parseAnswer(line);
  if (!json) return tl::unexpected(json.error());
  const auto device = json->find("device");
  if (device == json->end()) return fail("the daemon's answer: \"device\" is missing");
  return std::move(*device);
}

Result<DeviceView> decodeShowResponse(std::string_view line) {
  return decodeDeviceJson(line).and_then(viewFromJson);
}

Result<std::vector<std::string>> decodeNotesResponse(std::string_view line) {
  const auto json = parseAnswer(line);
  if (!json) return tl::unexpected(json.error());
  std::vector<std::string> notes;
  Members members(*json, "the daemon's answer");
  members.texts("notes", [&](const std::string& note) -> Result<void> {
    notes.push_back(note);
    return {};
  });
  if (auto done = members.finish(); !done) return tl::unexpected(done.error());
  return notes;
}

}  // namespace adit::control
