"""The log of a failed tool tells its cause, if one of the known ones, or its first error."""

import pytest

from tilewright.tools.build_logs import cause_in


@pytest.mark.parametrize(("text", "cause"), [
    ("g++ a.cpp\nfatal error: error writing to a.o: No space left on device\nmake: *** Error 1", "disk is full"),
    ("c++: fatal error: Killed signal terminated program cc1plus", "memory"),
    ("a.o: Permission denied", "TILEWRIGHT_CACHE"),
    ("%Error: soc.sv:3:1: syntax error, unexpected end", "soc.sv:3:1: syntax error"),
    ("x.cpp:5:3: error: 'y' was not declared", "'y' was not declared"),
    ("make: *** [Vtop.mk:60: all] Error 2", ""),
])
def test_causes(tmp_path, text, cause):
    log = tmp_path / "build.log"
    log.write_text(text)
    told = cause_in(log)
    assert cause in told
    assert told.endswith(f"; the log is {log}")
    assert (cause == "") == (told == f"; the log is {log}")


def test_a_log_that_is_not_there_tells_nothing(tmp_path):
    assert cause_in(tmp_path / "none.log") == ""
