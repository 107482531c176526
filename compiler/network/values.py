"""The values of a network's tensors by name, where a tensor and the parts that lie in it are the same memory."""

from collections.abc import Mapping

import numpy as np

from tilewright.compiler.network.layers import TensorInfo
from tilewright.compiler.network.memory_map import tensor_bytes
from tilewright.compiler.network.operands import tensor_operand, view


class Values(dict[str, np.ndarray]):
    """Arrays by name; of tensors that lie in one another, views of one memory, there from the start.

    What is set is copied into such memory, so that a whole is assembled of its parts, and parts are cut from it.
    """

    def __init__(self, tensors: Mapping[str, TensorInfo]) -> None:
        super().__init__()
        parts = [info for info in tensors.values() if info.place is not None]
        memories: dict[str, np.ndarray] = {}
        for info in parts:
            assert info.place is not None
            whole = tensors[info.place.parent]
            memory = memories.get(whole.name)
            if memory is None:
                memory = memories[whole.name] = np.zeros(tensor_bytes(whole), np.int8)
                self._share(whole, memory)
            self._share(info, memory[info.place.offset:])
        self.shared = frozenset(self)

    def _share(self, info: TensorInfo, memory: np.ndarray) -> None:
        found = view(memory, tensor_operand(info, 0))
        shaped = found.reshape(info.array_shape)
        if not np.shares_memory(shaped, found):
            raise ValueError(f"Tensor {info.name!r}, which lies in another or has parts, must keep its shape "
                             f"{info.shape!r} but for dimensions of 1, not have {info.array_shape!r}")
        super().__setitem__(info.name, shaped)

    def __setitem__(self, name: str, array: np.ndarray) -> None:
        """Set a value; ``array`` may have any shape of as many elements."""
        if name in self.shared:
            self[name][...] = array.reshape(self[name].shape)
        else:
            super().__setitem__(name, array)
