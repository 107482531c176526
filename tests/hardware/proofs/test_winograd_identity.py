"""F(2x2, 3x3) computes the correlation, for all integers."""

from itertools import product

from tilewright.isa.numerics import conv23_tile


def test_winograd_is_the_correlation_on_a_basis_and_so_everywhere() -> None:
    # Both sides are bilinear in patch and kernel: matrix products of them, multiplied entry by entry. What they make
    # of each pair of unit matrices determines what they make of any two.
    for (y, x), (i, j) in product(product(range(4), repeat=2), product(range(3), repeat=2)):
        patch = [[int((y, x) == (row, column)) for column in range(4)] for row in range(4)]
        kernel = [[int((i, j) == (row, column)) for column in range(3)] for row in range(3)]
        direct = tuple(tuple(int((y, x) == (row + i, column + j)) for column in range(2)) for row in range(2))
        assert conv23_tile(patch, kernel) == direct
