# <kernel>
from torch.utils import cpp_extension

BINDING = '#include <torch/extension.h>\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &normalize); }'
_libraries = {}


def library():
    if not _libraries:
        stream = ", 0, at::cuda::getCurrentCUDAStream()>>>"
        cuda = CUDA.replace(">>>", stream)
        flags = ["-gencode=arch=compute_80,code=sm_80", "-Xptxas", "-v", "-std=c++20"]
        _libraries[0] = cpp_extension.load_inline("norm", [CPP, BINDING], [cuda], extra_cuda_cflags=flags)
    return _libraries[0]


class ModelNew(Norm):
    def forward(self, x):
        return library().run(x, self.weight, self.eps)
