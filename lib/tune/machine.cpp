#include "tune/machine.hpp"

#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include "tune/text.hpp"
#include "util/unique_fd.hpp"

namespace adit::tune {
namespace {

class KernelNicControl final : public NicControl {
 public:
  [[nodiscard]] std::optional<Channels> channels(const std::string& nic) const override {
    ethtool_channels answer{};
    answer.cmd = ETHTOOL_GCHANNELS;
    if (!ask(nic, answer) || answer.max_combined == 0) return std::nullopt;
    return Channels{answer.combined_count, answer.max_combined};
  }

  Result<void> setCombined(const std::string& nic, unsigned count) override {
    ethtool_channels request{};
    request.cmd = ETHTOOL_GCHANNELS;
    if (auto read = ask(nic, request); !read) return read;
    request.cmd = ETHTOOL_SCHANNELS;
    request.combined_count = count;
    return ask(nic, request);
  }

 private:
  static Result<void> ask(const std::string& nic, ethtool_channels& channels) {
    ifreq request{};
    if (nic.empty() || nic.size() >= IFNAMSIZ) return fail("\"{}\" is no NIC", nic);
    std::memcpy(request.ifr_name, nic.data(), nic.size());
    request.ifr_data = reinterpret_cast<char*>(&channels);
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket || ::ioctl(socket.get(), SIOCETHTOOL, &request) != 0) {
      return failErrno(errno, "{}: number of queues", nic);
    }
    return {};
  }
};

class NoNicControl final : public NicControl {
 public:
  [[nodiscard]] std::optional<Channels> channels(const std::string&) const override {
    return std::nullopt;
  }
  Result<void> setCombined(const std::string& nic, unsigned) override {
    return failErrno(EOPNOTSUPP, "{}: number of queues", nic);
  }
};

std::string defaultNicV4(const Files& files) {
  constexpr std::uint64_t kUp = 1;  // RTF_UP
  std::string best;
  std::uint64_t bestMetric = std::numeric_limits<std::uint64_t>::max();
  const auto table = files.read("proc/net/route");
  if (!table) return best;
  for (const std::string_view line : split(*table, '\n')) {
    // Iface Destination Gateway Flags RefCnt Use Metric Mask
    const auto fields = words(line);
    if (fields.size() < 8 || fields[1] != "00000000" || fields[7] != "00000000") continue;
    const auto metric = parseUnsigned(fields[6]);
    const auto flags = parseHex(fields[3]);
    if (metric && flags && (*flags & kUp) != 0 && *metric < bestMetric) {
      best = fields[0];
      bestMetric = *metric;
    }
  }
  return best;
}

std::string defaultNicV6(const Files& files) {
  const auto table = files.read("proc/net/ipv6_route");
  if (!table) return {};
  for (const std::string_view line : split(*table, '\n')) {
    // destination length source length next-hop metric refcnt use flags device
    const auto fields = words(line);
    if (fields.size() < 10 || fields[1] != "00" || fields[9] == "lo") continue;
    if (fields[0].find_first_not_of('0') == std::string_view::npos) return std::string(fields[9]);
  }
  return {};
}

/// Adds the devices below `name` that have hardware. `depth` ends what a loop would not.
void addHardwareBelow(const Files& files, const std::string& name, unsigned depth,
                      std::vector<std::string>& found) {
  constexpr std::string_view kLower = "lower_";
  const std::string folder = "sys/class/net/" + name;
  if (!files.resolve(folder + "/device").empty()) {
    if (std::ranges::find(found, name) == found.end()) found.push_back(name);
    return;
  }
  if (depth == 0) return;
  for (const std::string& entry : files.list(folder)) {
    if (entry.starts_with(kLower)) {
      addHardwareBelow(files, entry.substr(kLower.size()), depth - 1, found);
    }
  }
}

}  // namespace

Result<std::string> RootedFiles::read(const std::string& path) const {
  const std::string name = root_ / path;
  const UniqueFd file(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return failErrno(errno, "{}", name);
  std::string content;
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t length = ::read(file.get(), buffer.data(), buffer.size());
    if (length < 0) return failErrno(errno, "{}", name);
    if (length == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(length));
  }
}

Result<void> RootedFiles::write(const std::string& path, const std::string& value) {
  const std::string name = root_ / path;
  const UniqueFd file(::open(name.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return failErrno(errno, "{}", name);
  // In one piece: the kernel takes each write for a whole value.
  if (::write(file.get(), value.data(), value.size()) != static_cast<ssize_t>(value.size())) {
    return failErrno(errno, "{}", name);
  }
  return {};
}

std::vector<std::string> RootedFiles::list(const std::string& path) const {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator at(root_ / path, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    names.push_back(at->path().filename());
  }
  return names;
}

std::string RootedFiles::resolve(const std::string& path) const {
  std::error_code error;
  const std::filesystem::path root = std::filesystem::canonical(root_, error);
  const std::filesystem::path found = std::filesystem::canonical(root_ / path, error);
  if (error) return {};
  std::string relative = found.lexically_relative(root);
  // A recorded machine may not lead out of its folder.
  return relative.starts_with("..") ? std::string() : relative;
}

std::unique_ptr<NicControl> kernelNicControl() {
  return std::make_unique<KernelNicControl>();
}

std::unique_ptr<NicControl> noNicControl() {
  return std::make_unique<NoNicControl>();
}

std::string defaultNic(const Files& files) {
  const std::string nic = defaultNicV4(files);
  return nic.empty() ? defaultNicV6(files) : nic;
}

std::vector<std::string> nicsBehind(const Files& files, const std::string& name) {
  // A VLAN on a bond on a bridge is three deep.
  constexpr unsigned kDeepest = 8;
  std::vector<std::string> found;
  addHardwareBelow(files, name, kDeepest, found);
  std::ranges::sort(found);
  return found.empty() ? std::vector{name} : found;
}

}  // namespace adit::tune
