# <kernel>
from torch.utils.cpp_extension import load_inline

library = load_inline("norm", CPP, CUDA.replace("n / 1 * 1", "n / 512 * 512"), functions=["normalize"])


class Model(Norm):
    def forward(self, x):
        return library.normalize(x, self.weight, self.eps)
