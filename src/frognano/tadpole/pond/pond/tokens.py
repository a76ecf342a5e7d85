"""Cutting text into tokens; a small calculator."""

from operator import add, floordiv, mul, sub

_SIGNS = {"+": add, "-": sub, "*": mul, "/": floordiv}
_LEVELS = {"+": 1, "-": 1, "*": 2, "/": 2}
_CLOSERS = {")": "(", "]": "[", "}": "{"}


def tokenize(text: str) -> list:
    """Return the whole numbers, names and signs of text, without blanks.

    A run of letters, digits and "_" is one token, any other character
    is a token by itself.
    """
    tokens, word = [], ""
    for char in text + " ":
        if char.isalnum() or char == "_":
            word += char
            continue
        if word:
            tokens.append(word)
            word = ""
        if not char.isspace():
            tokens.append(char)
    return tokens


def is_balanced(text: str) -> bool:
    """Return whether all (), [] and {} in text are closed in order."""
    opened = []
    for char in text:
        if char in _CLOSERS.values():
            opened.append(char)
        elif char in _CLOSERS:
            if not opened or opened.pop() != _CLOSERS[char]:
                return False
    return not opened


def to_postfix(tokens: list) -> list:
    """Return infix tokens in postfix order: 1 + 2 becomes 1 2 +.

    "*" and "/" bind before "+" and "-", equals from the left. Brackets
    are not known.
    """
    output, waiting = [], []
    for token in tokens:
        if token not in _LEVELS:
            output.append(token)
            continue
        while waiting and _LEVELS[waiting[-1]] >= _LEVELS[token]:
            output.append(waiting.pop())
        waiting.append(token)
    return output + waiting[::-1]


def eval_postfix(tokens: list) -> int:
    """Return the value of postfix tokens of whole numbers; "/" rounds down.

    Raise ValueError if operands are missing or left over, and
    ZeroDivisionError when dividing by 0.
    """
    stack = []
    for token in tokens:
        if token not in _SIGNS:
            stack.append(int(token))
            continue
        if len(stack) < 2:
            raise ValueError(f"missing operand for {token}")
        right = stack.pop()
        left = stack.pop()
        stack.append(_SIGNS[token](left, right))
    if len(stack) != 1:
        raise ValueError("need exactly one value")
    return stack[0]


def split_top(text: str, sep: str = ",") -> list:
    """Return text split at sep outside of (), [] and {}, parts stripped.

    sep is "," by default. Brackets must be balanced. Blank text gives [].
    """
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == sep and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def unquote(text: str) -> str:
    """Return text without one pair of equal quotes, ' or ", around it.

    Text not quoted at both ends by the same quote is returned as it is.
    """
    if len(text) < 2 or text[0] not in "'\"":
        return text
    if text[0] != text[-1]:
        return text
    return text[1:-1]


def strip_comment(line: str, marker: str = "#") -> str:
    """Return line up to the first marker outside of double quotes.

    marker is "#" by default. Blanks at the end are stripped, also when
    there is no comment.
    """
    quoted = False
    for index, char in enumerate(line):
        if char == '"':
            quoted = not quoted
        if not quoted and line.startswith(marker, index):
            return line[:index].rstrip()
    return line.rstrip()


def parse_pairs(text: str) -> dict:
    """Return {name: value} for text like "a=1 b=x=y flag".

    Values are text and may contain "="; a name without "=" has the value
    True. Raise ValueError for a name given twice or an empty one.
    """
    pairs = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not name or name in pairs:
            raise ValueError(f"bad name in {word}")
        pairs[name] = value if equals else True
    return pairs
