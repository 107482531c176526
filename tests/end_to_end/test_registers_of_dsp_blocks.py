"""Multipliers whose registers hold nothing, as those in ECP5's blocks (hardware/synthesis/ecp5_multipliers.v), compute
the same: the gateware takes each product in the one cycle in which it stands there.
"""

import pytest
from amaranth import Const

from tests.support.random_layers import layers_of_every_kind
