# SPDX-License-Identifier: MIT
"""The program of bench/inkernel builds from this tree, with both of its loops. What they do needs the driver."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../bench/peers"))

# pylint: disable=wrong-import-position
import peers


def test_it_builds_from_this_tree(tmp_path, monkeypatch):
    monkeypatch.setenv("UBLKD_CACHE", str(tmp_path))
    peer = peers.peer("inkernel")
    done = subprocess.run([peer.program], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done
    assert os.path.realpath(peer.program).startswith(os.path.realpath(tmp_path))


def test_its_sources_are_what_the_cache_knows_it_by(tmp_path, monkeypatch):
    before = peers.inkernel_recipe()
    (tmp_path / "queue.c").write_text("/* another one */\n", encoding="utf-8")
    monkeypatch.setattr(peers, "INKERNEL", str(tmp_path))
    assert peers.inkernel_recipe() != before
