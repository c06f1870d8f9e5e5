"""The kernel in an answer: which block counts, and what is no block."""

from __future__ import annotations

import pytest

from arena.agents.chat.sampling import code_blocks, kernel_in, without_thoughts

KERNEL = "import torch\n\ndef scale(x, y):\n    y.copy_(x)\n"
HELPER = "def helper(x):\n    return x\n"
HIP = """\
extern "C" hipError_t scale(const float* x, float* y,
                            hipStream_t s) {
  return 0;
}
"""


def fenced(code: str, tag: str = "python", fence: str = "```") -> str:
    return f"{fence}{tag}\n{code}{fence}\n"


@pytest.mark.parametrize(
    "answer",
    [
        fenced(KERNEL),
        f"Text before.\n\n{fenced(KERNEL)}\nText after.",
        fenced(KERNEL, ""),
        fenced(KERNEL, "py"),
        fenced(KERNEL, " Python title=kernel.py"),
        fenced(KERNEL, "python:kernel.py"),
        fenced(KERNEL, "{.python}"),
        fenced(KERNEL, fence="~~~"),
        fenced(KERNEL, fence="````"),
        fenced(KERNEL).replace("\n", "\r\n"),
        fenced(KERNEL).removesuffix("```\n"),
        fenced(HELPER) + fenced(KERNEL),
        fenced(KERNEL) + "Use it so:\n" + fenced("scale(x, y)\n"),
        fenced(KERNEL) + fenced("pip install triton\n", "bash"),
        fenced(KERNEL.replace("copy_", "add_")) + "Better:\n" + fenced(KERNEL),
        f"<think>\n{fenced(KERNEL.replace('copy_', 'add_'))}</think>\n{fenced(KERNEL)}",
        f"I think {fenced(HELPER)}</think>{fenced(KERNEL)}",
        "1. The file:\n\n" + "".join(f"   {line}\n" for line in fenced(KERNEL).splitlines()).replace("   \n", "\n"),
    ],
)
def test_the_file_is_found(answer: str) -> None:
    assert kernel_in(answer, "scale", ".py") == KERNEL


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I would rather not.",
        KERNEL,
        fenced("ls -l\n", "bash"),
        fenced("y = alpha * x\n", "text"),
        fenced(" \n"),
        f"<think>{fenced(KERNEL)}",
        "Inline ```def scale(x): pass``` is no block.",
    ],
)
def test_there_is_no_file(answer: str) -> None:
    assert kernel_in(answer, "scale", ".py") is None


def test_of_an_answer_that_was_cut_off_an_open_block_does_not_count() -> None:
    answer = fenced(KERNEL) + fenced(KERNEL.replace("copy_", "add_")).removesuffix("```\n")
    assert kernel_in(answer, "scale", ".py", cut_off=True) == KERNEL
    assert kernel_in(fenced(KERNEL).removesuffix("```\n"), "scale", ".py", cut_off=True) is None


def test_a_file_without_the_entry_is_handed_in_where_there_is_no_better() -> None:
    """The judge says then what is missing."""
    assert kernel_in(fenced("ls\n", "sh") + fenced(HELPER), "scale", ".py") == HELPER


@pytest.mark.parametrize("tag", ["cpp", "hip", "c++", "cuda", ""])
def test_a_hip_file_is_the_block_that_defines_the_entry_not_the_one_that_declares_it(tag: str) -> None:
    declared = 'extern "C" hipError_t scale(const float* x, float* y, hipStream_t s);\n'
    assert kernel_in(fenced(HIP, tag) + fenced(declared, tag), "scale", ".hip") == HIP


def test_a_longer_fence_holds_a_shorter_one() -> None:
    (block,) = code_blocks("````md\n```python\nx = 1\n```\n````\n")
    assert (block.tag, block.closed) == ("md", True) and "```python" in block.text


def test_thoughts_without_end_take_all() -> None:
    assert without_thoughts("<think>so and so") == "" and without_thoughts("so </think> code") == " code"
