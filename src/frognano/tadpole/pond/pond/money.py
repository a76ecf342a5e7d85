"""Amounts of money as whole numbers of cents."""

_COINS = (200, 100, 50, 20, 10, 5, 2, 1)


def parse_cents(text: str) -> int:
    """Return the cents in an amount like "1,234.50", "7" or "-0.5".

    Commas are ignored. Raise ValueError for more than two decimals or
    anything that is not a number.
    """
    negative = text.startswith("-")
    whole, _, part = text.lstrip("-").replace(",", "").partition(".")
    if len(part) > 2:
        raise ValueError(f"too many decimals in {text}")
    cents = int(whole) * 100 + int(part.ljust(2, "0"))
    return -cents if negative else cents


def format_cents(cents: int, symbol: str = "$") -> str:
    """Return cents as an amount like "$1,234.50" or "-$0.05".

    The symbol, "$" by default, stands before the digits as it is.
    """
    sign = "-" if cents < 0 else ""
    whole, part = divmod(abs(cents), 100)
    return f"{sign}{symbol}{whole:,}.{part:02d}"


def split_bill(cents: int, people: int) -> list:
    """Return shares that add up to cents and differ by at most one.

    The greater shares come first. Raise ValueError if people is below 1.
    """
    if people < 1:
        raise ValueError("nobody to pay")
    share, extra = divmod(cents, people)
    return [share + 1] * extra + [share] * (people - extra)


def add_percent(cents: int, percent: int) -> int:
    """Return cents raised by percent, a half cent going up.

    Raise ValueError if percent is negative.
    """
    if percent < 0:
        raise ValueError("negative percent")
    return cents + (cents * percent + 50) // 100


def discount(cents: int, percent: int, most: int = 0) -> int:
    """Return cents less percent of it, the reduction rounded down.

    The reduction is at most most, where 0, the default, is no limit.
    Raise ValueError if percent is outside 0..100 (both allowed).
    """
    if percent < 0 or percent > 100:
        raise ValueError("percent must be in 0..100")
    reduction = cents * percent // 100
    if most > 0:
        reduction = min(reduction, most)
    return cents - reduction


def make_change(cents: int, coins: tuple = _COINS) -> dict:
    """Return {coin: count}, always taking the greatest coin that fits.

    Coins are in any order, 200 to 1 by default; those not used are left
    out. Raise ValueError if a rest remains that no coin fits.
    """
    change = {}
    for coin in sorted(coins, reverse=True):
        if cents >= coin:
            change[coin] = cents // coin
            cents %= coin
    if cents > 0:
        raise ValueError(f"no coin for {cents}")
    return change


def tier_price(quantity: int, tiers: dict) -> int:
    """Return the price of quantity pieces; tiers is {least: price each}.

    The tier with the greatest least not above quantity applies to all
    pieces. Raise ValueError if there is no such tier.
    """
    fitting = [least for least in tiers if least <= quantity]
    if not fitting:
        raise ValueError(f"no price for {quantity}")
    return quantity * tiers[max(fitting)]


def months_to_pay(debt: int, payment: int, percent: int = 0) -> int:
    """Return how many monthly payments clear debt.

    Before each payment percent (default 0) of the debt, rounded down, is
    added. No debt takes 0 payments. Raise ValueError if the first one
    does not exceed what is added before it.
    """
    if debt > 0 and payment <= debt * percent // 100:
        raise ValueError("payment too small")
    months = 0
    while debt > 0:
        debt += debt * percent // 100
        debt -= payment
        months += 1
    return months


def cheapest(offers: dict) -> str:
    """Return the name in offers, {name: (price, amount)}, of the best buy.

    It has the lowest price per amount; of equals the name first in the
    alphabet. Raise ValueError("no offers") if offers is empty.
    """
    if not offers:
        raise ValueError("no offers")
    rates = [(price / size, name) for name, (price, size) in offers.items()]
    return min(rates)[1]
