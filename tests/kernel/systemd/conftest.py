"""The tests under systemd: tests/kernel/run boots a guest of their own, with systemd as PID 1."""
