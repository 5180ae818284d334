# find_package(understudy) of the C archive: the imported targets understudy::understudy (shared) and understudy::static.
#
#   list(APPEND CMAKE_PREFIX_PATH path/to/understudy-c)
#   find_package(understudy REQUIRED)
#   target_link_libraries(game PRIVATE understudy::understudy)

get_filename_component(_understudy_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_library(UNDERSTUDY_LIBRARY understudy PATHS "${_understudy_root}/lib" NO_DEFAULT_PATH REQUIRED)
if(NOT TARGET understudy::understudy)
  add_library(understudy::understudy SHARED IMPORTED)
  set_target_properties(understudy::understudy PROPERTIES
    IMPORTED_LOCATION "${UNDERSTUDY_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${_understudy_root}/include")
  add_library(understudy::static STATIC IMPORTED)
  # What Rust's standard library needs of the system.
  set_target_properties(understudy::static PROPERTIES
    IMPORTED_LOCATION "${_understudy_root}/lib/libunderstudy.a"
    INTERFACE_LINK_LIBRARIES "m;pthread;dl"
    INTERFACE_INCLUDE_DIRECTORIES "${_understudy_root}/include")
endif()
