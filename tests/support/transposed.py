"""A transposed convolution by its definition: every input element scatters its kernel into the output."""

import numpy as np


def sums_by_definition(x, weights, bias, shape, strides, pads, dilations, groups):
    """Return the int64 sums of ``shape``; what falls outside is dropped. Weights are (C, O // groups, kh, kw)."""
    sums = np.zeros(shape, np.int64) + bias[:, None, None]
    _, each, kernel_y, kernel_x = weights.shape
    for (c, i, j), value in np.ndenumerate(x):
        group = c // (x.shape[0] // groups)
        for ky in range(kernel_y):
            for kx in range(kernel_x):
                y, z = i * strides[0] + ky * dilations[0] - pads[0], j * strides[1] + kx * dilations[1] - pads[1]
                if 0 <= y < shape[1] and 0 <= z < shape[2]:
                    sums[group * each:(group + 1) * each, y, z] += value * weights[c, :, ky, kx].astype(np.int64)
    return sums
