"""Small matrices as lists of equally long rows of numbers."""


def shape(matrix: list) -> tuple:
    """Return (rows, columns), (0, 0) for no rows.

    Raise ValueError("uneven rows") if the rows differ in length.
    """
    if not matrix:
        return 0, 0
    width = len(matrix[0])
    if any(len(row) != width for row in matrix):
        raise ValueError("uneven rows")
    return len(matrix), width


def identity(size: int) -> list:
    """Return the size by size matrix with 1 on the diagonal, else 0."""
    matrix = []
    for row in range(size):
        matrix.append([1 if col == row else 0 for col in range(size)])
    return matrix


def transpose(matrix: list) -> list:
    """Return the matrix with rows and columns swapped; [] gives [].

    Raise ValueError if the rows differ in length.
    """
    width = shape(matrix)[1]
    flipped = []
    for column in range(width):
        flipped.append([row[column] for row in matrix])
    return flipped


def add(left: list, right: list) -> list:
    """Return the sum, cell by cell.

    Raise ValueError if the shapes differ.
    """
    if shape(left) != shape(right):
        raise ValueError("shapes differ")
    total = []
    for one, two in zip(left, right):
        total.append([a + b for a, b in zip(one, two)])
    return total


def multiply(left: list, right: list) -> list:
    """Return the matrix product left times right.

    Raise ValueError unless left has as many columns as right has rows.
    """
    if shape(left)[1] != shape(right)[0]:
        raise ValueError("shapes do not fit")
    product = []
    for row in left:
        line = []
        for column in zip(*right):
            line.append(sum(a * b for a, b in zip(row, column)))
        product.append(line)
    return product


def trace(matrix: list) -> float:
    """Return the sum of the main diagonal, 0 for [].

    Raise ValueError("not square") if the matrix is not.
    """
    rows, columns = shape(matrix)
    if rows != columns:
        raise ValueError("not square")
    return sum(matrix[at][at] for at in range(rows))


def minor(matrix: list, row: int, column: int) -> list:
    """Return the matrix without one row and one column, counted from 0."""
    kept = []
    for index, line in enumerate(matrix):
        if index != row:
            kept.append(line[:column] + line[column + 1:])
    return kept


def determinant(matrix: list) -> float:
    """Return the determinant of a square matrix; that of [] is 1.

    Raise ValueError("not square") if the matrix is not.
    """
    rows, columns = shape(matrix)
    if rows != columns:
        raise ValueError("not square")
    if not matrix:
        return 1
    total, sign = 0, 1
    for column, value in enumerate(matrix[0]):
        total += sign * value * determinant(minor(matrix, 0, column))
        sign = -sign
    return total


def turn_right(matrix: list, times: int = 1) -> list:
    """Return the matrix turned clockwise by quarter turns, one by default.

    Negative times turn it the other way.
    """
    turned = [list(row) for row in matrix]
    for _ in range(times % 4):
        turned = [list(column) for column in zip(*turned[::-1])]
    return turned


def spiral(matrix: list) -> list:
    """Return the cells clockwise from the top left corner inwards."""
    cells, rest = [], [list(row) for row in matrix]
    while rest:
        cells.extend(rest.pop(0))
        rest = [list(column) for column in zip(*rest)][::-1]
    return cells


def neighbors(matrix: list, row: int, column: int) -> list:
    """Return the cells above, left, right and below, in that order.

    Those outside the matrix are left out.
    """
    rows, columns = shape(matrix)
    found = []
    for down, right in ((-1, 0), (0, -1), (0, 1), (1, 0)):
        y, x = row + down, column + right
        if 0 <= y < rows and 0 <= x < columns:
            found.append(matrix[y][x])
    return found
