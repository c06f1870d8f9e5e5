# <kernel>


class Model(nn.Module):
    def __init__(self, n, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(n) * 0.02)
        self.register_buffer("factors", torch.zeros(n).add_(1))

    def forward(self, x):
        return normalized(x, self.weight, self.eps)
