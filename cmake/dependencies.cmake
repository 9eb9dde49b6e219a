# Libraries that Tranche is built on; every one is in Debian 12 and 13.
find_package(PkgConfig REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS C)
find_package(Threads REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson>=2.13)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash>=0.8.0)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8>=10.32)
include(cmake/find_dnnl.cmake)
if(NOT TARGET DNNL::dnnl)
    message(FATAL_ERROR "oneDNN is missing (Debian: libdnnl-dev)")
endif()

# Of the files for the major versions of oneDNN one is compiled (backend/cpu/dnnl.h).
get_target_property(include DNNL::dnnl INTERFACE_INCLUDE_DIRECTORIES)
find_file(TR_DNNL_VERSION_FILE oneapi/dnnl/dnnl_version.h PATHS ${include}
    NO_DEFAULT_PATH)
mark_as_advanced(TR_DNNL_VERSION_FILE)
set(line "")
if(TR_DNNL_VERSION_FILE)
    file(STRINGS ${TR_DNNL_VERSION_FILE} line REGEX "DNNL_VERSION_MAJOR +[0-9]+$")
endif()
string(REGEX MATCH "[0-9]+$" TR_DNNL_MAJOR "${line}")
if(TR_DNNL_MAJOR EQUAL 2)
    set(TR_DNNL_EXCLUDED "/src/backend/cpu/dnnl3\\.c$")
elseif(TR_DNNL_MAJOR EQUAL 3)
    set(TR_DNNL_EXCLUDED "/src/backend/cpu/dnnl2\\.c$")
else()
    message(FATAL_ERROR "this oneDNN (version \"${TR_DNNL_MAJOR}\", ${include}) is not "
        "supported: install 2.6 or later, or 3 (Debian: libdnnl-dev)")
endif()

set(TR_DEPENDENCIES DNNL::dnnl PkgConfig::JANSSON PkgConfig::XXHASH
    PkgConfig::PCRE2 OpenMP::OpenMP_C
    Threads::Threads m)
