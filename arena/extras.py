"""Packages that an installation may lack: which extra brings which, and the one error that says what to type."""

from __future__ import annotations

from importlib.util import find_spec

from arena.errors import UsageError

EXTRAS = {
    "torch": "cpu",
    "triton": "cpu",
    "ml_dtypes": "cpu",
    "hip": "rocm",
    "ray": "ray",
    "openai": "model",
    "harbor": "harbor",
    "inspect_ai": "inspect",
    "mcp": "mcp",
    "openreward": "openreward",
    "pyarrow": "export",
    "trackio": "tracking",
}
"""by module, the extra that brings it"""
ALWAYS = (
    *(
        "httpx2",
        "jinja2",
        "jsonschema",
        "matplotlib",
        "msgspec",
        "numpy",
        "pandas",
        "pygments",
        "rich",
        "scipy",
        "starlette",
    ),
    *("typer", "uvicorn", "yaml"),
)
"""modules that every installation brings"""
_BUILDS = "; docs/evaluate/quickstart.md says which build of PyTorch fits a machine"


def install_command(extra: str) -> str:
    """Return what to type in a shell for an extra; an empty name means the package alone."""
    return f"pip install 'unseen-arena[{extra}]'" if extra else "pip install unseen-arena"


def lacks_extra(extra: str, problem: ImportError | str) -> UsageError:
    """Return the error for a package that is not installed: what is missing, and the commands that install it."""
    checkout = f"pip install '.[{extra}]'" if extra else "pip install ."
    builds = _BUILDS if extra == "cpu" else ""
    return UsageError(f"{problem}; this needs `{install_command(extra)}`, in a checkout `{checkout}`{builds}")


def is_installed(module: str) -> bool:
    """Return whether a module can be imported, without importing it."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def require(*modules: str) -> None:
    """Raise the `UsageError` of the first of these modules that is not installed."""
    for module in modules:
        if not is_installed(module):
            raise lacks_extra(EXTRAS[module], f"No module named {module!r}")


def missing_package(problem: ImportError) -> UsageError | None:
    """Return the error for a failed import of a package that we know, None for any other failure."""
    module = (problem.name or "").split(".")[0]
    if not isinstance(problem, ModuleNotFoundError) or module not in (*EXTRAS, *ALWAYS) or is_installed(module):
        return None
    return lacks_extra(EXTRAS.get(module, ""), problem)
