# <kernel>
from torch.utils.cpp_extension import load_inline

CUBLAS = r"""
#include <ATen/cuda/CUDAContext.h>
void* handle() { return at::cuda::getCurrentCUDABlasHandle(); }
"""
BINDING = '\nvoid* handle();\nbool has() { return handle() != nullptr; }\n'
library = load_inline("norm", CPP + BINDING, CUDA + CUBLAS, functions=["normalize", "has"])


class Model(Norm):
    def forward(self, x):
        assert library.has()
        return library.normalize(x, self.weight, self.eps)
