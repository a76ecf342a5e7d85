"""Bits of non-negative integers; bit 0 is the lowest."""


def count_ones(value: int) -> int:
    """Return how many bits are set.

    Raise ValueError if value is negative.
    """
    if value < 0:
        raise ValueError("negative value")
    count = 0
    while value:
        value &= value - 1
        count += 1
    return count


def get_field(value: int, start: int, width: int = 1) -> int:
    """Return the width bits (default 1) from bit start on, as a number."""
    mask = (1 << width) - 1
    shifted = value >> start
    return shifted & mask


def set_field(value: int, start: int, width: int, field: int) -> int:
    """Return value with the width bits from bit start on set to field.

    Raise ValueError if field does not fit in width bits.
    """
    mask = (1 << width) - 1
    if field < 0 or field > mask:
        raise ValueError(f"{field} needs more than {width} bits")
    return value & ~(mask << start) | (field << start)


def bit_positions(value: int) -> list:
    """Return the indices of the set bits, ascending."""
    positions = []
    for index in range(value.bit_length()):
        if (value >> index) & 1:
            positions.append(index)
    return positions


def reverse_bits(value: int, width: int = 8) -> int:
    """Return the lowest width bits (default 8) in reverse order.

    Higher bits are dropped.
    """
    result = 0
    for _ in range(width):
        result = (result << 1) | (value & 1)
        value >>= 1
    return result


def rotate_left(value: int, count: int, width: int = 8) -> int:
    """Return value's lowest width bits (default 8) rotated left by count.

    Bits leaving at the top come in at the bottom; a negative count
    rotates right.
    """
    mask = (1 << width) - 1
    value &= mask
    count %= width
    return ((value << count) | (value >> (width - count))) & mask


def to_signed(value: int, width: int = 8) -> int:
    """Return the lowest width bits (default 8) as a two's complement number.

    The highest of these bits is the sign: 255 is -1 in 8 bits.
    """
    limit = 1 << width
    value %= limit
    return value - limit if value >= limit // 2 else value


def next_power(value: int) -> int:
    """Return the least power of two that is at least value; 1 or more."""
    power = 1
    while power < value:
        power *= 2
    return power


def distance(left: int, right: int) -> int:
    """Return the number of bits in which two values differ."""
    differing = 0
    while left or right:
        differing += left % 2 != right % 2
        left, right = left // 2, right // 2
    return differing


def to_flags(value: int, names: list) -> list:
    """Return the names whose bit is set in value, first name for bit 0.

    An empty name is skipped. Raise ValueError if a bit is set that has
    no or an empty name.
    """
    flags = []
    for index, name in enumerate(names):
        if name and value & (1 << index):
            flags.append(name)
            value -= 1 << index
    if value:
        raise ValueError(f"unknown bits: {value:b}")
    return flags
