# TR_VERSION: the version, as include/tranche/version.h has it.
set(TR_VERSION "")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${CMAKE_CURRENT_LIST_DIR}/../include/tranche/version.h)
foreach(part MAJOR MINOR PATCH)
    file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../include/tranche/version.h line
        REGEX "^#define TRANCHE_VERSION_${part} [0-9]+$")
    string(REGEX REPLACE ".* " "" line "${line}")
    if(line STREQUAL "")
        message(FATAL_ERROR "include/tranche/version.h has no TRANCHE_VERSION_${part}")
    endif()
    list(APPEND TR_VERSION ${line})
endforeach()
list(JOIN TR_VERSION "." TR_VERSION)
