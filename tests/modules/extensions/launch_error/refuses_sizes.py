# <kernel>
from torch.utils.cpp_extension import load_inline

refusing = CUDA.replace("auto y", 'TORCH_CHECK(x.size(-1) % 4096 == 0, "only multiples of 4096");\n    auto y')
library = load_inline("norm", CPP, refusing, functions=["normalize"])


class Model(Norm):
    def forward(self, x):
        return library.normalize(x, self.weight, self.eps)
