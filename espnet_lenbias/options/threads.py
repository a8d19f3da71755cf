"""How the threads of torch wait for one another; no torch in here.

OpenMP lets a thread that waits keep its core busy, which is fast where cores are idle.
Beside other work it is slow: a step of the search has hundreds of short calls, and each
waits for a thread whose core another process has.
"""

import os


def wait_passively() -> None:
    """Have threads that wait give their core away.

    Only before torch is loaded, and where the environment does not say otherwise.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
