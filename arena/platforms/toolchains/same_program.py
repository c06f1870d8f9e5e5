"""Compare two kernel files but for comments and white space. Used by the judge on what is handed in."""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import Path

_SPLICE = re.compile(r"\\\r?\n")
_SPACE = re.compile(r"\s+")
_OPERATORS = re.compile(r"<<=|>>=|<=>|->\*|\.\.\.|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|->|::|.")
"""of C++, the longest first ([lex.operators])"""


def same_program(one: Path, two: Path) -> bool:
    """Return whether two files hold the same program: syntax trees in Python, tokens in C++ and HIP.

    Docstrings are comments. Of files that do not parse only equal texts are the same.

    Args:
        one: a kernel, whose suffix says the language.
        two: another of the same language.
    """
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in (one, two)]
    if texts[0] == texts[1]:
        return True
    if one.suffix == ".py":
        trees = [_tree(text) for text in texts]
        return trees[0] is not None and trees[0] == trees[1]
    return _tokens(texts[0]) == _tokens(texts[1])


def _tree(text: str) -> str | None:
    """Return a Python file without comments and docstrings; None where it is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_docstring(body[0]):
            body.pop(0)
    return ast.dump(tree)


def _is_docstring(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _tokens(text: str) -> list[str]:
    """Return the tokens of a C++ file. What follows `#` on a line is one token, whose white space is even."""
    from pygments.lexer import Lexer
    from pygments.lexers import get_lexer_by_name
    from pygments.token import Comment, Operator

    found, signs = [], ""
    lexer: Lexer = get_lexer_by_name("cpp", stripnl=False)
    for kind, value in lexer.get_tokens(_SPLICE.sub("", text)):
        if Operator in kind.split() and not value.isalpha():
            signs += value  # the lexer gives one sign at a time
            continue
        found += _OPERATORS.findall(signs)
        signs = ""
        comment = Comment in kind.split() and kind not in (Comment.Preproc, Comment.PreprocFile)
        if not comment and value.strip():
            found.append(_SPACE.sub(" ", value.strip()))
    return found + _OPERATORS.findall(signs)
