# <kernel>
from torch.utils.cpp_extension import load_inline

library = load_inline("norm", CPP, CUDA, functions=["normalize"], extra_cuda_cflags=["-O3", "--use_fast_math"])


class Model(Norm):
    def forward(self, x):
        return library.normalize(x, self.weight, self.eps)
