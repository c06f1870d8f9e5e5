# <kernel>


class Model(object):
    def __init__(self, n, eps):
        self.eps = eps
        self.weight = torch.empty(n)

    def forward(self, x):
        return normalized(x, self.weight, self.eps)
