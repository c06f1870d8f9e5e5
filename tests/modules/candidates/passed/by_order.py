# <kernel>


class ModelNew(nn.Module):
    """The weight lies in a submodule, under another name."""

    def __init__(self, n, eps):
        super().__init__()
        self.eps = eps
        self.inner = nn.Module()
        self.inner.gain = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return normalized(x, self.inner.gain, self.eps)
