import pytest

from pond.matrix import add, determinant, identity, minor, multiply
from pond.matrix import neighbors, shape, spiral, trace, transpose
from pond.matrix import turn_right

GRID = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]


def test_shape_is_rows_and_columns():
    assert shape([[1, 2, 3], [4, 5, 6]]) == (2, 3)
    assert shape([[1, 2]]) == (1, 2)


def test_shape_of_nothing():
    assert shape([]) == (0, 0)


def test_shape_rejects_uneven_rows():
    with pytest.raises(ValueError, match="uneven rows"):
        shape([[1, 2], [3]])


def test_identity_has_ones_on_the_diagonal():
    assert identity(3) == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_identity_of_size_one():
    assert identity(1) == [[1]]


def test_identity_of_size_zero_is_empty():
    assert identity(0) == []


def test_transpose_swaps_rows_and_columns():
    assert transpose([[1, 2, 3], [4, 5, 6]]) == [[1, 4], [2, 5], [3, 6]]


def test_transpose_of_one_row():
    assert transpose([[1, 2]]) == [[1], [2]]


def test_transpose_of_nothing_is_empty():
    assert transpose([]) == []


def test_transpose_rejects_uneven_rows():
    with pytest.raises(ValueError):
        transpose([[1, 2], [3]])


def test_add_adds_cell_by_cell():
    assert add([[1, 2], [3, 4]], [[10, 20], [30, 40]]) == [[11, 22], [33, 44]]


def test_add_of_nothing_is_empty():
    assert add([], []) == []


def test_add_rejects_other_shapes():
    with pytest.raises(ValueError):
        add([[1, 2]], [[1], [2]])


def test_multiply_sums_products():
    assert multiply([[1, 2], [3, 4]], [[5, 6], [7, 8]]) == [[19, 22], [43, 50]]


def test_multiply_of_a_row_and_a_column():
    assert multiply([[1, 2, 3]], [[4], [5], [6]]) == [[32]]
    assert multiply([[1], [2]], [[3, 4]]) == [[3, 4], [6, 8]]


def test_multiply_rejects_shapes_that_do_not_fit():
    with pytest.raises(ValueError):
        multiply([[1, 2]], [[1, 2]])


def test_trace_sums_the_diagonal():
    assert trace([[1, 9], [9, 5]]) == 6


def test_trace_of_nothing_is_zero():
    assert trace([]) == 0


def test_trace_rejects_a_matrix_not_square():
    with pytest.raises(ValueError, match="not square"):
        trace([[1, 2]])


def test_minor_leaves_out_row_and_column():
    assert minor(GRID, 1, 1) == [[1, 3], [7, 9]]


def test_minor_at_the_corners():
    assert minor(GRID, 0, 2) == [[4, 5], [7, 8]]
    assert minor(GRID, 2, 0) == [[2, 3], [5, 6]]


def test_minor_of_one_cell_is_empty():
    assert minor([[5]], 0, 0) == []


def test_determinant_of_two_by_two():
    assert determinant([[3, 8], [4, 6]]) == -14


def test_determinant_of_three_by_three():
    assert determinant([[2, 1, 3], [0, 4, 1], [5, 2, 6]]) == -11


def test_determinant_of_nothing_is_one():
    assert determinant([]) == 1
    assert determinant([[7]]) == 7


def test_determinant_rejects_a_matrix_not_square():
    with pytest.raises(ValueError, match="not square"):
        determinant([[1], [2]])


def test_turn_right_defaults_to_a_quarter():
    assert turn_right([[1, 2], [3, 4]]) == [[3, 1], [4, 2]]


def test_turn_right_of_a_row_gives_a_column():
    assert turn_right([[1, 2, 3]]) == [[1], [2], [3]]


def test_turn_right_several_times():
    assert turn_right([[1, 2], [3, 4]], 2) == [[4, 3], [2, 1]]
    assert turn_right([[1, 2], [3, 4]], 4) == [[1, 2], [3, 4]]


def test_turn_right_back_for_negative_times():
    assert turn_right([[1, 2], [3, 4]], -1) == [[2, 4], [1, 3]]


def test_spiral_goes_inwards():
    assert spiral(GRID) == [1, 2, 3, 6, 9, 8, 7, 4, 5]


def test_spiral_of_a_column():
    assert spiral([[1], [2], [3]]) == [1, 2, 3]


def test_spiral_of_nothing_is_empty():
    assert spiral([]) == []


def test_neighbors_of_the_middle():
    assert neighbors(GRID, 1, 1) == [2, 4, 6, 8]


def test_neighbors_of_the_first_corner():
    assert neighbors(GRID, 0, 0) == [2, 4]


def test_neighbors_of_the_last_corner():
    assert neighbors(GRID, 2, 2) == [6, 8]
    assert neighbors([[1, 2]], 0, 1) == [1]
