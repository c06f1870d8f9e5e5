"""expect: passed. One call, many launches: a row at a time."""

# <kernel>


def rms_norm(x, weight, eps, y):
    columns = x.shape[1]
    for row in range(0, x.shape[0], max(1, x.shape[0] // 8)):
        part = slice(row, row + max(1, x.shape[0] // 8))
        rows = x[part].shape[0]
        row_kernel[(rows,)](x[part], weight, y[part], columns, eps, BLOCK=triton.next_power_of_2(columns))
