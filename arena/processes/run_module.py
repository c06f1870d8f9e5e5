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
    module = sys.argv[0]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except Exception as problem:
        _tell(module, problem)
        raise SystemExit(1) from None


def _tell(module: str, problem: Exception) -> None:
    """Print one line to stderr, and the traceback to a file: nobody who uses the command reads tracebacks."""
    import traceback

    from arena.processes import crash_file

    text = "".join(traceback.format_exception(problem))
    file = crash_file.write(text)
    where = f"please report it with the traceback in {file}" if file else f"no file could be written:\n{text}"
    sys.stderr.write(f"{module}: {crash_file.name_and_text(problem)}; {where}\n")


if __name__ == "__main__":
    main()
