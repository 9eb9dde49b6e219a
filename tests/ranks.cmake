# Tests that run on ranks of the MPI that the build uses; label: ranks.
#   TR_LAUNCH        tests/launch.sh, whose first argument is TR_MPIRUN
#   TR_CHECK_RANKS   tests/check_ranks.sh, for ranks that end with an error
set(TR_LAUNCH ${CMAKE_CURRENT_LIST_DIR}/launch.sh)
set(TR_CHECK_RANKS ${CMAKE_CURRENT_LIST_DIR}/check_ranks.sh)

# What the MPI libraries lose or race for is theirs. Beside AddressSanitizer, a library
# keeps their plug-ins, so that the module tells who lost something (keep_modules.c); it
# comes before the sanitizer's own. (Frames stay on the stack: see ASAN_OPTIONS in
# tools/test.sh, in whose place these stand.)
set(TR_TSAN_OPTIONS TSAN_OPTIONS=suppressions=${CMAKE_CURRENT_LIST_DIR}/tsan.supp)
set(TR_RANKS_ENVIRONMENT OMP_WAIT_POLICY=passive CUDA_VISIBLE_DEVICES= ${TR_TSAN_OPTIONS})
if(TRANCHE_SANITIZE MATCHES "address")
    add_library(keep_modules MODULE ${CMAKE_CURRENT_LIST_DIR}/keep_modules.c)
    set_target_properties(keep_modules PROPERTIES C_STANDARD 17 C_EXTENSIONS ON
        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
    target_compile_definitions(keep_modules PRIVATE _GNU_SOURCE)
    target_compile_options(keep_modules PRIVATE -Wall -Wextra -O1 -U_FORTIFY_SOURCE
        -fno-builtin -fno-omit-frame-pointer -fno-optimize-sibling-calls)
    list(APPEND TR_RANKS_ENVIRONMENT
        LD_PRELOAD=${CMAKE_CURRENT_BINARY_DIR}/libkeep_modules.so
        ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=1:detect_stack_use_after_return=0:quarantine_size_mb=16:thread_local_quarantine_size_kb=64:malloc_context_size=10
        LSAN_OPTIONS=suppressions=${CMAKE_CURRENT_LIST_DIR}/lsan.supp:print_suppressions=0)
endif()
# Open MPI 5 wants memory at an address that ThreadSanitizer keeps for itself.
if(TRANCHE_SANITIZE MATCHES "thread")
    list(APPEND TR_RANKS_ENVIRONMENT PMIX_MCA_gds=hash)
endif()

add_custom_target(tests-ranks) # builds what runs on ranks
add_dependencies(tests-ranks tranche-program)

# tr_ranks_program(<target> <file>): a plain program that runs on ranks
function(tr_ranks_program target file)
    add_executable(${target} ${file})
    tr_target_options(${target})
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src
        ${CMAKE_SOURCE_DIR}/tests)
    target_link_libraries(${target} PRIVATE tranche-tests ${TR_DEPENDENCIES})
    add_dependencies(tests-ranks ${target})
endfunction()

# tr_ranks_numbers(<result> <number>...): how many ranks a program runs on. Sanitizers take
# the most alone: the shards and rings of fewer ranks are the same code, and each rank is
# one more slow process.
function(tr_ranks_numbers result)
    set(numbers ${ARGN})
    if(TRANCHE_SANITIZE)
        list(POP_BACK numbers numbers)
    endif()
    set(${result} ${numbers} PARENT_SCOPE)
endfunction()

# tr_ranks_test(<name> <ranks> <labels> <command>...): the command on so many ranks. Ranks
# wait for their launcher and each other most of the time, so another test may run beside
# them.
function(tr_ranks_test name ranks labels)
    add_test(NAME ${name} COMMAND sh ${TR_LAUNCH} ${TR_MPIRUN} ${ranks} ${ARGN})
    tr_ranks_properties(${name} "${labels}")
endfunction()

function(tr_ranks_properties name labels)
    set_tests_properties(${name} PROPERTIES LABELS "ranks;${labels}" TIMEOUT 300
        ENVIRONMENT "${TR_RANKS_ENVIRONMENT}")
endfunction()
