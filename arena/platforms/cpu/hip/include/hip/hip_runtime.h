// HIP on the CPU: a kernel.hip rewritten by hip_source.py compiles against this with a C++17 compiler.
#pragma once

#include <cassert>
#include <cfloat>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "hip_cpu/api.h"
#include "hip_cpu/atomics.h"
#include "hip_cpu/intrinsics.h"
#include "hip_cpu/math.h"
#include "hip_cpu/matrix_units.h"
#include "hip_cpu/thread.h"
#include "hip_cpu/wave.h"
