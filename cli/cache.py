"""The command ``cache``: show where results are kept between runs and their size, or remove them."""

import shutil
import time
from pathlib import Path
from typing import Annotated

import typer

from tilewright.errors import InputError
from tilewright.tools.toolchain import cache_folder

__all__ = ["cache", "register"]

_DAY_SECONDS = 24 * 60 * 60


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="Example: tilewright cache --prune 30")(cache)


def cache(clear: Annotated[bool, typer.Option("--clear", help="Remove everything.")] = False,
          prune: Annotated[int | None, typer.Option(
              "--prune", metavar="DAYS", min=0, show_default=False,
              help="Remove the entries that were written more than this many days ago.")] = None) -> None:
    """Show where results are kept between runs and how much space they take, or remove them.

    The cache is $TILEWRIGHT_CACHE, else $XDG_CACHE_HOME/tilewright, else ~/.cache/tilewright. Its contents are built
    again when they are needed: a simulator takes a minute, synthesis and calibration take hours. Do not remove the
    cache while another command runs.
    """
    if clear and prune is not None:
        raise InputError("Options --clear and --prune exclude each other: the first removes everything")
    place = cache_folder()
    if clear:
        kinds = sorted(place.iterdir())
        freed = sum(_bytes(each) for each in kinds)
        for each in kinds:
            _remove(each)
        typer.echo(f"removed {_text(freed)} from {place}")
    elif prune is not None:
        typer.echo(f"removed {_text(_prune(place, time.time() - prune * _DAY_SECONDS))} from {place}")
    else:
        sizes = {each.name: _bytes(each) for each in place.iterdir()}
        typer.echo(f"{place}: {_text(sum(sizes.values()))}")
        for name, size in sorted(sizes.items(), key=lambda item: -item[1]):
            typer.echo(f"{_text(size):>12}  {name}")


def _files(place: Path) -> list[Path]:
    """Return the files below a place, or the place itself if it is one; links are files, and not followed."""
    if place.is_symlink() or not place.is_dir():
        return [place]
    return [each for each in place.rglob("*") if each.is_symlink() or not each.is_dir()]


def _bytes(place: Path) -> int:
    return sum(each.lstat().st_size for each in _files(place))


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink()


def _prune(place: Path, before: float) -> int:
    """Remove entries of each kind all of whose files were written before a time; return the bytes."""
    freed = 0
    for kind in place.iterdir():
        for entry in (kind.iterdir() if kind.is_dir() and not kind.is_symlink() else [kind]):
            files = _files(entry)
            if files and max(each.lstat().st_mtime for each in files) < before:
                freed += _bytes(entry)
                _remove(entry)
    return freed


def _text(size: int) -> str:
    """Return bytes in a unit that one can read."""
    value = float(size)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
