# One set of flags for all of our own targets: link `adit_flags`.
add_library(adit_flags INTERFACE)
target_include_directories(adit_flags INTERFACE ${PROJECT_SOURCE_DIR}/lib)
target_compile_features(adit_flags INTERFACE cxx_std_20)
target_compile_options(adit_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -Wold-style-cast -Wcast-qual -Woverloaded-virtual -fstack-protector-strong)
if(ADIT_WERROR)
  target_compile_options(adit_flags INTERFACE -Werror)
endif()
if(ADIT_SANITIZE)
  # gcc takes what the sanitizers insert for reads of uninitialized memory.
  target_compile_options(adit_flags INTERFACE -Wno-maybe-uninitialized)
  target_compile_options(adit_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(adit_flags INTERFACE -fsanitize=address,undefined)
endif()

# The tables of the dynamic linker are read-only before main() begins.
target_link_options(adit_flags INTERFACE LINKER:-z,relro,-z,now)

# Line numbers in backtraces are all that a release build needs of debugging information.
string(REPLACE "-g" "-g1" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")

# Code that runs per command and not per packet: half the optimization, half the build time.
add_library(adit_cold INTERFACE)
target_compile_options(adit_cold INTERFACE $<IF:$<CONFIG:Debug>,-O0,-O1>)
# Tests and test tools.
add_library(adit_test_code INTERFACE)
target_compile_options(adit_test_code INTERFACE -O0)

# adit_library(NAME [COLD] SOURCES... [PUBLIC deps...] [PRIVATE deps...])
# One folder of lib/ is one static library; its public dependencies are the only
# folders whose headers it may include.
function(adit_library name)
  cmake_parse_arguments(ARG "COLD" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC adit_flags ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  if(ARG_COLD)
    target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:adit_cold>)
  endif()
endfunction()
