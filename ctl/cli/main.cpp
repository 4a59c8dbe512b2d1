#include <exception>

#include "cli/output.hpp"
#include "cli/program.hpp"

int main(int argc, char** argv) {
  try {
    return adit::cli::run(argc, argv);
  } catch (const std::exception& error) {
    return adit::cli::complain(error.what());
  }
}
