// HIP's runtime API on the CPU.
#pragma once

#include "hip_cpu/api.h"
