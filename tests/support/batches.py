"""Execute a batch, and hold every image of it to the integer reference of one image."""

import numpy as np

from tests.support.core_networks import inputs_of
from tests.support.execute import execute
from tilewright.compiler.batch.in_batch import image_name
from tilewright.compiler.compile import Compiled, compile_layers
from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.operands import images_of, of_images
from tilewright.compiler.network.options import Options
from tilewright.compiler.network.parts.needed_pixels import with_needed_pixels
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.schedule.races import check
from tilewright.isa.machine import Machine


def assert_batch_is_its_images(network: Network, machine: Machine, images: int, seed: int = 0) -> Compiled:
    """Compile ``network`` for a batch, execute it, and hold each tensor of each image to the reference of that one."""
    compiled = compile_layers(network, machine, keep_tensors=True, options=Options(batch=images))
    check((command for _, command in compiled.program.commands()), machine)
    feeds = [inputs_of(network, 10 * seed + image) for image in range(images)]
    stacked = {info.name: of_images([feed[info.name] for feed in feeds], info) for info in compiled.network.inputs}
    found = execute(compiled, stacked)
    whole = with_needed_pixels(network)     # without tensors of which not all pixels are computed
    seen = 0
    for index, feed in enumerate(feeds):
        for name, expected in run_network(network, feed).items():
            if name not in whole.tensors:
                continue
            if name in found and name in compiled.network.tensors:
                info = compiled.network.tensors[name]
                value = images_of(found[name], info)[index]
            else:
                value = found[image_name(name, index)]
            np.testing.assert_array_equal(value, expected, err_msg=f"{name} of image {index}")
            seen += 1
    assert seen >= images * sum(layer.output in network.tensors for layer in whole.layers)
    return compiled
