"""Designs written as design files, which `runtime.design.design_file` reads back as the same design."""

import json
from pathlib import Path

from tilewright.runtime.design.design import Design

__all__ = ["design_text"]


def design_text(design: Design, *remarks: str) -> str:
    """Return a design as the text of a design file, every value filled in, with remarks at its top.

    A technology that is a file is named by its whole path, so that the design may be read from any folder.
    """
    stated = design.to_json()
    name = stated["energy"]["technology"]
    if name.endswith(".toml"):
        stated["energy"]["technology"] = str(Path(name).resolve())
    lines = [*(f"# {' '.join(remark.split())}" for remark in remarks), f"name = {json.dumps(stated.pop('name'))}"]
    for section, values in stated.items():
        lines += ["", f"[{section}]", *(f"{key} = {json.dumps(value, ensure_ascii=False)}"
                                        for key, value in values.items())]
    return "\n".join(lines) + "\n"
