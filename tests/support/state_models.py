"""A quantised model with two states, one whose ends have one scale and one whose ends have two."""

import onnx
from onnx import parser

__all__ = ["STATE", "state_model"]

STATE = {"h": "hn", "c": "cn"}

_TEXT = """
<ir_version: 8, opset_import: ["" : 18]>
net (float[1, 8, 3, 2] x, float[1, 8, 3, 2] h, float[1, 8, 3, 2] c) => (
    float[1, 8, 3, 2] y, float[1, 8, 3, 2] hn, float[1, 8, 3, 2] cn)
<float sx = {0.5}, float sh = {0.03}, float sn = {0.05}, float sc = {0.7}, float sy = {0.9},
 uint8 zx = {128}, uint8 zh = {120}, uint8 zn = {131}, uint8 zc = {100}>
{
    xq = QuantizeLinear(x, sx, zx)
    xd = DequantizeLinear(xq, sx, zx)
    hq = QuantizeLinear(h, sh, zh)
    hd = DequantizeLinear(hq, sh, zh)
    cq = QuantizeLinear(c, sc, zc)
    cd = DequantizeLinear(cq, sc, zc)
    hsum = Add(xd, hd)
    hs = QuantizeLinear(hsum, sn, zn)
    hn = DequantizeLinear(hs, sn, zn)
    csum = Add(xd, cd)
    cs = QuantizeLinear(csum, sc, zc)
    cn = DequantizeLinear(cs, sc, zc)
    ysum = Add(hd, cd)
    ys = QuantizeLinear(ysum, sy, zc)
    y = DequantizeLinear(ys, sy, zc)
}
"""


def state_model() -> onnx.ModelProto:
    """Return the model: float32 inputs x, h and c, and outputs y, hn and cn, all of (1, 8, 3, 2), uint8 inside."""
    return parser.parse_model(_TEXT)
