"""Layers for the multiply-accumulate unit: commands, buffer contents, and the sums numpy expects.

The packing is written from docs/datapath.md, the sums are plain convolutions; neither knows the hardware.
"""

from dataclasses import dataclass, field

import numpy as np

from tilewright.isa.machine import Machine


@dataclass
class Layer:
    """One run command: what precedes it, what it reads, what it gives.

    ``writes`` are activation writes (blocked, address, bytes); ``main`` and ``ninths`` weight words (index of a
    128-bit word over all clusters, 16 bytes); ``sums`` has shape (lane groups, tiles, pixels, lanes).
    """

    mnemonic: str
    variant: str
    settings: dict[str, dict[str, int]]
    operands: dict[str, int]
    sums: np.ndarray
    winograd: bool
    writes: list[tuple[bool, int, bytes]] = field(default_factory=list)
    main: list[tuple[int, bytes]] = field(default_factory=list)
    ninths: list[tuple[int, bytes]] = field(default_factory=list)
    steps: int = 0

    @property
    def hold(self) -> bool:
        return bool(self.operands["hold"])


@dataclass
class Place:
    """Where the next layer's data go: a byte of the activation buffer, a word of each weight memory."""

    machine: Machine
    activation: int = 0
    weight: int = 0

    def take_activation(self, count: int) -> int:
        start, self.activation = self.activation, self.activation + count
        if self.activation > self.machine.activation_bytes:
            raise ValueError(f"Layers must fit into {self.machine.activation_bytes} bytes")
        return start

    def take_weights(self, count: int) -> int:
        start, self.weight = self.weight, -(-(self.weight + count) // 8) * 8
        if self.weight > self.machine.weight_words:
            raise ValueError(f"Layers must fit into {self.machine.weight_words} weight words")
        return start


def convolve(x: np.ndarray, w: np.ndarray, stride: int = 1, dilation: int = 1) -> np.ndarray:
    """Return the valid correlation of x (h, w, c) with w (o, kh, kw, c): (oh, ow, o) int64."""
    x, w = x.astype(np.int64), w.astype(np.int64)
    kernel_y, kernel_x = w.shape[1:3]
    rows = (x.shape[0] - (kernel_y - 1) * dilation - 1) // stride + 1
    columns = (x.shape[1] - (kernel_x - 1) * dilation - 1) // stride + 1
    out = np.zeros((rows, columns, len(w)), np.int64)
    for i in range(kernel_y):
        for j in range(kernel_x):
            y0, x0 = i * dilation, j * dilation
            out += x[y0:y0 + (rows - 1) * stride + 1:stride, x0:x0 + (columns - 1) * stride + 1:stride] @ w[:, i, j].T
    return out


def values(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return int8 values: random, or now and then only the extremes."""
    if rng.random() < 0.2:
        return rng.choice(np.array([-128, 127], np.int8), shape)
    return rng.integers(-128, 128, shape).astype(np.int8)


def eta_of(runs: np.ndarray) -> np.ndarray:
    """Return what an array of inner products leaves in the sums of ``runs`` (o, bytes): neighbours' products."""
    even, odd = runs[:, 0::2].astype(np.int64), runs[:, 1::2].astype(np.int64)
    return (even * odd).sum(axis=1)


def tile_eta(kernels: np.ndarray) -> np.ndarray:
    """Return what pairs of channels leave in four times the pixels: (o, 2, 2) of kernels (o, c, 3, 3), c even."""
    g2, a = np.array(((2, 0, 0), (1, 1, 1), (1, -1, 1), (0, 0, 2))), np.array(((1, 1, 1, 0), (0, 1, -1, -1)))
    u = g2 @ kernels.astype(np.int64) @ g2.T
    return a @ (u[:, 0::2] * u[:, 1::2]).sum(axis=1) @ a.T


def settings(**fields: int) -> dict[str, dict[str, int]]:
    """Return the four ``conv.set`` commands, with defaults for what a layer does not use."""
    given = {"kernel_x": 1, "kernel_y": 1, "kernel_x_step": 0, "kernel_y_step": 0, "group_step": 0,
             "pair_words": 0} | fields
    names = {"set_shape": ("tiles_x", "runs", "kernel_x", "kernel_y"), "set_tile_step": ("x_step", "y_step"),
             "set_kernel_step": ("kernel_x_step", "kernel_y_step", "pair_words"), "set_group_step": ("group_step",)}
    return {variant: {name: given[name] for name in members} for variant, members in names.items()}


def run_operands(base: int, tiles_y: int, weight_base: int, groups: int, **flags: int) -> dict[str, int]:
    return {"base": base, "tiles_y": tiles_y, "y_half": 0, "weight_base": weight_base, "groups": groups,
            "accumulate": 0, "hold": 0} | flags


def conv23(place, rng, *, channels, tiles_x, tiles_y, groups=1, grouped=False, y_half=0, reuse=True, by_channel=False,
           four=False, **flags):
    """Return a 3x3 layer on the blocked layout; ``grouped``: each lane group has channels of its own.

    ``by_channel``: each lane has one, and the kernel for it is there alone; ``four``: four patches come at once.
    """
    machine = place.machine
    lanes = machine.lanes
    if by_channel:
        channels, grouped = lanes, True
    if machine.pairs_channels:  # an odd channel is taken with the byte behind it, and zero weights
        channels += channels % 2
    stored = channels * (groups if grouped else 1)
    rows, columns = 2 * tiles_y + 2, 2 * tiles_x + 2
    x = values(rng, (rows, columns, stored))
    w = values(rng, (groups * lanes, 3, 3, channels))
    x_step = 16 * stored
    y_step = x_step * -(-columns // 4)
    block_rows = -(-(rows + 2 * y_half) // 4)
    unit = 16 * machine.block_unit
    place.activation = -(-place.activation // unit) * unit
    base = place.take_activation(block_rows * y_step)
    writes = []
    for y, xx in np.ndindex(rows, columns):
        up = y + 2 * y_half
        for c in range(0, stored, machine.bus_bytes):
            word = base // 16 + up // 4 * (y_step // 16) + xx // 4 * stored + c
            writes.append((True, 16 * word + (xx % 4 + 4 * (up % 4) + c) % 16,
                           x[y, xx, c:c + machine.bus_bytes].tobytes()))
    if by_channel:
        w *= np.tile(np.eye(lanes, dtype=np.int8), (groups, 1))[:, None, None, :]
    main, ninths, weight_base = (_pack_channels if by_channel else _pack_conv23)(place, w, channels, groups)
    out = np.concatenate([
        convolve(x[:, :, g * channels * grouped:g * channels * grouped + channels], w[g * lanes:(g + 1) * lanes])
        for g in range(groups)], axis=2)  # (rows - 2, columns - 2, groups * lanes)
    sums = out.reshape(tiles_y, 2, tiles_x, 2, groups, lanes).transpose(4, 0, 2, 1, 3, 5)
    if machine.pairs_channels:
        eta = tile_eta(w.transpose(0, 3, 1, 2)).reshape(groups, lanes, 2, 2).transpose(0, 2, 3, 1)
        sums = sums + (eta >> 2)[:, None, None]
    loops, variant = {"runs": channels}, "run" if reuse else "run_without_reuse"
    if by_channel:
        variant = "run_by_channel"
    if four:
        variant = "run_four_patches"
        loops = {"runs": machine.lanes_per_fetch, "kernel_x": machine.clusters,
                 "kernel_x_step": 16 * machine.lanes_per_cluster}
    return Layer(
        "conv23", variant,
        settings(tiles_x=tiles_x, **loops, x_step=x_step, y_step=y_step,
                 group_step=16 * channels if grouped else 0),
        run_operands(base, tiles_y, weight_base, groups, y_half=y_half, **flags),
        sums.reshape(groups, tiles_y * tiles_x, 4, lanes), True, writes, main, ninths,
        steps=channels // 4 if four else channels)


def conv(place, rng, *, channels, kernel, tiles_x, tiles_y, stride=1, dilation=1, groups=1, grouped=False,
         paired=False, **flags):
    """Return a layer of any kernel (ky, kx) on the linear layout; a kernel row without dilation is one run.

    ``paired``: a run is 8 bytes each of two kernel rows, so a row (or pixel) must not have more.
    """
    machine = place.machine
    lanes, (kernel_y, kernel_x) = machine.lanes, kernel
    stored = channels * (groups if grouped else 1)
    rows = (tiles_y - 1) * stride + (kernel_y - 1) * dilation + 1
    columns = (tiles_x - 1) * stride + (kernel_x - 1) * dilation + 1
    x = values(rng, (rows, columns, stored))
    w = values(rng, (groups * lanes, kernel_y, kernel_x, channels))
    place.activation += int(rng.integers(0, 16))  # any alignment
    row_step = columns * stored + int(rng.integers(0, 4))
    while paired and dilation * row_step % 16 != 8:
        row_step += 1
    base = place.take_activation((rows + paired * dilation) * row_step)
    place.take_activation(32)  # a row's last run reads on
    writes = [write for y in range(rows) for write in _linear(base + y * row_step, x[y].tobytes(), machine)]
    one_run = dilation == 1 and not grouped
    turns_x, bytes_ = (1, kernel_x * channels) if one_run else (kernel_x, channels)
    runs = -(-bytes_ // 16)
    packed = np.zeros((groups * lanes, kernel_y, turns_x, runs * 16), np.int8)
    packed[..., :bytes_] = w.reshape(groups * lanes, kernel_y, turns_x, bytes_)
    pairs = -(-kernel_y // 2)
    if paired:  # (o, pair, row of it, column, 16) -> (o, pair, column, 8 bytes of each row)
        assert bytes_ <= 8
        even = np.zeros((groups * lanes, 2 * pairs, turns_x, 8), np.int8)
        even[:, :kernel_y] = packed[..., :8]
        packed = even.reshape(groups * lanes, pairs, 2, turns_x, 8).transpose(0, 1, 3, 2, 4)
    main, weight_base = _pack_conv(place, packed.reshape(groups * lanes, -1, 16), groups)
    turns_y, y_rows = (pairs, 2 * dilation) if paired else (kernel_y, dilation)
    out = np.concatenate([
        convolve(x[:, :, g * channels * grouped:g * channels * grouped + channels], w[g * lanes:(g + 1) * lanes],
                 stride, dilation) for g in range(groups)], axis=2)
    if machine.inner:
        out = out + eta_of(packed.reshape(groups * lanes, -1))
    sums = out.reshape(tiles_y * tiles_x, groups, lanes).transpose(1, 0, 2)
    return Layer(
        "conv", "run",
        settings(tiles_x=tiles_x, runs=runs, kernel_x=turns_x, kernel_y=turns_y, x_step=stride * stored,
                 y_step=stride * row_step, kernel_x_step=dilation * stored, kernel_y_step=y_rows * row_step,
                 group_step=channels if grouped else 0,
                 pair_words=(dilation * row_step - 8) // 16 if paired else 0),
        run_operands(base, tiles_y, weight_base, groups, **flags),
        sums[:, :, None, :], False, writes, main, steps=turns_y * turns_x * runs)


def pool_sum(place, rng, *, kernel, tiles_x, tiles_y, stride=1, groups=1, **flags):
    """Return a layer that sums windows channel by channel, ``lanes`` channels to a lane group."""
    machine = place.machine
    lanes, (kernel_y, kernel_x) = machine.lanes, kernel
    channels = groups * lanes
    rows, columns = (tiles_y - 1) * stride + kernel_y, (tiles_x - 1) * stride + kernel_x
    x = values(rng, (rows, columns, channels))
    base = place.take_activation(rows * columns * channels)
    place.take_activation(32)
    one = np.eye(channels, dtype=np.int8)[:, None, None, :] * np.ones((1, kernel_y, kernel_x, 1), np.int8)
    sums = convolve(x, one, stride).reshape(tiles_y * tiles_x, groups, lanes).transpose(1, 0, 2)
    return Layer(
        "pool", "sum",
        settings(tiles_x=tiles_x, runs=machine.lane_runs, kernel_x=kernel_x, kernel_y=kernel_y,
                 x_step=stride * channels, y_step=stride * columns * channels, kernel_x_step=channels,
                 kernel_y_step=columns * channels, group_step=lanes),
        run_operands(base, tiles_y, 0, groups, **flags),
        sums[:, :, None, :], False, list(_linear(base, x.tobytes(), machine)),
        steps=kernel_y * kernel_x * machine.lane_runs)


def _linear(address: int, content: bytes, machine: Machine):
    for i in range(0, len(content), machine.bus_bytes):
        yield False, address + i, content[i:i + machine.bus_bytes]


def _pack_conv(place: Place, w: np.ndarray, groups: int):
    """Pack runs w (o, k, 16) as 128-bit words; return them, with their index over all clusters, and their base."""
    machine = place.machine
    clusters, each = machine.clusters, machine.lanes_per_cluster
    base = place.take_weights(groups * w.shape[1] * each)
    words = w.reshape(groups, clusters, each, w.shape[1], 16).transpose(0, 3, 2, 1, 4).reshape(-1, clusters, 16)
    return _words(base, words, clusters), base


def _pack_conv23(place: Place, w: np.ndarray, channels: int, groups: int):
    """Pack 3x3 kernels w (o, 3, 3, c): main words, ninth words, and the base of the main words."""
    machine = place.machine
    clusters, each = machine.clusters, machine.lanes_per_cluster
    kernels = groups * channels * each
    base = place.take_weights(-(-kernels // 2))
    if machine.pairs_channels:  # two channels of one output are a word; the first outputs of all lanes, then the second
        nine = w.reshape(groups, clusters, each // 2, 2, 9, channels // 2, 2).transpose(0, 5, 3, 2, 6, 1, 4)
    else:
        nine = w.reshape(groups, clusters, each, 9, channels).transpose(0, 4, 2, 1, 3)
    return *_kernel_words(nine.reshape(kernels, clusters, 9), base), base


def _pack_channels(place: Place, w: np.ndarray, channels: int, groups: int):
    """Pack the same of lanes that have a kernel each, for their own channel: (o, 3, 3, c) with zeros for the others."""
    machine = place.machine
    clusters, each = machine.clusters, machine.lanes_per_cluster
    base = place.take_weights(-(-groups * each // 2))
    own = np.stack([w[o, :, :, o % channels].ravel() for o in range(len(w))])
    nine = own.reshape(groups, clusters, each, 9).transpose(0, 2, 1, 3).reshape(groups * each, clusters, 9)
    return *_kernel_words(nine, base), base


def _kernel_words(nine: np.ndarray, base: int):
    """Return main words and ninth words of kernels (kernel, cluster, 9)."""
    kernels, clusters = nine.shape[:2]
    padded = np.zeros((-(-kernels // 16) * 16, clusters, 9), np.int8)
    padded[:kernels] = nine
    main = padded[..., :8].reshape(-1, 2, clusters, 8).transpose(0, 2, 1, 3).reshape(-1, clusters, 16)
    ninths = padded[..., 8].reshape(-1, 16, clusters).transpose(0, 2, 1)
    return _words(base, main[:-(-kernels // 2)], clusters), _words(base // 8, ninths, clusters)


def _words(base: int, words: np.ndarray, clusters: int) -> list[tuple[int, bytes]]:
    return [((base + w) * clusters + k, words[w, k].tobytes()) for w, k in np.ndindex(words.shape[:2])]
