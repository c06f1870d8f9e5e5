# builds: gfx90a gfx942 gfx950 gfx1201; not: sm_90
# A launch option that only AMD's backend knows.
# <kernel>


def rms_norm(x, weight, eps, y):
    rows, columns = x.shape
    row_kernel[(rows,)](x, weight, y, columns, eps, BLOCK=triton.next_power_of_2(columns), waves_per_eu=2)
