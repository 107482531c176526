"""A handful of ONNX's official tests on the hardware in simulation: the program in C, its kernels, the datapath."""

import pytest

from tests.onnx_backend.official import classes_of

NAMES = {
    "test_conv_with_strides_padding", "test_convtranspose_pads", "test_maxpool_2d_uint8", "test_averagepool_2d_ceil",
    "test_softmax_axis_1", "test_resize_upsample_scales_linear", "test_quantizelinear", "test_dequantizelinear_axis",
    "test_qlinearconv", "test_qlinearmatmul_2D_int8_float32", "test_gemm_default_matrix_bias", "test_hardswish",
    "test_transpose_all_permutations_3", "test_reduce_mean_keepdims_random", "test_clip", "test_Conv2d_depthwise",
}
CLASSES = classes_of(NAMES, engine="rtl")
TESTS = [(kind, name) for kind, each in CLASSES.items() for name in vars(each) if name.startswith("test_")]


def test_all_are_there():
    assert len(TESTS) == len(NAMES)


@pytest.mark.parametrize(("kind", "name"), TESTS)
def test_in_rtl(kind, name):
    getattr(CLASSES[kind](name), name)()
