# builds: gfx90a gfx942 gfx950 gfx1201 sm_90
# A launch option of AMD's backend only where PyTorch says that the device is AMD's.
import torch

# <kernel>


def rms_norm(x, weight, eps, y):
    amd = torch.version.hip is not None
    assert amd or torch.cuda.get_device_capability(x.device)[0] >= 8
    options = {"waves_per_eu": 2} if amd else {"maxnreg": 64}
    rows, columns = x.shape
    row_kernel[(rows,)](x, weight, y, columns, eps, BLOCK=triton.next_power_of_2(columns), **options)
