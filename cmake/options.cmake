# Options of the build, and compiler flags of every target of ours.
option(BUILD_SHARED_LIBS "a shared library instead of a static one" OFF)
option(TRANCHE_WERROR "warnings are errors" OFF)
set(TRANCHE_SANITIZE "" CACHE STRING "address,undefined or thread: build with sanitizers")
option(TRANCHE_FUZZ "build the fuzz targets (tests/fuzz), and no other test" OFF)
# Sanitizers check the same memory, arithmetic and threads at -O1, and name lines by -g1;
# with more, GCC takes two or three times as long. Fuzz targets run longer than that.
set(TR_SANITIZED_OPTIMIZATION "")
if(TRANCHE_SANITIZE AND NOT TRANCHE_FUZZ)
    set(TR_SANITIZED_OPTIMIZATION -O1 -g1)
endif()

# Tests reach inside of the library by a shared one that has all its names; else only what
# is marked TR_API is seen from outside.
option(TRANCHE_TESTS "build the tests" OFF)
if(BUILD_SHARED_LIBS AND NOT TRANCHE_TESTS)
    set(CMAKE_C_VISIBILITY_PRESET hidden)
endif()

function(tr_target_options target)
    set_target_properties(${target} PROPERTIES C_STANDARD 17 C_STANDARD_REQUIRED ON
        C_EXTENSIONS ON POSITION_INDEPENDENT_CODE ON)
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra
        -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wvla
        -Wformat=2 -Wundef $<$<BOOL:${TRANCHE_WERROR}>:-Werror> -fno-math-errno
        -ffp-contract=fast>)
    if(TRANCHE_SANITIZE)
        target_compile_options(${target} PRIVATE -fsanitize=${TRANCHE_SANITIZE}
            -fno-omit-frame-pointer -fno-sanitize-recover=all
            ${TR_SANITIZED_OPTIMIZATION})
        target_link_options(${target} PRIVATE -fsanitize=${TRANCHE_SANITIZE})
    endif()
endfunction()
