# TRANCHE_URING: whether NVMe is read and written by io_uring. Without it, and where the
# kernel does not permit it, threads do that.
set(TRANCHE_URING AUTO CACHE STRING "io_uring: AUTO (where liburing is found), ON, OFF")

set(TR_URING_FOUND FALSE)
if(TRANCHE_URING)
    if(TRANCHE_URING STREQUAL "AUTO")
        pkg_check_modules(URING IMPORTED_TARGET liburing>=2.0)
    else()
        pkg_check_modules(URING REQUIRED IMPORTED_TARGET liburing>=2.0)
    endif()
    set(TR_URING_FOUND ${URING_FOUND})
endif()

if(TR_URING_FOUND)
    set(TR_URING_EXCLUDED "/src/backend/host/nvme_uring_none\\.c$")
    set(TR_URING_LIBRARY PkgConfig::URING)
else()
    set(TR_URING_EXCLUDED "/src/backend/host/nvme_uring\\.c$")
    set(TR_URING_LIBRARY "")
endif()
