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
  target_compile_options(adit_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(adit_flags INTERFACE -fsanitize=address,undefined)
endif()

# adit_library(NAME SOURCES... [PUBLIC deps...] [PRIVATE deps...])
# One folder of lib/ is one static library; its public dependencies are the only
# folders whose headers it may include.
function(adit_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC adit_flags ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
endfunction()
