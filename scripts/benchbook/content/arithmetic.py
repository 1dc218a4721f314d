"""Compute an arithmetic expression of named values, which may come from outside: it can do nothing else."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

# Twice the longest of ours.
LONGEST = 1000
CALCULATIONS: dict[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
COMPARISONS: dict[type[ast.AST], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {"len": len, "max": max, "min": min, "sum": sum}


class NotArithmeticError(Exception):
    """It is not an expression, or has no value; its text says what is wrong, as in "is not arithmetic"."""


def names_in(expression: object) -> frozenset[str]:
    """The names that an expression uses.

    Raises:
        NotArithmeticError: It is neither a number nor an expression.
    """
    if isinstance(expression, (int, float)) and not isinstance(expression, bool):
        return frozenset()
    nodes = ast.walk(_parsed(expression))
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name)) - set(FUNCTIONS)


def evaluate(expression: str | float, values: Mapping[str, Any]) -> float:
    """What an expression comes to.

    Every number in it is a float, so that no power of them takes long: it overflows.

    Parameters:
        expression: `6 * layers * width**2 if precision == "fp32" else 0`, or a number.
        values: Of the names in it: numbers, strings, booleans, None and lists of them.

    Raises:
        NotArithmeticError: It is not an expression, names something unknown, or comes to no finite number.
    """
    try:
        value = _value(_parsed(expression), values) if isinstance(expression, str) else float(expression)
    except (ArithmeticError, TypeError, ValueError, LookupError, RecursionError) as error:
        raise NotArithmeticError(f"has no value ({type(error).__name__}: {error})") from error
    if not _is_number(value) or not math.isfinite(value):
        raise NotArithmeticError(f"comes to {str(value)[:40]!r}, which is not a finite number")
    return float(value)


def _parsed(expression: object) -> ast.expr:
    if not isinstance(expression, str) or len(expression) > LONGEST:
        raise NotArithmeticError("is not arithmetic")
    return _tree(expression)


@lru_cache(maxsize=256)
def _tree(expression: str) -> ast.expr:
    """What is parsed once: each variant of a script has the same expressions."""
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotArithmeticError("is not arithmetic") from error


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=bool() | str() | int() | float() | None as constant):
            return _plain(constant)
        case ast.Name(id=name):
            return _plain(values[name])
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item, values) for item in items]
        case ast.Dict(keys=keys, values=items) if None not in keys:
            pairs = zip(keys, items, strict=True)
            return {_value(key, values): _value(item, values) for key, item in pairs if key is not None}
        case ast.Subscript(value=inner, slice=index):
            found, place = _value(inner, values), _value(index, values)
            return found[int(place)] if isinstance(found, list) else found[place]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_number(inner, values)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return not _condition(inner, values)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in CALCULATIONS:
            return CALCULATIONS[type(sign)](_number(left, values), _number(right, values))
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in COMPARISONS:
            return COMPARISONS[type(sign)](_value(left, values), _value(right, values))
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_condition(part, values) for part in parts)
        case ast.BoolOp(values=parts):
            return any(_condition(part, values) for part in parts)
        case ast.IfExp(test=test, body=then, orelse=other):
            return _value(then if _condition(test, values) else other, values)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            return _plain(FUNCTIONS[name](*(_value(argument, values) for argument in arguments)))
    raise NotArithmeticError(f"holds {ast.unparse(node)[:40]!r}, which is not arithmetic")


def _plain(value: Any) -> Any:
    """A value as expressions know it: numbers are floats."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return float(value) if _is_number(value) else value


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _number(node: ast.expr, values: Mapping[str, Any]) -> float:
    value = _value(node, values)
    if not _is_number(value):
        raise NotArithmeticError(f"calculates with {str(value)[:40]!r}, which is not a number")
    return float(value)


def _condition(node: ast.expr, values: Mapping[str, Any]) -> bool:
    value = _value(node, values)
    if not isinstance(value, bool):
        raise NotArithmeticError(f"asks whether {str(value)[:40]!r} is true, which is not a condition")
    return value
