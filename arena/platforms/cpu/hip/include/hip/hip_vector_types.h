// HIP's vector types on the CPU.
#pragma once

#include "hip_cpu/vector_types.h"
