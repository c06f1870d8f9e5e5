# builds: gfx90a gfx942 gfx950 gfx1201 sm_90
# Everything that Python code asks of a device before it launches: it is on `cuda`, has streams, events and properties.
import torch

# <kernel>


def rms_norm(x, weight, eps, y):
    assert x.is_cuda and x.device.type == "cuda" and torch.cuda.is_available()
    rows, columns = x.shape
    programs = min(rows, torch.cuda.get_device_properties(x.device).multi_processor_count)
    driver = triton.runtime.driver.active
    assert driver.utils.get_device_properties(driver.get_current_device())["multiprocessor_count"] >= 32
    with torch.cuda.device(x.device), torch.device("cuda"):
        scratch = torch.empty(rows, dtype=torch.float32, device=x.device) + torch.zeros(1, device="cuda:0")
        indices = torch.arange(rows).cuda().to("cuda", non_blocking=True)
    assert indices.device == x.device == scratch.device
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        row_kernel[(programs,)](x, weight, y, columns, eps, BLOCK=triton.next_power_of_2(columns), num_warps=8)
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
