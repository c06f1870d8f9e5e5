"""Small problems in KernelBench's format: some that become tasks, and one for each reason to refuse."""

from __future__ import annotations

from pathlib import Path

HEAD = "import torch\nimport torch.nn as nn\n\n\n"


def problem(model: str, settings: str, inputs: str, init: str = "[]") -> str:
    """The text of a file."""
    makers = f"def get_inputs():\n    {inputs}\n\n\ndef get_init_inputs():\n    return {init}\n"
    return f"{HEAD}{model}\n{settings}\n\n\n{makers}"


def model(forward: str, parts: str = "pass", arguments: str = "", given: str = "x") -> str:
    """The text of a class `Model`."""
    return (
        f'class Model(nn.Module):\n    """{forward}."""\n\n'
        f"    def __init__(self{arguments}):\n        super().__init__()\n"
        f"        {parts}\n\n    def forward(self, {given}):\n        {forward}\n\n"
    )


SIZES = "rows = 4096\ncolumns = 64 * 128"
X = "return [torch.rand(rows, columns)]"
LINEAR = problem(
    model(
        "return torch.relu(self.layer(x))",
        "self.layer = nn.Linear(inner, outer)\n        self.norm = nn.BatchNorm1d(outer)",
        ", inner, outer",
    ).replace("self.layer(x))", "self.norm(self.layer(x)))"),
    "rows = 2048\nin_features = 512\nout_features = 1024",
    "return [torch.rand(rows, in_features)]",
    "[in_features, out_features]",
)
STRIDED = problem(
    model(
        "return self.pool(self.conv(x))",
        "self.conv = nn.Conv1d(c, 8, 5, stride=3)\n        self.pool = nn.AvgPool1d(2)",
        ", c",
    ),
    "batch, channels, length = 64, 32, 4096",
    "return [torch.rand(batch, channels, length)]",
    "[channels]",
)
MIXED = problem(
    model("return torch.where(mask, x * scale, x.new_zeros(())) + table[index]", given="x, mask, table, index, scale"),
    "n = 1 << 20\nwords = 1000\nn = 4096\nwidth = 1024",
    "return [torch.randn(n, width), torch.rand(n, width) > 0.5, torch.randn(words, width),"
    " torch.randint(0, words, (n,)), 2.5]",
)
LOSS = problem(
    model("return ((x - target) ** 2).mean()", given="x, target"),
    "shape = (2048,)\nrows = 1024",
    "return [torch.rand(rows, *shape) * torch.rand(()), torch.rand(rows, *shape)]",
)
REFUSED = {
    "format": f"{HEAD}class Net(nn.Module):\n    pass\n",
    "package": f"import transformers\n{problem(model('return x'), SIZES, X)}",
    "does not run": problem(model("return x @ x"), SIZES, X),
    "input": problem(model("return x * 2"), SIZES, "return [torch.rand(rows, columns).softmax(-1)]"),
    "random": problem(model("return x + torch.rand_like(x)"), SIZES, X),
    "state": problem(model("return x + self.shift", "self.shift = torch.ones(1)"), SIZES, X),
    "output": problem(model("return {'y': x * 2}"), SIZES, X),
    "sizes": problem(model("return x.view(4096, 8192) * 2"), SIZES, X),
    "formula": problem(model("return x[:, : x.shape[1] ** 2 // 9000 + 1] * 2"), SIZES, X),
    "cases": problem(
        model("return self.layer(x)", "self.layer = nn.Linear(4096, 4096)"),
        "rows = 64",
        "return [torch.rand(rows, 4096)]",
    ),
    "float64": problem(model("return torch.relu(x.float()) * 2"), SIZES, X),
    "check": problem(model("return x - x"), SIZES, X),
}


def write(root: Path, texts: dict[str, str], level: int = 1) -> Path:
    """Write a checkout with these problems, numbered in order."""
    folder = root / "KernelBench" / f"level{level}"
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, text) in enumerate(texts.items(), start=1):
        (folder / f"{number}_{name.replace(' ', '_')}.py").write_text(text, encoding="utf-8")
    return root
