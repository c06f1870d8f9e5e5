# <kernel>


class Model(nn.Module):
    def __init__(self, n, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(n) * 0.02)
        self.register_buffer("space", torch.empty(n, dtype=torch.float16), persistent=False)
        self.register_buffer("counter", torch.zeros(1, dtype=torch.int32), persistent=False)

    def forward(self, x):
        if self.space.is_meta or self.counter.is_meta:
            raise RuntimeError("no memory")
        return normalized(x, self.weight, self.eps)
