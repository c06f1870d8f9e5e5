"""What replaces vLLM's platform, settings and logging in every adapter: a worker has none of them."""

import inspect
import logging

import torch


class current_platform:
    """The device as vLLM's helpers ask for it."""

    @staticmethod
    def is_rocm():
        return torch.version.hip is not None

    @staticmethod
    def is_cuda():
        return torch.version.hip is None

    @staticmethod
    def is_cuda_alike():
        return True

    @staticmethod
    def is_arch_support_pdl():
        return False

    @staticmethod
    def is_xpu():
        return False

    @staticmethod
    def is_cpu():
        return False

    @staticmethod
    def is_tpu():
        return False

    @staticmethod
    def fp8_dtype():
        return torch.float8_e4m3fn

    @staticmethod
    def has_device_capability(capability):
        if not torch.cuda.is_available():
            return True
        major, minor = torch.cuda.get_device_capability()
        return 10 * major + minor >= capability

    @staticmethod
    def is_device_capability(capability):
        return current_platform.is_device_capability_family(capability) and current_platform.has_device_capability(
            capability
        )

    @staticmethod
    def is_device_capability_family(capability):
        return torch.cuda.is_available() and torch.cuda.get_device_capability()[0] == capability // 10

    @staticmethod
    def num_compute_units(device_id=0):
        return torch.cuda.get_device_properties(device_id).multi_processor_count


class envs:
    """Settings at their defaults."""

    VLLM_BATCH_INVARIANT = False
    VLLM_TRITON_FORCE_FIRST_CONFIG = False


def init_logger(name):
    return logging.getLogger(name)


logger = init_logger("yardstick")
HAS_TRITON = True


def triton_kernel_dispatcher_with_warmup(kernel, warmup_inputs):
    """Launch what a dispatch function asks for; nothing is compiled ahead.

    The function returns a grid and some arguments of the kernel. The others are its own arguments of the same name,
    and strides of these.
    """

    def plain(name):
        return name.lower().removesuffix("_ptr")

    def decorate(dispatch):
        names = inspect.signature(dispatch).parameters

        def launch(*args, **kwargs):
            grid, launched = dispatch(*args, **kwargs)
            given = dict(zip(names, args, strict=False)) | kwargs | launched
            given = {plain(name): value for name, value in given.items()}
            for name in kernel.arg_names:
                if name not in launched and plain(name) in given:
                    launched[name] = given[plain(name)]
                elif name not in launched and "_stride_" in plain(name):
                    tensor, dim = plain(name).split("_stride_")
                    launched[name] = given[tensor].stride(int(dim))
            kernel[grid](**launched)

        return launch

    return decorate


class VllmTritonJitKernel:
    """Base class of kernels that are methods; here they are launched directly."""

    def __class_getitem__(cls, _):
        return cls


def kernel_launcher(function):
    return function
