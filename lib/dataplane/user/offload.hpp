// Which offloads are used: all that work, less what the environment switches off.
#pragma once

#include <string_view>

namespace adit::dataplane::user {

struct OffloadSwitches {
  bool udpSegmentation = true;  ///< UDP_SEGMENT sends
  bool udpMerging = true;       ///< UDP_GRO receives
  bool tunSegmentation = true;  ///< super-packets from and to the TUN device
  bool tunMerging = true;       ///< super-packets to the TUN device
  bool selfTest = true;         ///< check at start that UDP_SEGMENT does not corrupt

  /// A comma-separated list of what not to use: "udp-segmentation", "udp-merging",
  /// "tun-segmentation", "tun-merging", "self-test", or "off" for all of them.
  static OffloadSwitches parse(std::string_view text);
  /// From the variable ADIT_OFFLOAD.
  static OffloadSwitches fromEnvironment();
};

/// Sends a segmented buffer over loopback and compares what arrives. False when it arrives changed:
/// such kernels exist. True also where the test cannot run, as without a loopback interface.
bool udpSegmentationIsSound();

}  // namespace adit::dataplane::user
