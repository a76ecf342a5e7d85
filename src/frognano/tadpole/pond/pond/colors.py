"""Colors as (red, green, blue) tuples of integers from 0 to 255."""


def parse_hex(text: str) -> tuple:
    """Return the color written as "#rgb" or "#rrggbb".

    The "#" may be left out. Raise ValueError for any other length or
    for digits that are not hexadecimal.
    """
    digits = text.removeprefix("#")
    if len(digits) == 3:
        digits = "".join(digit * 2 for digit in digits)
    if len(digits) != 6:
        raise ValueError(f"bad color: {text}")
    return tuple(int(digits[at:at + 2], 16) for at in (0, 2, 4))


def to_hex(rgb: tuple, upper: bool = False) -> str:
    """Return a color as "#rrggbb", in lower case unless upper is set.

    Raise ValueError if a channel is outside 0..255.
    """
    if any(channel < 0 or channel > 255 for channel in rgb):
        raise ValueError(f"bad channel in {rgb}")
    digits = "".join(f"{channel:02x}" for channel in rgb)
    return "#" + (digits.upper() if upper else digits)


def parse_rgb(text: str) -> tuple:
    """Return the color written as "rgb(r, g, b)", blanks being free.

    Raise ValueError for another form or a channel outside 0..255.
    """
    if not (text.startswith("rgb(") and text.endswith(")")):
        raise ValueError(f"bad color: {text}")
    channels = tuple(int(part) for part in text[4:-1].split(","))
    if len(channels) != 3 or not all(0 <= c <= 255 for c in channels):
        raise ValueError(f"bad color: {text}")
    return channels


def invert(rgb: tuple) -> tuple:
    """Return the opposite color: each channel c becomes 255 - c."""
    red, green, blue = rgb
    return 255 - red, 255 - green, 255 - blue


def mix(first: tuple, second: tuple, weight: float = 0.5) -> tuple:
    """Return a blend in which second has the share weight, half by default.

    Channels are rounded to the nearest integer, a half going up. Raise
    ValueError if weight is outside 0..1 (both allowed).
    """
    if weight < 0 or weight > 1:
        raise ValueError("weight must be in 0..1")
    pairs = zip(first, second)
    return tuple(int(a + (b - a) * weight + 0.5) for a, b in pairs)


def shade(rgb: tuple, percent: int) -> tuple:
    """Return rgb moved percent of the way to white, or to black if negative.

    Channels are rounded down. 100 gives white, -100 black and 0 rgb
    itself.
    """
    if percent < 0:
        return tuple(c * (100 + percent) // 100 for c in rgb)
    return tuple(c + (255 - c) * percent // 100 for c in rgb)


def brightness(rgb: tuple) -> int:
    """Return how bright a color looks, from 0 (black) to 255 (white).

    Red counts 299, green 587 and blue 114 thousandths, rounded down.
    """
    red, green, blue = rgb
    total = 299 * red + 587 * green + 114 * blue
    return total // 1000


def is_dark(rgb: tuple, limit: int = 128) -> bool:
    """Return whether the mean of the channels is below limit (default 128)."""
    total = 0
    for channel in rgb:
        total += channel
    return total < 3 * limit


def hue(rgb: tuple) -> int:
    """Return the hue in whole degrees, rounded down, from 0 to 359.

    Red is 0, green 120, blue 240. Grays, having no hue, give 0.
    """
    red, green, blue = rgb
    spread = max(rgb) - min(rgb)
    if spread == 0:
        return 0
    if red == max(rgb):
        return 60 * (green - blue) // spread % 360
    if green == max(rgb):
        return 120 + 60 * (blue - red) // spread
    return 240 + 60 * (red - green) // spread


def saturation(rgb: tuple) -> int:
    """Return the HSV saturation in percent, rounded down; black has 0."""
    high, low = max(rgb), min(rgb)
    if high == 0:
        return 0
    return 100 * (high - low) // high


def nearest(rgb: tuple, palette: dict) -> str:
    """Return the name in palette, {name: color}, of the closest color.

    Distance is the sum of squared channel differences; of equally close
    ones the first wins. Raise ValueError for an empty palette.
    """
    best, best_distance = None, None
    for name, color in palette.items():
        distance = sum((a - b) ** 2 for a, b in zip(rgb, color))
        if best is None or distance < best_distance:
            best, best_distance = name, distance
    if best is None:
        raise ValueError("empty palette")
    return best


def gradient(first: tuple, last: tuple, steps: int) -> list:
    """Return steps colors evenly spaced from first to last, both included.

    Channels are rounded down. Raise ValueError if steps is below 2.
    """
    if steps < 2:
        raise ValueError("need at least 2 steps")
    colors, span = [], steps - 1
    for step in range(steps):
        pairs = zip(first, last)
        colors.append(tuple(a + (b - a) * step // span for a, b in pairs))
    return colors
