# DNNL::dnnl, from its library and header. The package file that Debian ships with it
# asks for OpenCL's development files, which nothing here uses.
if(NOT TARGET DNNL::dnnl)
    find_library(TR_DNNL_LIBRARY dnnl)
    find_path(TR_DNNL_INCLUDE oneapi/dnnl/dnnl.h)
    mark_as_advanced(TR_DNNL_LIBRARY TR_DNNL_INCLUDE)
    if(TR_DNNL_LIBRARY AND TR_DNNL_INCLUDE)
        add_library(DNNL::dnnl UNKNOWN IMPORTED)
        set_target_properties(DNNL::dnnl PROPERTIES
            IMPORTED_LOCATION ${TR_DNNL_LIBRARY}
            INTERFACE_INCLUDE_DIRECTORIES ${TR_DNNL_INCLUDE})
    endif()
endif()
