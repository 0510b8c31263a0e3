# SPDX-License-Identifier: MIT
"""The API from a shell, as docs/getting-started.md shows it."""
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/getting-started.md").read_text()


def commands(server):
    (block,) = re.findall(r"^## With the API alone\n\n```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert "/run/ublkd/ublkd.sock" in block
    return block.replace("/run/ublkd/ublkd.sock", server.path)


def test_the_helper_of_the_page_creates_patches_shows_and_deletes(server):
    """One helper with one Content-Type is enough for every method."""
    block = commands(server)
    assert all(method in block for method in ("POST", "PATCH", "DELETE"))
    before, _, delete = block.rpartition("api -X DELETE")
    run = subprocess.run(["sh", "-euc", before], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    created, patched, shown = (json.loads(text) for text in re.split(r"\n(?=\{)", run.stdout))
    assert created["generation"] == 1 and patched["generation"] == 2
    assert patched["spec"]["labels"] == shown["spec"]["labels"] == {"app": "db"}
    assert server.ask("GET", "/devices/data").status == 200
    helper = block.splitlines()[0]
    run = subprocess.run(["sh", "-euc", f"{helper}\napi -X DELETE{delete}"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and run.stdout == ""
    assert server.ask("GET", "/devices/data").status == 404
