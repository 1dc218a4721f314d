"""Compute an arithmetic expression of named values, which may come from outside: it can do nothing else."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

LONGEST = 2000
OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
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
    """It is no expression, or has no value; its text says what is wrong, as in "is no arithmetic"."""


def names_in(expression: object) -> frozenset[str]:
    """The names that an expression uses.

    Raises:
        NotArithmeticError: It is neither a number nor an expression.
    """
    if isinstance(expression, (int, float)) and not isinstance(expression, bool):
        return frozenset()
    nodes = ast.walk(_parsed(expression))
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name)) - set(FUNCTIONS)


def compute(expression: str | float, values: Mapping[str, Any]) -> float:
    """What an expression comes to.

    Numbers are floats all the way, so that no power of them takes long: it overflows.

    Parameters:
        expression: `6 * layers * width**2 if precision == "fp32" else 0`, or a number.
        values: Of the names in it: numbers, strings, booleans, None and lists of them.

    Raises:
        NotArithmeticError: It is no expression, names something unknown, or has no finite value.
    """
    if not isinstance(expression, str):
        return float(expression)
    try:
        value = _value(_parsed(expression), values)
        number = float(value)
    except (ArithmeticError, TypeError, ValueError, LookupError) as error:
        raise NotArithmeticError(f"has no value ({type(error).__name__}: {error})") from error
    if not number < float("inf"):
        raise NotArithmeticError("has no finite value")
    return number


def _parsed(expression: object) -> ast.expr:
    if not isinstance(expression, str) or len(expression) > LONGEST:
        raise NotArithmeticError("is no arithmetic")
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotArithmeticError("is no arithmetic") from error


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=bool() | str() | None as constant):
            return constant
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=name):
            return _plain(values[name])
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item, values) for item in items]
        case ast.Dict(keys=keys, values=items) if None not in keys:
            pairs = zip(keys, items, strict=True)
            return {_value(key, values): _value(item, values) for key, item in pairs if key is not None}
        case ast.Subscript(value=inner, slice=index):
            items, place = _value(inner, values), _value(index, values)
            return items[int(place)] if isinstance(items, list) else items[place]
        case ast.UnaryOp(op=sign, operand=inner) if type(sign) in OPERATORS:
            return OPERATORS[type(sign)](_value(inner, values))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in OPERATORS:
            one, other = _value(left, values), _value(right, values)
            if not isinstance(one, (int, float)) or not isinstance(other, (int, float)):
                raise NotArithmeticError("calculates with what is no number")
            return OPERATORS[type(sign)](one, other)
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in OPERATORS:
            return OPERATORS[type(sign)](_value(left, values), _value(right, values))
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_value(part, values) for part in parts)
        case ast.BoolOp(values=parts):
            return any(_value(part, values) for part in parts)
        case ast.IfExp(test=test, body=then, orelse=other_wise):
            return _value(then if _value(test, values) else other_wise, values)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*(_value(argument, values) for argument in arguments))
    raise NotArithmeticError(f"holds {ast.unparse(node)[:40]!r}, which is no arithmetic")


def _plain(value: Any) -> Any:
    """A parameter as the expression computes with it."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
