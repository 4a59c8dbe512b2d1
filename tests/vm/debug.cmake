# The module in kernels that look for errors (tools/debug-kernel), its source under the kernel's own
# tools, and built for the newest kernel that Debian has packaged. A kernel's first build takes a
# while; it stays in the cache.
add_test(NAME "debug: parts of tools/debug-kernel"
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/debug/test_parts.py)
set_tests_properties("debug: parts of tools/debug-kernel" PROPERTIES LABELS vm TIMEOUT 60)

if(NOT ADIT_TEST_FULL)
  return()
endif()

set(debug_kernel ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/debug-kernel)

# adit_debug_test(NAME KERNEL SECONDS [OPTION...] -- COMMAND...): what the kernel reports fails the
# test as well as the command does. `seconds` is the command's limit in the guest.
function(adit_debug_test name kernel seconds)
  # The module is built first, and an emulated kernel with checks boots for long.
  math(EXPR limit "${seconds} + 1500")
  set(test "debug/${kernel}: ${name}")
  add_test(NAME ${test}
    COMMAND ${debug_kernel} run ${kernel} --skip --build-dir ${CMAKE_BINARY_DIR} --build-module
      --timeout ${seconds} ${ARGN})
  set_tests_properties(${test} PROPERTIES
    LABELS "vm;debug" TIMEOUT ${limit} PROCESSORS 2 SKIP_RETURN_CODE 77
    FIXTURES_REQUIRED "debug kernel ${kernel}")
endfunction()

foreach(kernel uml kasan kcsan)
  add_test(NAME "debug/${kernel}: build" COMMAND ${debug_kernel} build --skip ${kernel})
  set_tests_properties("debug/${kernel}: build" PROPERTIES
    LABELS "vm;debug" TIMEOUT 7200 PROCESSORS 2 SKIP_RETURN_CODE 77
    FIXTURES_SETUP "debug kernel ${kernel}")
  # That the silence of the tests below means something.
  add_test(NAME "debug/${kernel}: planted errors"
    COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/debug/test_planted.py
      --skip --build-dir ${CMAKE_BINARY_DIR} ${kernel})
  set_tests_properties("debug/${kernel}: planted errors" PROPERTIES
    LABELS "vm;debug" TIMEOUT 1800 PROCESSORS 2 SKIP_RETURN_CODE 77
    FIXTURES_REQUIRED "debug kernel ${kernel}")
  set(program tests/vm/module/check_module.py)
  if(kernel STREQUAL uml)
    set(program tests/vm/debug/check_loaded_once.py)
  endif()
  adit_debug_test("the module's own tests" ${kernel} 3600
    --env ADIT_TEST_CYCLES=6 --env ADIT_TEST_SECONDS=20
    -- python3 ${program})
endforeach()

# Every allocation of the control path fails once.
adit_debug_test("allocations that fail" uml 3000 -- python3 tests/vm/debug/fail_allocations.py)

set(scenarios test_interop.py:initiator_psk,responder_psk,roaming_* test_adit.py:suite_*)
foreach(kernel uml kasan kcsan)
  adit_debug_test("scenarios with wireguard.ko and adit" ${kernel} 3000
    --env ADIT_TEST_BACKEND=kernel --env ADIT_LAB_PEER=kernel
    -- python3 tests/vm/run_scenarios.py ${scenarios})
endforeach()

# sparse and checkpatch.
add_test(NAME "debug: the module's source"
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/debug/check_source.py
    --skip --build-dir ${CMAKE_BINARY_DIR})
set_tests_properties("debug: the module's source" PROPERTIES
  LABELS "vm;debug" TIMEOUT 3600 PROCESSORS 2 SKIP_RETURN_CODE 77)

add_test(NAME "newest kernel: build" COMMAND ${PROJECT_SOURCE_DIR}/tools/newest-kernel)
set_tests_properties("newest kernel: build" PROPERTIES
  LABELS "vm;debug" TIMEOUT 3600 PROCESSORS 2 SKIP_RETURN_CODE 77)
