"""What a candidate's text may lean on is told by file and line, before anything is built."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from arena.judge.compile import rules
from arena.judge.workers.worker import CandidateFailed
from arena.results.session import KERNEL_LIMIT_BYTES
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import TaskType
from tests.shipped import shipped_tasks

_TASKS = {
    TaskType.TRITON2TRITON: load_task(TASKS / "triton2triton/normalization/rms_norm"),
    TaskType.HIP2HIP: load_task(TASKS / "hip2hip/modules/softmax"),
    TaskType.TORCH2HIP: load_task(TASKS / "torch2hip/modules/softmax"),
}


def refusal(task_type: TaskType, text: str, folder: Path) -> str:
    """What is said against the text; empty where it may be built."""
    file = folder / task_type.kernel_file
    file.write_text(text, encoding="utf-8")
    try:
        rules.check(_TASKS[task_type], file)
    except CandidateFailed as failure:
        assert failure.status is Status.RULE_VIOLATION
        return failure.detail
    return ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import triton\nimport flash_attn\n", "kernel.py:2: imports `flash_attn`"),
        ("def rms_norm():\n    import cupy as cp\n", "kernel.py:2: imports `cupy`"),
        ("from xformers.ops import rmsnorm\n", "imports `xformers.ops.rmsnorm`"),
        ("from torch.utils import cpp_extension\n", "kernel.py:1: `torch.utils.cpp_extension` compiles"),
        (
            "import torch\n\nf = torch.cuda.jiterator._create_jit_fn\n",
            "kernel.py:3: `torch.cuda.jiterator._create_jit_fn`",
        ),
        ("import torch\n@torch.compile\ndef f(x):\n    return x\n", "kernel.py:2: `torch.compile` compiles"),
        ("import torch._inductor.config\n", "`torch._inductor.config` compiles kernels"),
    ],
)
def test_foreign_imports_are_named(text: str, said: str, tmp_path: Path) -> None:
    assert said in refusal(TaskType.TRITON2TRITON, text, tmp_path)


UNUSED = "def check():\n    import cupy\n"


@pytest.mark.parametrize(
    "text",
    [
        UNUSED,
        "def get_inputs():\n    from reference import shapes\n\ndef main():\n    get_inputs()\n",
        "if __name__ == '__main__':\n    import flash_attn\n",
        "import typing as t\nif t.TYPE_CHECKING:\n    from jaxtyping import Float\n",
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        import einops\n",
        "import torch\ndef benchmark():\n    return torch.compile(torch.exp)\n",
        "import numpy as np\ndef rms_norm():\n    return np.prod((1, 2))\n",
        "import ninja\nimport pybind11\nimport triton\ndef rms_norm():\n    pybind11.get_include(), ninja.BIN_DIR\n",
        "from einops import rearrange\nimport triton\ndef rms_norm():\n    return rearrange\n",
    ],
)
def test_code_that_the_judge_never_runs_may_import(text: str, tmp_path: Path) -> None:
    assert refusal(TaskType.TRITON2TRITON, text, tmp_path) == ""


@pytest.mark.parametrize(
    "text",
    [
        f"{UNUSED}check()\n",
        f"{UNUSED}def rms_norm():\n    helper()\ndef helper():\n    check()\n",
        f"{UNUSED}def other(x=check()):\n    pass\n",
        f"{UNUSED}@check\ndef other():\n    pass\n",
        f"{UNUSED}if True:\n    rms_norm = check\n",
        f"{UNUSED}class Other:\n    value = check()\n",
        f"{UNUSED}rms_norm = globals()['ch' + 'eck']\n",
        f"{UNUSED}import sys\nrms_norm = getattr(sys.modules[__name__], 'ch' + 'eck')\n",
        f"{UNUSED}import sys\nrms_norm = getattr(sys, 'x', 'check')\n",
        f"import atexit\n@atexit.register\n{UNUSED}",
        "class Other:\n    def __init__(self):\n        import cupy\ndef rms_norm():\n    Other()\n",
        "class A:\n    def __init_subclass__(cls):\n        cls().f()\n"
        "class B(A):\n    def f(self):\n        import cupy\n",
        "__name__ = '__main__'\nif __name__ == '__main__':\n    import cupy\n",
        "if __name__ != '__main__':\n    import cupy\n",
        "if __name__ == '__main__':\n    pass\nelse:\n    import cupy\n",
        "import typing\ntyping.TYPE_CHECKING = 1\nif typing.TYPE_CHECKING:\n    import cupy\n",
    ],
)
def test_code_that_may_run_may_not(text: str, tmp_path: Path) -> None:
    assert "imports `cupy`" in refusal(TaskType.TRITON2TRITON, text, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "from __future__ import annotations\nimport math, torch, triton.language as tl\nfrom torch import Tensor\n",
        "import torch\nprint(torch.compiler, torch.cuda.current_stream)\n",
        "def broken(:\n",
        "# import numpy\n'''import cupy'''\n",
        "nul\0",
    ],
)
def test_other_texts_are_the_hosts_business(text: str, tmp_path: Path) -> None:
    assert refusal(TaskType.TRITON2TRITON, text, tmp_path) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('#include "task.h"\n  #  include <hipcub/hipcub.hpp>\n', "kernel.hip:2: includes `hipcub/hipcub.hpp`"),
        ("#include <hip/hip_fp16.h>\n#include <cublas_v2.h>\n", "kernel.hip:2: includes `cublas_v2.h`"),
        ("/* one\ntwo */\n#include <cub/cub.cuh>\n", "kernel.hip:3: includes `cub/cub.cuh`"),
        ("#include <torch/extension.h>\n", "includes `torch/extension.h`"),
    ],
)
def test_libraries_of_kernels_are_named(text: str, said: str, tmp_path: Path) -> None:
    assert said in refusal(TaskType.HIP2HIP, text, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "#include <random>\n#include <hip/hip_bf16.h>\n#include <hip/hip_cooperative_groups.h>\n#include <cuchar>\n",
        "// #include <cub/cub.cuh>\n/*\n#include <thrust/sort.h>\n*/\n",
        'const char* words = "dlopen";  // dlsym\n',
    ],
)
def test_comments_literals_and_the_languages_own_headers_may_stand(text: str, tmp_path: Path) -> None:
    assert refusal(TaskType.TORCH2HIP, text, tmp_path) == ""


@pytest.mark.slow
def test_every_kernel_of_the_corpus_keeps_the_rules() -> None:
    tasks = shipped_tasks().values()
    kernels = [(task, file) for task in tasks for file in (task.baseline_kernel, task.expert) if file is not None]
    assert len(kernels) > len(tasks)
    for task, file in kernels:
        rules.check(task, file)


BOMBS = {
    TaskType.TRITON2TRITON: [
        "x = " + "-" * 300_000 + "1",
        "x = a" + ".b" * 300_000,
        "x = a" + "()" * 200_000,
        "(" * 200_000,
        f"a{'.b' * 2400}\n" * 200,
    ],
    TaskType.HIP2HIP: [
        *('R"a(' * 200_000, "/*" * 300_000, '"' * 600_000, "#include <" * 60_000, "//\\\n" * 200_000),
        *('"\\' * 150_000, "'\\" * 150_000),
    ],
}


@pytest.mark.slow(but=["text0", "text1", "text5", "text6"])
@pytest.mark.parametrize(("task_type", "text"), [(kind, text) for kind, texts in BOMBS.items() for text in texts])
def test_texts_made_to_keep_the_judge_busy_do_not(task_type: TaskType, text: str, tmp_path: Path) -> None:
    began = time.process_time()
    assert refusal(task_type, text, tmp_path) == ""
    assert time.process_time() - began < 20.0


@pytest.mark.parametrize("text", [f"f'{'{a}' * 320_000}'", f"# {'{' * 200_000}\nimport flash_attn\n"])
def test_a_text_that_takes_long_to_parse_is_refused(text: str, tmp_path: Path) -> None:
    began = time.process_time()
    assert "braces; a kernel needs" in refusal(TaskType.TRITON2TRITON, text, tmp_path)
    assert time.process_time() - began < 20.0


def test_a_text_beyond_what_an_agent_may_hand_in_is_not_read(tmp_path: Path) -> None:
    told = refusal(TaskType.HIP2HIP, "//" + "x" * KERNEL_LIMIT_BYTES, tmp_path)
    assert f"has {KERNEL_LIMIT_BYTES + 2} bytes; a kernel file may have {KERNEL_LIMIT_BYTES}" in told
