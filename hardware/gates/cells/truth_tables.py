"""The Boolean function of a cell's output as a truth table, from Liberty's expressions."""

import re

from tilewright.hardware.gates.cells.liberty import LibertyError

__all__ = ["truth_table"]

_OPERAND = re.compile(r"\b([A-Za-z]\w*)\b")
_JUXTAPOSED = re.compile(r"(?<=[\w)'])\s+(?=[\w(!])")
_AFTER = re.compile(r"(\w+|\))\s*'")
_ALLOWED = re.compile(r"[\w\s()&|^~]*")


def truth_table(function: str, inputs: tuple[str, ...]) -> int:
    """Return the function's value for every state of ``inputs``: bit i is that of state i, input k being bit k of i.

    Raises
    ------
    LibertyError
        If the expression is not understood, or depends on something else.
    """
    code = _JUXTAPOSED.sub("&", function.strip())
    code = code.replace("*", "&").replace("+", "|")
    if _AFTER.search(code):
        raise LibertyError(f"Function {function!r} must negate by !, in front of an operand")
    code = code.replace("!", "~")
    if not code or not _ALLOWED.fullmatch(code) or (unknown := set(_OPERAND.findall(code)) - set(inputs)):
        raise LibertyError(f"Function {function!r} must be of {', '.join(inputs)} and of ! & | ^ * + ( ), "
                           f"and has {sorted(unknown) if code and _ALLOWED.fullmatch(code) else code!r}")
    states = 1 << len(inputs)
    # One integer per input holds its value in all states at once.
    columns = {name: sum(1 << state for state in range(states) if state >> place & 1)
               for place, name in enumerate(inputs)}
    value = _Expression(code, columns).value()
    return value & ((1 << states) - 1)


class _Expression:
    """Recursive descent over ``|``, ``^``, ``&``, ``~`` and parentheses, loosest first."""

    def __init__(self, code: str, columns: dict[str, int]) -> None:
        self._tokens = re.findall(r"\w+|[()&|^~]", code)
        self._columns = columns

    def value(self) -> int:
        """Return the value of the whole."""
        result = self._or()
        if self._tokens:
            raise LibertyError(f"Function must end where it does, not before {' '.join(self._tokens)!r}")
        return result

    def _or(self) -> int:
        result = self._exclusive()
        while self._taken("|"):
            result |= self._exclusive()
        return result

    def _exclusive(self) -> int:
        result = self._and()
        while self._taken("^"):
            result ^= self._and()
        return result

    def _and(self) -> int:
        result = self._factor()
        while self._taken("&"):
            result &= self._factor()
        return result

    def _factor(self) -> int:
        if self._taken("~"):
            return ~self._factor()
        if self._taken("("):
            result = self._or()
            if not self._taken(")"):
                raise LibertyError("Function must close its parentheses")
            return result
        if not self._tokens or self._tokens[0] not in self._columns:
            raise LibertyError(f"Function must have an operand before {' '.join(self._tokens)!r}")
        return self._columns[self._tokens.pop(0)]

    def _taken(self, token: str) -> bool:
        if self._tokens and self._tokens[0] == token:
            self._tokens.pop(0)
            return True
        return False
