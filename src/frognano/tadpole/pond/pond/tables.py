"""Tables as lists of dict rows, and as aligned lines of text."""


def columns(rows: list) -> list:
    """Return every key used in rows, in order of first appearance."""
    names = []
    for row in rows:
        for key in row:
            if key not in names:
                names.append(key)
    return names


def where(rows: list, **wanted: object) -> list:
    """Return the rows whose values equal all of wanted, in order.

    A row without a wanted key does not match; nothing wanted matches all.
    """
    found = []
    for row in rows:
        if all(k in row and row[k] == wanted[k] for k in wanted):
            found.append(row)
    return found


def sort_rows(rows: list, key: str, reverse: bool = False) -> list:
    """Return rows sorted by key, ascending unless reverse is set.

    Rows without key come last either way; equal rows keep their order.
    """
    having = [row for row in rows if key in row]
    lacking = [row for row in rows if key not in row]
    having.sort(key=lambda row: row[key], reverse=reverse)
    return having + lacking


def group_rows(rows: list, key: str) -> dict:
    """Return {value: rows} for the values of key, in order of appearance.

    Rows without key are left out.
    """
    groups = {}
    for row in rows:
        if key in row:
            groups.setdefault(row[key], []).append(row)
    return groups


def total_by(rows: list, key: str, field: str) -> dict:
    """Return {value of key: sum of field}; a missing field counts 0.

    They are in order of appearance. Raise KeyError for a row without key.
    """
    totals = {}
    for row in rows:
        name = row[key]
        totals[name] = totals.get(name, 0) + row.get(field, 0)
    return totals


def fill_missing(rows: list, default: object = "") -> list:
    """Return new rows with every key, and default where it was missing.

    default is "" unless given, None counts as missing.
    """
    filled = []
    for row in rows:
        new = {}
        for key in columns(rows):
            value = row.get(key)
            new[key] = default if value is None else value
        filled.append(new)
    return filled


def join_rows(left: list, right: list, key: str) -> list:
    """Return each left row merged with each right row of equal key.

    Pairs come in the order of left, then of right; where both have a
    field the right one wins. All rows must have key.
    """
    joined = []
    for one in left:
        for other in right:
            if one[key] == other[key]:
                joined.append({**one, **other})
    return joined


def pivot(rows: list, row: str, column: str, value: str) -> dict:
    """Return {row value: {column value: value}}, in the order of rows.

    Raise ValueError("cell filled twice") if two rows have the same.
    """
    cells = {}
    for entry in rows:
        line = cells.setdefault(entry[row], {})
        if entry[column] in line:
            raise ValueError("cell filled twice")
        line[entry[column]] = entry[value]
    return cells


def column_widths(lines: list, least: int = 1) -> list:
    """Return the greatest text length in each column of lines of cells.

    No width is under least (default 1). Lines may differ in length; no
    lines give [].
    """
    widths = []
    for cells in lines:
        for index, cell in enumerate(cells):
            if index == len(widths):
                widths.append(least)
            widths[index] = max(widths[index], len(str(cell)))
    return widths


def format_row(cells: list, widths: list, sep: str = " | ") -> str:
    """Return cells padded to widths and joined by sep, " | " by default.

    Numbers are set to the right, blanks at the end are stripped. Raise
    ValueError if the lengths of cells and widths differ.
    """
    if len(cells) != len(widths):
        raise ValueError("lengths differ")
    padded = []
    for cell, width in zip(cells, widths):
        right = isinstance(cell, (int, float))
        padded.append(str(cell).rjust(width) if right else cell.ljust(width))
    return sep.join(padded).rstrip()


def parse_row(line: str, sep: str = ",") -> list:
    """Return the cells of line, split at sep outside of double quotes.

    sep is "," by default. The quotes are dropped. Raise
    ValueError("open quote") if one is not closed.
    """
    cells, quoted = [""], False
    for char in line:
        if char == '"':
            quoted = not quoted
        elif char == sep and not quoted:
            cells.append("")
        else:
            cells[-1] += char
    if quoted:
        raise ValueError("open quote")
    return cells
