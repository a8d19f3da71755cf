"""Runs with workers, and how they are interrupted."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

from tests.tiny import Model
from tests.tool_models import asr_command

# Seconds that a busy machine may take for anything; no test waits so long in vain.
PATIENCE = 300

INTERRUPTED = "interrupted; the same command decodes the rest"


def wait_until(condition: Callable[[], object]) -> None:
    for _ in range(10 * PATIENCE):
        if condition():
            return
        time.sleep(0.1)
    raise TimeoutError


def decode_options(model: Model, out: str, *more: str) -> list[str]:
    """Return options that decode the ``wav.scp`` of the current folder."""
    return asr_command(model, "wav.scp", out, "--search", "explicit_length", *more)


def interrupt(
    ready: Callable[[psutil.Process], object],
    *options: str,
    number: signal.Signals = signal.SIGINT,
) -> None:
    """Start the command and, once it is ready, have a signal end it: Ctrl-C, or other."""
    # A terminal sends it to all processes. Those that a shell has started in the
    # background ignore it, and so would what the tests start.
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from espnet_lenbias import cli; sys.exit(cli.main())"
    )
    run = psutil.Popen(
        [sys.executable, "-c", code, "decode", *options],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        wait_until(lambda: ready(run) or run.poll() is not None)
        assert run.poll() is None, run.communicate()[1]
        processes = run.children(recursive=True)
        if number == signal.SIGINT:
            os.killpg(run.pid, number)
        else:
            os.kill(run.pid, number)
        log = run.communicate(timeout=PATIENCE)[1]
    except BaseException:  # it could wait for ever, e.g. for audio
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        raise
    assert run.returncode == 128 + number, log
    assert log.endswith(f"{INTERRUPTED}\n")
    assert "Traceback" not in log
    assert not psutil.wait_procs(processes, timeout=PATIENCE)[1]
