# SPDX-License-Identifier: MIT
"""What comes out of a guest: exit codes, output, files, and its failures."""

import contextlib
import os
import re
import signal
import subprocess

import pytest
from vm import RUN, vm

KERNEL_LOG_COMPLAINS = 124
NO_RESULT = 125
FAKE_WARNING = 'echo "WARNING: CPU: 0 PID: 1 at fake.c:1 fake+0x1/0x2" >/dev/kmsg'


def children_of(pid):
    """Return the command lines of the children of a process, by their pids."""
    command = ["ps", "--ppid", str(pid), "-ww", "-o", "pid=,args="]
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    return {int(line.split()[0]): line for line in lines}


@contextlib.contextmanager
def sleeping_guest():
    """Give a guest that runs and does not end, and the first line of its output."""
    command = [RUN, "--", "sh", "-c", "echo now; sleep 1000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as run:
        try:
            yield run, run.stdout.readline()
        finally:
            run.terminate()


@pytest.mark.parametrize("kernel", ["6.12", "7"])
@pytest.mark.parametrize(("command", "code"), [("true", 0), ("false", 1)])
def test_exit_code_is_the_commands(kernel, command, code):
    assert vm("--kernel", kernel, command=[command]).returncode == code


def test_command_is_run_where_the_caller_is_with_its_arguments(tmp_path):
    (tmp_path / "input").write_text("from the host")
    command = ["sh", "-c", 'pwd; cat input; printf "|%s" "$@"', "sh", "a b", "$HOME", "'", ""]
    done = vm(command=command, cwd=tmp_path)
    assert done.stdout == f"{tmp_path}\nfrom the host|a b|$HOME|'|"


def test_output_and_errors_are_passed_on_unchanged_and_in_order():
    script = r"printf 'one\n'; printf 'two\r\n\0three' >&2; echo >/dev/stderr; printf end"
    done = vm(shell=script, text=False)
    assert done.stdout == b"one\ntwo\r\n\0three\nend"
    assert done.stderr == b""


def test_much_output_is_complete():
    done = vm(shell="seq 1 1000000")
    assert done.stdout.splitlines()[-1] == "1000000"
    assert done.stdout.count("\n") == 1000000


def test_output_of_a_process_that_is_left_behind_does_not_hold_up_the_end():
    assert vm("--timeout", "30", shell="sleep 1000 & echo done").stdout == "done\n"


def test_output_comes_while_the_command_runs():
    with sleeping_guest() as (run, line):
        assert line == b"now\n"
        assert run.poll() is None


def test_nothing_comes_back_but_what_is_shared(tmp_path):
    shared, private = tmp_path / "shared", tmp_path / "private"
    shared.mkdir()
    private.mkdir()
    script = f"echo out >{shared}/file; echo out >{private}/file; touch /usr/from-the-guest; cat {private}/file"
    done = vm("--share-out", str(shared), shell=script, cwd=private)
    assert (done.returncode, done.stdout) == (0, "out\n")
    assert (shared / "file").read_text() == "out\n"
    assert not list(private.iterdir())
    assert not os.path.exists("/usr/from-the-guest")


def test_variables_are_passed_when_asked_for():
    environment = dict(os.environ, GIVEN="a 'b'", KEPT="x")
    done = vm(
        "--env", "GIVEN", "--env", "SET=1=2", shell='echo "$GIVEN $SET ${KEPT-}"', env=environment
    )
    assert done.stdout == "a 'b' 1=2 \n"


def test_disk_keeps_what_is_written(tmp_path):
    disk = tmp_path / "disk"
    disk.write_bytes(bytes(1 << 20))
    assert vm("--disk", str(disk), shell="printf kept >/dev/vda; sync").returncode == 0
    assert disk.read_bytes()[:5] == b"kept\0"


def test_complaint_in_the_kernels_log_fails_a_command_that_succeeded(tmp_path):
    log = tmp_path / "log"
    done = vm("--log", str(log), shell=FAKE_WARNING)
    assert done.returncode == KERNEL_LOG_COMPLAINS
    assert "fake.c:1" in done.stderr
    assert "fake.c:1" in log.read_text()


def test_complaint_may_be_allowed():
    assert vm("--allow-log", r"at fake\.c", shell=f"{FAKE_WARNING}; exit 4").returncode == 4


def test_timeout_is_not_a_result():
    done = vm("--timeout", "10", shell="echo started; sleep 1000")
    assert (done.returncode, done.stdout) == (NO_RESULT, "started\n")
    assert "not done after 10 s" in done.stderr


def test_panic_is_not_a_result_and_not_tried_again(tmp_path):
    script = f"echo started; until [ -e {tmp_path}/seen ]; do sleep 0.1; done; echo c >/proc/sysrq-trigger"
    command = [RUN, "--share-out", str(tmp_path), "--", "sh", "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        line = run.stdout.readline()
        (tmp_path / "seen").touch()  # what is still on its way goes down with the guest
        rest, errors = run.communicate()
    assert (run.returncode, line + rest) == (NO_RESULT, "started\n")
    assert "sysrq triggered crash" in errors


def test_guest_that_powers_off_has_no_result():
    assert vm(shell="echo o >/proc/sysrq-trigger; sleep 100").returncode == NO_RESULT


def test_guest_that_dies_before_the_command_is_started_three_times():
    done = vm("--cmdline", "root=/dev/none", shell="true")
    assert done.returncode == NO_RESULT
    assert "it was started 3 times" in done.stderr
    assert done.stderr.count("starting it again") == 2


def test_wrong_usage_is_not_a_result():
    done = vm("--kernel", "2.6", shell="true")
    assert done.returncode == NO_RESULT
    assert "2.6" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_leaves_nothing_behind(number):
    with sleeping_guest() as (run, _):
        children = children_of(run.pid)
        directories = set(re.findall("/tmp/ublkd-vm-[^/ ]*", " ".join(children.values())))
        assert (len(children), len(directories)) == (2, 1)
        run.send_signal(number)
        assert run.wait(timeout=20) == 128 + number
    assert not [pid for pid in children if os.path.exists(f"/proc/{pid}")]
    assert not os.path.exists(directories.pop())


def test_guests_run_side_by_side():
    commands = [[RUN, "--", "sh", "-c", f"hostname; exit {code}"] for code in (10, 11, 12)]
    guests = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    assert [guest.wait(timeout=120) for guest in guests] == [10, 11, 12]


def test_icount_measures_the_same_twice():
    script = """
	read -r before _ </proc/uptime
	i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done
	read -r after _ </proc/uptime
	echo "$before $after"
	"""

    def seconds():
        before, after = vm("--icount", shell=script).stdout.split()
        return float(after) - float(before)

    assert seconds() == pytest.approx(seconds(), rel=0.05)
