"""The soft part of the knowledge-distillation loss (Hinton, Vinyals and Dean, 2015)."""

from typing import Any

import torch
import torch.nn.functional as F

from arena.semantics.uneven import make_uneven


def reference(student: torch.Tensor, teacher: torch.Tensor, temperature: float) -> torch.Tensor:
    """student, teacher: (M, C); loss: a scalar, in float32 or finer, since float16 cannot hold such a sum."""
    wide = torch.promote_types(student.dtype, torch.float32)
    of_student = F.log_softmax(student.to(wide) / temperature, dim=-1)
    of_teacher = F.log_softmax(teacher.to(wide) / temperature, dim=-1)
    return F.kl_div(of_student, of_teacher, reduction="sum", log_target=True) * temperature**2


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """A student that has learned part of what its teacher knows, both shifted, row by row, up or down.

    The two are not exchangeable (the student is less sure), and a kernel that does not subtract the maximum fails.
    """
    shape, dtype = (count, case["M"], case["C"]), case["dtype"]
    chance = {"generator": generator, "device": generator.device}

    def shifts() -> torch.Tensor:
        rows = (count, case["M"], 1)
        sign = 2 * torch.randint(0, 2, rows, **chance) - 1
        return (sign * (90.0 + 10.0 * torch.rand(rows, **chance))).to(dtype)

    teacher = 3.0 * torch.randn(shape, dtype=dtype, **chance)
    own = torch.randn(shape, dtype=dtype, **chance)
    make_uneven(own, generator)
    student = 0.5 * teacher + own
    return {"student": student + shifts(), "teacher": teacher + shifts()}
