"""Run programs."""

import subprocess


def run(*command, check=True, timeout=120, **more):
    """Run a program; its output is captured as text, and a failure shows it."""
    result = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=timeout,
        **more,
    )
    if check and result.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} ended with {result.returncode}: {result.stdout}")
    return result


def output(*command, **more):
    """Return what a program prints, without the white space around it."""
    return run(*command, **more).stdout.strip()
