# SPDX-License-Identifier: MIT
"""The store of other tests waits for programs that have its disk open for a moment, as udev does."""

import threading

import pytest

from harness.backing import TestyStore
from harness.shell import run


@pytest.mark.variant
def test_a_store_waits_until_its_disk_is_closed(tmp_path, monkeypatch):
    run("modprobe", "nbd", "nbds_max=1", "max_part=0")
    refused = threading.Event()

    def client(*command, **more):
        result = run(*command, **more)
        if command[0] == "nbd-client" and result.returncode != 0:
            refused.set()
        return result

    monkeypatch.setattr("harness.backing.run", client)
    with open("/dev/nbd0", "rb") as opener:
        threading.Thread(target=lambda: refused.wait() and opener.close(), daemon=True).start()
        store = TestyStore(tmp_path)
    assert refused.is_set()
    store.close()
