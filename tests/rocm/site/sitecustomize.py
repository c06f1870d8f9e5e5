"""Imported by Python at its start on the simulated machine: registers the platform `rocm-sim`."""

try:
    from tests.rocm.platform import register
except ModuleNotFoundError:  # an interpreter without this project's packages
    pass
else:
    register()
