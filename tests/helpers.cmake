# What tests of a room share: <room>-helpers, a static library of the .c files beside
# them, so that each is compiled once.

# tr_test_options(<target>): of programs of tests and of their helpers
function(tr_test_options target)
    tr_target_options(${target})
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/include
        ${CMAKE_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR})
    target_compile_definitions(${target} PRIVATE
        TR_TEST_DATA="${CMAKE_CURRENT_SOURCE_DIR}/data"
        TR_PROGRAM="${CMAKE_BINARY_DIR}/tranche"
        TR_LAUNCH="${TR_LAUNCH}" TR_MPIRUN="${TR_MPIRUN}"
        TR_EXAMPLES="${CMAKE_BINARY_DIR}/examples"
        TR_BENCH="${CMAKE_BINARY_DIR}/bench"
        TR_FAIL_NTH="${TR_FAIL_NTH}"
        TR_HANGUP_HANDLER="${TR_HANGUP_HANDLER}"
        TR_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
endfunction()

# tr_quick_options(<target>): of programs of tests, most of whose time is the library's.
# Hundreds of them are built for each run of the suite. So gold links them where it is
# there, in a fifth of the time, and for sanitizers they are not optimized: but for those
# that reckon what an op comes to.
find_program(TR_GOLD ld.gold)
mark_as_advanced(TR_GOLD)
function(tr_quick_options target)
    if(TRANCHE_SANITIZE AND NOT target MATCHES "^(ops|backend)-")
        target_compile_options(${target} PRIVATE -O0)
    endif()
    if(TR_GOLD)
        target_link_options(${target} PRIVATE -fuse-ld=gold)
    endif()
endfunction()

# tr_helpers(<room> <file>...): the room's library, of these files
function(tr_helpers room)
    add_library(${room}-helpers STATIC EXCLUDE_FROM_ALL ${ARGN})
    tr_test_options(${room}-helpers)
    target_link_libraries(${room}-helpers PUBLIC ${TR_DEPENDENCIES} PkgConfig::CMOCKA)
endfunction()

file(GLOB rooms CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*/test_*.c)
list(TRANSFORM rooms REPLACE "^.*/([a-z]+)/[^/]*$" "\\1")
list(REMOVE_DUPLICATES rooms)
list(REMOVE_ITEM rooms guard cuda) # objects, in place of files of the library
foreach(room ${rooms})
    file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${room}/*.c)
    list(FILTER files EXCLUDE REGEX "/test_[^/]*\\.c$")
    if(room STREQUAL "ops") # with the cases of all ops
        list(APPEND files ${TR_CASE_SOURCES})
    endif()
    if(room STREQUAL "report") # of the program, and so in no library
        list(APPEND files ${TR_REPORT_SOURCES} $<TARGET_OBJECTS:page-files>)
    endif()
    if(files)
        tr_helpers(${room} ${files})
    else()
        add_library(${room}-helpers INTERFACE)
    endif()
endforeach()

# They plan and run the graph's test model.
target_link_libraries(plan-helpers PUBLIC graph-helpers)
foreach(room exec sim planner train)
    target_link_libraries(${room}-helpers PUBLIC plan-helpers)
endforeach()
target_link_libraries(calibrate-helpers INTERFACE plan-helpers)
# They train what they check and ask.
foreach(room check infer)
    target_link_libraries(${room}-helpers INTERFACE train-helpers)
endforeach()
