# <kernel>
import tempfile
from pathlib import Path

from torch.utils.cpp_extension import load

folder = Path(tempfile.mkdtemp())
(folder / "norm.cu").write_text("#include <torch/extension.h>\n" + CUDA)
binding = CPP + 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("normalize", &normalize); }'
(folder / "norm.cpp").write_text("#include <torch/extension.h>\n" + binding)
library = load("norm", [str(folder / "norm.cpp"), str(folder / "norm.cu")])


class Model(Norm):
    def forward(self, x):
        return library.normalize(x, self.weight, self.eps)
