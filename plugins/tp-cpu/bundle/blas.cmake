# Finds the registry package of the GEMM library and prepares the copy that travels in the wheel.
# Sets TPK_ONEDNN_INCLUDE for the kernels, TP_BUNDLED_LIBRARIES and TP_BUNDLED_LICENSE for install.
set(bundle ${CMAKE_CURRENT_LIST_DIR})
set(staged ${CMAKE_BINARY_DIR}/bundled)

# The build environment's folder has a new name every time: what is used from it is copied to a place that stays, so
# that a second build compiles nothing again.
function(locate variable distribution ending)
  execute_process(COMMAND ${Python_EXECUTABLE} ${bundle}/locate.py ${distribution} ${ending}
                  OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

if(TPK_BLAS STREQUAL "onednn")
  locate(header onednn-devel-cpu-gomp include/oneapi/dnnl/dnnl.h)
  locate(library onednn-cpu-gomp lib/libdnnl.so.3)
  locate(TP_BUNDLED_LICENSE onednn-cpu-gomp doc/onednn/LICENSE)
  get_filename_component(headers ${header} DIRECTORY)
  file(COPY ${headers} DESTINATION ${staged}/include/oneapi)
  set(TPK_ONEDNN_INCLUDE ${staged}/include CACHE PATH "folder of oneDNN's headers" FORCE)
  set(bundled_name libdnnl.so.3)
elseif(TPK_BLAS STREQUAL "openblas")
  locate(library scipy-openblas32 lib/libscipy_openblas.so)
  locate(TP_BUNDLED_LICENSE scipy-openblas32 licenses/LICENSE.txt)
  set(bundled_name libscipy_openblas.so)
else()
  message(FATAL_ERROR "TPK_BLAS=${TPK_BLAS}: expected onednn or openblas")
endif()

find_program(TP_PATCHELF patchelf REQUIRED NO_CACHE)
set(bundled ${staged}/lib/${bundled_name})
file(MAKE_DIRECTORY ${staged}/lib)
file(COPY_FILE ${library} ${staged}/${bundled_name} ONLY_IF_DIFFERENT)
# A name of its own inside (soname), so that a stranger's libdnnl in the same process is neither used nor replaced.
set(patch --set-soname libtp_${bundled_name})
set(TP_BUNDLED_LIBRARIES ${bundled})
if(TPK_BLAS STREQUAL "onednn")
  add_library(tp_serial_openmp SHARED ${bundle}/serial_openmp.cpp)
  target_link_options(tp_serial_openmp PRIVATE "LINKER:--version-script=${bundle}/serial_openmp.map")
  set_target_properties(tp_serial_openmp PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${staged}/lib)
  list(APPEND patch --replace-needed libgomp.so.1 libtp_serial_openmp.so --set-rpath "$ORIGIN")
  list(APPEND TP_BUNDLED_LIBRARIES ${staged}/lib/libtp_serial_openmp.so)
endif()
add_custom_command(
  OUTPUT ${bundled}
  COMMAND ${CMAKE_STRIP} --strip-unneeded -o ${bundled} ${staged}/${bundled_name}
  COMMAND ${TP_PATCHELF} ${patch} ${bundled}
  DEPENDS ${staged}/${bundled_name} ${bundle}/blas.cmake VERBATIM)
add_custom_target(tp_bundled ALL DEPENDS ${bundled})
