# <kernel>


class Model(nn.Module):
    def __init__(self, n, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.randn(n) * 0.02)

    def forward(self, x):
        return torch.nn.functional.rms_norm(x, x.shape[-1:], self.weight, self.eps)
