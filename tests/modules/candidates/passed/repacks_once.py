# <kernel>


class Model(nn.Module):
    def __init__(self, n, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.randn(n) * 0.02)
        self.packed = None

    def forward(self, x):
        if self.packed is None:
            self.packed = self.weight.clone()
        return normalized(x, self.packed, self.eps)
