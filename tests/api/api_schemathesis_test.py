# SPDX-License-Identifier: MIT
"""schemathesis with the served document: each of its requests, valid or not, gets an answer that the document describes.

UBLKD_SEED=N sets the seed (default 1, so that two runs of one build agree), UBLKD_EXAMPLES=N how many requests each
operation gets, UBLKD_PHASES which phases run. `coverage` is left to ./check --all: it tries each boundary of the schemas,
which takes minutes."""
import os
import pathlib
import subprocess

from api_listen_test import start_tcp

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEED = os.environ.get("UBLKD_SEED", "1")
EXAMPLES = os.environ.get("UBLKD_EXAMPLES", "8")
PHASES = os.environ.get("UBLKD_PHASES", "examples,fuzzing,stateful")


def test_requests_that_the_document_allows(tmp_path):
    server, port = start_tcp(tmp_path)
    token = (tmp_path / "api-token").read_text().strip()
    python = subprocess.run([ROOT / "scripts/test-venv"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    print(f"UBLKD_SEED={SEED} UBLKD_EXAMPLES={EXAMPLES} UBLKD_PHASES={PHASES}")
    run = subprocess.run(
        [python, "-m", "schemathesis.cli", "--config-file", ROOT / "tests/api/schemathesis.toml", "run",
         f"http://127.0.0.1:{port}/openapi.json", "--header", f"Authorization: Bearer {token}", "--seed", SEED,
         "--max-examples", EXAMPLES, "--phases", PHASES],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(run.stdout[-20000:])
    server.stop()
    assert run.returncode == 0
