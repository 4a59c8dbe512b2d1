// peer rotate: a new preshared key on both sides of a running session.
#pragma once

#include <string>

namespace adit::cli {

struct RotateArguments {
  std::string peer;
  std::string interface;
  /// A file with the key that the other side has made, "-" for standard input; empty makes one.
  std::string key;
};

int rotatePeer(const RotateArguments& arguments);

}  // namespace adit::cli
