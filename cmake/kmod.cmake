# adit.ko, built beside the programs for every kernel that the tests know:
#   cmake --build BUILD --target kmod        all of them
#   cmake --build BUILD --target kmod-6.12   the newest 6.12 of the cache, else fetched
# The headers are fetched with apt and not installed; see tools/vm.
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
set(ADIT_KERNELS 6.1 6.12 CACHE STRING "Debian kernel series that adit.ko is built and tested for")

add_custom_target(kmod)
foreach(kernel IN LISTS ADIT_KERNELS)
  add_custom_target(kmod-${kernel}
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/vm
      --kernel ${kernel} --build-dir ${CMAKE_BINARY_DIR} --build-module
    USES_TERMINAL VERBATIM)
  add_dependencies(kmod kmod-${kernel})
endforeach()
