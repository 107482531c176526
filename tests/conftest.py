"""Python's collector of garbage looks seldom: compilers and designs are many small objects, few of them in circles.

With its own thresholds it takes a third of a compilation's time. What collecting the tests has made stays to the end.
"""

import gc

from tilewright.tools.toolchain import MAKE_VARIABLES

_THRESHOLDS = 20_000, 10, 10
"""Objects until the youngest generation is looked at, and how often until the next one is: 2 million for all."""


def pytest_configure(config):
    """Compile each model of Verilator as one file where the processors are busy with tests already.

    Files side by side end sooner, but headers precompiled for them and read again take a fifth more processor time.
    """
    if hasattr(config, "workerinput"):
        MAKE_VARIABLES["VM_PARALLEL_BUILDS"] = "0"


def pytest_collection_finish():
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
