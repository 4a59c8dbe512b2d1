// WireGuard's text protocol: no input may crash it, and a refused one changes nothing.
#include <cstdlib>
#include <string_view>

#include "control/uapi.hpp"

namespace {

class NoDevice final : public adit::control::DeviceApi {
 public:
  [[nodiscard]] adit::control::DeviceSnapshot snapshot() const override { return {}; }
  adit::Result<std::vector<std::string>> apply(const adit::control::DeviceChange&) override {
    ++applied;
    return std::vector<std::string>{};
  }
  adit::Result<std::vector<std::string>> reload() override { return std::vector<std::string>{}; }
  adit::Result<std::vector<std::string>> down() override { return std::vector<std::string>{}; }
  unsigned applied = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  NoDevice device;
  const std::string_view request(reinterpret_cast<const char*>(data), size);
  const std::string answer = adit::control::handleUapi(request, device);
  const bool succeeded = answer.ends_with("errno=0\n\n");
  if (!answer.ends_with("\n\n") || (device.applied != 0 && !succeeded)) {
    std::abort();
  }
  return 0;
}
