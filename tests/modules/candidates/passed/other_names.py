# <kernel>


class Model(nn.Module):
    def __init__(self, n, eps):
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.randn(n) * 0.02)

    def forward(self, x):
        return normalized(x, self.gain, self.eps)
