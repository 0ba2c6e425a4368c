find_program(NVCC nvcc HINTS /usr/local/cuda/bin)
if(NOT NVCC)
  message(STATUS "skipped: no nvcc on this machine")
  return()
endif()
execute_process(
  COMMAND ${NVCC} -std=c++20 -arch=sm_80 -fmad=false -Werror all-warnings -Xcompiler -Wall,-Wextra -I${ROOT} -I${ROOT}/include
          -c ${SOURCE} -o ${OUT}
  COMMAND_ERROR_IS_FATAL ANY)
