"""What replaces Mamba's settings in every adapter."""


def autotune_configs(configs):
    """All configurations, which Triton tunes over; the engine has a mode that takes one."""
    return configs
