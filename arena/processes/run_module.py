"""Run a module of the package as a program: `python -P run_module.py MODULE ARGUMENTS…` (`python_child.py`).

The package is the one that this file belongs to, wherever it lies, and no folder is added to the search path for it.
"""

import runpy
import sys
from importlib.util import module_from_spec, spec_from_file_location

_PACKAGE = __file__.rsplit("/", 2)[0]


def main() -> None:
    """Import this very copy of `arena`, and become the module that the command line names."""
    spec = spec_from_file_location("arena", f"{_PACKAGE}/__init__.py", submodule_search_locations=[_PACKAGE])
    assert spec is not None and spec.loader is not None
    package = sys.modules["arena"] = module_from_spec(spec)
    spec.loader.exec_module(package)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
