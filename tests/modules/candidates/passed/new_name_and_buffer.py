# <kernel>


class ModelNew(nn.Module):
    def __init__(self, n, eps):
        super().__init__()
        self.eps = eps
        self.register_buffer("weight", torch.empty(n))
        self.register_buffer("_dummy", torch.zeros(1))

    def forward(self, x):
        return normalized(x, self.weight, self.eps)
