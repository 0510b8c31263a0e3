# SPDX-License-Identifier: MIT
"""A copy of dpkg's database with few packages: dpkg reads the list of files of every package each time, and a machine that
builds programs has some hundred thousand files, which takes an emulated guest most of a minute."""

import pathlib
import re
import subprocess

_DATABASE = pathlib.Path("/var/lib/dpkg")
# Beside what is essential: what scripts of packages call, what the tests use, and what must not be installed.
_ALSO = ("init-system-helpers", "passwd", "systemd", "udev", "ublkd")


def _fields(paragraph):
    """{name: value} of a package; continued lines are joined."""
    joined = paragraph.replace("\n ", " ")
    return dict(line.split(":", 1) for line in joined.splitlines() if ":" in line)


def _names(value):
    """The packages that a field such as Depends names, of all alternatives."""
    return {re.split(r"[\s:(]", part.strip())[0] for part in re.split(r"[,|]", value) if part.strip()}


def _needs(fields):
    return _names(fields.get("Depends", "")) | _names(fields.get("Pre-Depends", ""))


def _closure(installed, wanted):
    """The packages of those names, or that provide them, with all that they need."""
    provided = {}
    for package, fields in installed.items():
        for name in {package, *_names(fields.get("Provides", ""))}:
            provided.setdefault(name, set()).add(package)
    kept, names = set(), set(wanted)
    while names:
        packages = set().union(*(provided.get(name, set()) for name in names)) - kept
        kept |= packages
        names = set().union(*(_needs(installed[package]) for package in packages))
    return kept


def _write_status(path, paragraphs, kept):
    path.write_text("\n".join(f"{text}\n" for package, text in paragraphs.items() if package in kept), encoding="utf-8")


def _copy_information(target, kept):
    """The lists of files and the scripts of each package; "format" is of no package."""
    target.mkdir()
    for file in (_DATABASE / "info").iterdir():
        if file.name == "format" or file.stem.partition(":")[0] in kept:
            (target / file.name).write_bytes(file.read_bytes())


def _copy_triggers(target, kept):
    """What awaits changes of files, and triggers with names."""
    target.mkdir()
    for file in (_DATABASE / "triggers").iterdir():
        lines = [line for line in file.read_text(encoding="utf-8").splitlines()
                 if re.split(r"[/:]", line.split()[-1])[0] in kept]
        (target / file.name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def pack(packages, directory, archive):
    """Write the database into an archive: with what is essential, and what these packages need. `directory` is for its files."""
    text = (_DATABASE / "status").read_text(encoding="utf-8")
    paragraphs = {_fields(part)["Package"].strip(): part.strip("\n") for part in text.split("\n\n") if part.strip()}
    installed = {package: _fields(part) for package, part in paragraphs.items()}
    wanted = {package for package, fields in installed.items() if fields.get("Essential", "").strip() == "yes"}
    for package in packages:
        wanted |= _names(subprocess.check_output(["dpkg-deb", "-f", package, "Depends"], text=True))
    kept = _closure(installed, wanted | set(_ALSO))
    directory.mkdir()
    _write_status(directory / "status", paragraphs, kept)
    _copy_information(directory / "info", kept)
    _copy_triggers(directory / "triggers", kept)
    for name in ("alternatives", "parts", "updates"):
        (directory / name).mkdir()
    for name in ("diversions", "statoverride"):
        (directory / name).write_bytes((_DATABASE / name).read_bytes())
    subprocess.run(["tar", "-C", directory, "-cf", archive, "."], check=True)
