"""expect: wrong_result. Every other row is left out."""

# <kernel>


def rms_norm(x, weight, eps, y):
    rows, columns = x.shape
    row_kernel[((rows + 1) // 2,)](x, weight, y, columns, eps, BLOCK=triton.next_power_of_2(columns))
