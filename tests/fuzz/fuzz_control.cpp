// adit's control protocol: whatever comes in, one line of JSON goes out.
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "control/control_protocol.hpp"

namespace {

class NoDevice final : public adit::control::DeviceApi {
 public:
  [[nodiscard]] adit::control::DeviceSnapshot snapshot() const override { return {}; }
  adit::Result<std::vector<std::string>> apply(const adit::control::DeviceChange&) override {
    return std::vector<std::string>{};
  }
  adit::Result<std::vector<std::string>> reload() override { return std::vector<std::string>{}; }
  adit::Result<std::vector<std::string>> down() override { return std::vector<std::string>{}; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  NoDevice device;
  const std::string answer = adit::control::handleControl(
      std::string_view(reinterpret_cast<const char*>(data), size), device);
  if (!answer.ends_with('\n') || answer.find('\n') != answer.size() - 1 ||
      !nlohmann::json::parse(answer).contains("ok")) {
    std::abort();
  }
  return 0;
}
