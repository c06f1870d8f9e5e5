// The older name of the bfloat16 header.
#pragma once

#include "hip/hip_bf16.h"

typedef __hip_bfloat16 hip_bfloat16;
