"""Ctrl-C: a job ends within a second or so, and goes on from there."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import understudy as us

SCRIPT = """
import understudy as us, sys
print("ready", flush=True)
try:
    us.learn({data!r}, {twin!r}, kind="skin", train={{"epochs": 400000}},
             progress=lambda event: print(event["event"], flush=True))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_learning(cloth, tmp_path):
    data = tmp_path / "data"
    us.sample(cloth, data, poses=200, method="uniform")
    script = textwrap.dedent(SCRIPT.format(data=str(data), twin=str(tmp_path / "a.twin")))
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env={**os.environ})
    steps = 0
    for line in child.stdout:
        steps += line.strip() in ("step", "status", "figure")
        if steps == 3:
            break
    begun = time.monotonic()
    child.send_signal(signal.SIGINT)
    said, _ = child.communicate(timeout=60)
    assert "interrupted" in said
    # A second on a quiet machine; this test must hold on a busy one.
    assert time.monotonic() - begun < 10.0
    assert not (tmp_path / "a.twin").exists(), "nothing half written"
