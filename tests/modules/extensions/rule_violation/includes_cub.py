# <kernel>
from torch.utils.cpp_extension import load_inline

library = load_inline("norm", CPP, "#include <cub/block/block_reduce.cuh>\n" + CUDA, functions=["normalize"])


class Model(Norm):
    def forward(self, x):
        return library.normalize(x, self.weight, self.eps)
