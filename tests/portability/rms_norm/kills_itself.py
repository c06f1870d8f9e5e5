# not: gfx90a gfx942 gfx950 gfx1201 sm_90
# A compiler that dies takes its host with it.
import os


def rms_norm(x, weight, eps, y):
    os.abort()
