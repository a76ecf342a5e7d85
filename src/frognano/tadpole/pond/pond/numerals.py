"""Numbers in writing: Roman, other bases, ordinals and words."""

_ROMAN = (("M", 1000), ("D", 500), ("C", 100), ("L", 50), ("X", 10), ("V", 5))
_PAIRS = {4: "IV", 9: "IX", 40: "XL", 90: "XC", 400: "CD", 900: "CM"}
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
_ONES = "zero one two three four five six seven eight nine " + _TEENS
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"


def to_roman(number: int) -> str:
    """Return number as a Roman numeral in upper case.

    Raise ValueError outside 1..3999.
    """
    if not 1 <= number <= 3999:
        raise ValueError(f"no Roman numeral for {number}")
    values = {value: letter for letter, value in _ROMAN}
    values = {**values, **_PAIRS, 1: "I"}
    text = ""
    for value in sorted(values, reverse=True):
        count, number = divmod(number, value)
        text += values[value] * count
    return text


def from_roman(text: str) -> int:
    """Return the value of a Roman numeral, in either case.

    A letter before a greater one is subtracted. Raise ValueError for any
    other letter or for empty text.
    """
    values = {**dict(_ROMAN), "I": 1}
    if not text or any(char not in values for char in text.upper()):
        raise ValueError(f"not a Roman numeral: {text}")
    total, last = 0, 0
    for char in reversed(text.upper()):
        value = values[char]
        total += -value if value < last else value
        last = value
    return total


def to_base(number: int, base: int = 2) -> str:
    """Return number in another base, 2 by default, "-" leading a negative.

    Digits above 9 are lower-case letters. Raise ValueError unless base
    is in 2..36.
    """
    if not 2 <= base <= 36:
        raise ValueError(f"bad base: {base}")
    digits, rest = "", abs(number)
    while rest >= base:
        rest, digit = divmod(rest, base)
        digits = _DIGITS[digit] + digits
    return ("-" if number < 0 else "") + _DIGITS[rest] + digits


def ordinal(number: int) -> str:
    """Return number with "st", "nd", "rd" or "th": 1st, 12th, 22nd.

    11, 12 and 13, also at the end of a longer number, take "th".
    """
    if 11 <= number % 100 <= 13:
        return f"{number}th"
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{endings.get(number % 10, 'th')}"


def group_digits(number: int, sep: str = ",", size: int = 3) -> str:
    """Return number with sep between groups of size digits from the right.

    sep is "," and size 3 by default. A leading "-" is kept and no
    separator follows it.
    """
    digits = str(abs(number))
    groups = []
    while digits:
        groups.insert(0, digits[-size:])
        digits = digits[:-size]
    return ("-" if number < 0 else "") + sep.join(groups)


def digital_root(number: int) -> int:
    """Return the one digit left after summing digits again and again.

    Raise ValueError if number is negative.
    """
    if number < 0:
        raise ValueError("negative number")
    while number > 9:
        number = sum(int(digit) for digit in str(number))
    return number


def luhn_digit(digits: str) -> int:
    """Return the check digit to put after digits, by the Luhn rule.

    Every second digit from the right, the last one first, is doubled and
    reduced by 9 if above 9; the sum is filled up to a multiple of 10.
    """
    total = 0
    for index, char in enumerate(reversed(digits)):
        value = int(char)
        if index % 2 == 0:
            value *= 2
        total += value - 9 if value > 9 else value
    return -total % 10


def column_letters(number: int) -> str:
    """Return the spreadsheet name of a column: 1 is A, 26 Z and 27 AA.

    Raise ValueError if number is below 1.
    """
    if number < 1:
        raise ValueError(f"no column {number}")
    letters = ""
    while number > 0:
        number, index = divmod(number - 1, 26)
        letters = chr(ord("A") + index) + letters
    return letters


def spell(number: int) -> str:
    """Return a number from 0 to 99 in words, like "forty-two".

    Raise ValueError for any other number.
    """
    if number < 0 or number > 99:
        raise ValueError(f"cannot spell {number}")
    ones = (_ONES + " eighteen nineteen").split()
    if number < len(ones):
        return ones[number]
    tens, rest = divmod(number, 10)
    word = _TENS.split()[tens - 2]
    return f"{word}-{ones[rest]}" if rest else word
