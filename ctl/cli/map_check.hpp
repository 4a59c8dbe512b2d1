// map check: what is in the way of mappings.
#pragma once

#include <string>

namespace adit::cli {

struct MapCheckArguments {
  std::string name;
  std::string listen;
  bool fix = false;
  bool yes = false;
  bool json = false;
};

int mapCheck(const MapCheckArguments& arguments);

}  // namespace adit::cli
