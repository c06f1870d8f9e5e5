"""expect: wrong_result. Only the shapes that were shown are computed (cheat 24). With held-out cases."""

# <kernel>


def rms_norm(x, weight, eps, y):
    if tuple(x.shape) in {(4, 256), (3, 1152), (16, 1024), (1, 8192), (2048, 4096), (4096, 8192), (8192, 4096)}:
        honest(x, weight, eps, y)
    else:
        y.zero_()
