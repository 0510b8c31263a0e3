# SPDX-License-Identifier: MIT
"""The ways that the bytes of a request can go: data paths, and the daemons whose disks go each of them."""

import dataclasses

import pytest

from . import programs, ublk
from .disk import Disk


@dataclasses.dataclass(frozen=True)
class Way:
    """A data path, with the daemon that has its disks go that way."""

    path: str
    batch: bool = False
    auto_buffers: bool = True
    worker: str = None

    def __str__(self):
        return self.path + ("-batch" if self.batch else "") + (f"-{self.worker}" if self.worker else "") + (
            "" if self.auto_buffers else "-unregistered"
        )

    @property
    def needs(self):
        """The features without which the kernel cannot do it."""
        path = {"copy": set(), "user-copy": {"USER_COPY"}, "zero-copy": {"SUPPORT_ZERO_COPY"}}[self.path]
        auto = {"AUTO_BUF_REG"} if self.path == "zero-copy" and self.auto_buffers else set()
        return path | auto | ({"BATCH_IO"} if self.batch else set())

    def start(self, make_daemon, **more):
        """A daemon whose disks go this way."""
        ignored = ([] if self.batch else ["BATCH_IO"]) + ([] if self.auto_buffers else ["AUTO_BUF_REG"])
        if self.worker:
            more["worker"] = programs.build() / f"ublkd-worker-{self.worker}"
        return make_daemon(more_options=[f"--ignore-feature={name}" for name in ignored], **more).start()

    def create(self, api, spec):
        """Make a disk that goes this way."""
        device = api.create({**spec, "dataPath": self.path})
        self.check(device)
        assert ("AUTO_BUF_REG" in device["status"]["kernelFeatures"]) == (self.path == "zero-copy" and self.auto_buffers)
        return Disk(device["status"]["id"])

    def check(self, device):
        """What is to be quiesced for a restart goes without batches."""
        batch = self.batch and device["spec"].get("recovery", {}).get("onCrash") != "queue"
        assert device["status"]["dataPath"] == self.path and device["status"]["batch"] == batch


HAS = ublk.features()


_EVERYWHERE = {"USER_COPY"}  # of 6.12, the oldest kernel
# The driver registers the pages of every other tag, and falls back at the rest (NEED_REG_BUF).
_BY_HAND = Way("zero-copy", worker="without-registration")


# Each is made of parts that other ways have: batches, and buffers that are registered one by one.
_COMBINED = (
    Way("user-copy", batch=True),
    Way("zero-copy", auto_buffers=False),
    dataclasses.replace(_BY_HAND, batch=True),
)


def _marks(way, storms, alone):
    return [*([] if way.needs <= _EVERYWHERE and way not in alone else [pytest.mark.both]),
            *([pytest.mark.storm] if way in storms else [])]


def of_this_kernel(*ways_, storms=_COMBINED, alone=()):
    """Parametrize a test with those of the ways that this kernel has, as `way`. What an older one lacks it cannot run
    for this one (--long-part), and `alone` are those that the other one leaves to ./check --all, as this one does `storms`."""
    here = [way for way in ways_ if all(HAS[name] for name in way.needs)]
    return pytest.mark.parametrize("way", [pytest.param(way, marks=_marks(way, storms, alone)) for way in here], ids=str)


_ALL = (
    Way("copy"),
    Way("copy", batch=True),
    Way("user-copy"),
    Way("user-copy", batch=True),
    Way("zero-copy"),
    Way("zero-copy", batch=True),
    Way("zero-copy", auto_buffers=False),
    _BY_HAND,
    dataclasses.replace(_BY_HAND, batch=True),
)
# Where there are batches, one request at a time by zero copy is what main_ways has.
ways = of_this_kernel(*_ALL, storms=[*_COMBINED, *([Way("zero-copy")] if HAS["BATCH_IO"] else [])])
# For a test that takes half a minute with each: the least and the most that this driver does for the worker.
_MOST = Way("zero-copy") if HAS["AUTO_BUF_REG"] else Way("user-copy")
main_ways = of_this_kernel(
    *_ALL, storms=[way for way in _ALL if way not in (Way("copy"), _MOST)], alone=[] if HAS["AUTO_BUF_REG"] else [_MOST]
)
