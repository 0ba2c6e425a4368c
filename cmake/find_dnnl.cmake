# Not find_package(dnnl): Debian's config file asks for OpenCL headers that libdnnl-dev does not bring and a CPU engine
# does not need. Header and library suffice, for 2.6 and 3.x alike.
if(NOT TARGET DNNL::dnnl)
  find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp REQUIRED)
  find_library(DNNL_LIBRARY dnnl REQUIRED)
  add_library(DNNL::dnnl UNKNOWN IMPORTED GLOBAL)
  set_target_properties(DNNL::dnnl PROPERTIES
    IMPORTED_LOCATION ${DNNL_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
endif()
