// Addresses that the tests write as text.
#pragma once

#include "util/address.hpp"

namespace adit::test {

inline IpAddress ip(const char* text) {
  return *IpAddress::parse(text);
}

}  // namespace adit::test
