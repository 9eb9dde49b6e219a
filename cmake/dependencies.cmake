# Libraries that Tranche is built on; every one is in Debian 12.
find_package(PkgConfig REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS C)
find_package(Threads REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson>=2.13)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash>=0.8.0)
include(cmake/find_dnnl.cmake)
if(NOT TARGET DNNL::dnnl)
    message(FATAL_ERROR "oneDNN is missing (Debian: libdnnl-dev)")
endif()

set(TR_DEPENDENCIES DNNL::dnnl PkgConfig::JANSSON PkgConfig::XXHASH OpenMP::OpenMP_C
    Threads::Threads m)
