"""Python's collector of garbage looks seldom: compilers and designs are many small objects, few of them in circles.

With its own thresholds it takes a third of a compilation's time. What collecting the tests has made stays to the end.
"""

import gc

_THRESHOLDS = 20_000, 10, 10
"""Objects until the youngest generation is looked at, and how often until the next one is: 2 million for all."""


def pytest_collection_finish():
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
