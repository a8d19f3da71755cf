"""How many threads a search of the tools works with."""

import pytest
import torch

from espnet_lenbias.decoding import search_threads
from espnet_lenbias.decoding.search_threads import choose_threads, idle_cores

THREADS = 3
UNITS = 1024  # a layer of this many units to as many has 2**20 weights


class Search(torch.nn.Module):
    """Notes the threads that it is called with."""

    def __init__(self, beam_size: int):
        super().__init__()
        self.layer = torch.nn.Linear(UNITS, UNITS, bias=False)
        self.beam_size = beam_size
        self.seen: list[int] = []

    def forward(self, x: torch.Tensor) -> None:
        self.seen.append(torch.get_num_threads())
        if x.isnan().any():
            raise ValueError("NaN")


@pytest.fixture(autouse=True)
def threads(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.setattr(search_threads, "idle_cores", lambda: 4)
    before = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    yield
    torch.set_num_threads(before)


# 2**20 weights: 512 hypotheses are 2**29 multiplications, the first large step
@pytest.mark.parametrize(
    "beam_size, shape, expected",
    [
        (1, (5, 2), 1),
        (511, (5, 2), 1),
        (512, (5, 2), THREADS),
        (64, (7, 5, 2), 1),
        (64, (8, 5, 2), THREADS),
    ],
)
def test_small_steps_have_one_thread(beam_size, shape, expected):
    search = Search(beam_size)
    choose_threads(search)
    search(torch.zeros(shape))
    search(x=torch.zeros(shape))
    assert search.seen == [expected, expected]
    assert torch.get_num_threads() == THREADS


@pytest.mark.parametrize("idle, expected", [(1, 1), (2, 2), (3, 3), (9, THREADS)])
def test_large_steps_have_no_more_threads_than_cores_are_idle(
    idle, expected, monkeypatch
):
    monkeypatch.setattr(search_threads, "idle_cores", lambda: idle)
    search = Search(512)
    choose_threads(search)
    search(torch.zeros(5, 2))
    assert search.seen == [expected]
    assert torch.get_num_threads() == THREADS


@pytest.mark.parametrize(
    "running, mine, idle",
    [
        (1, "R", 4),
        (3, "RSRR", 4),  # threads that this process still has running
        (2, "R", 3),
        (4, "RSR", 2),
        (5, "R", 1),
        (40, "RR", 1),
        (1, "RR", 4),  # one has begun between the two looks
    ],
)
def test_idle_cores(running, mine, idle, monkeypatch, tmp_path):
    load = tmp_path / "loadavg"
    load.write_text(f"0.20 0.18 0.12 {running}/80 11206\n")
    for i, state in enumerate(mine):
        (tmp_path / "task" / str(i)).mkdir(parents=True)
        (tmp_path / "task" / str(i) / "stat").write_text(f"{i} (a b) c) {state} 1 2\n")
    monkeypatch.setattr(search_threads, "_LOAD", load)
    monkeypatch.setattr(search_threads, "_TASKS", tmp_path / "task")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    assert idle_cores() == idle


def test_a_system_that_does_not_tell_what_is_running(monkeypatch, tmp_path):
    monkeypatch.setattr(search_threads, "_LOAD", tmp_path / "gone")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    assert idle_cores() == 2


def test_the_threads_are_given_back_after_a_failure():
    search = Search(1)
    choose_threads(search)
    with pytest.raises(ValueError, match="NaN"):
        search(torch.full((5, 2), torch.nan))
    assert search.seen == [1]
    assert torch.get_num_threads() == THREADS


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "MKL_NUM_THREADS"])
def test_the_environment_has_the_last_word(name, monkeypatch):
    monkeypatch.setenv(name, str(THREADS))
    search = Search(1)
    choose_threads(search)
    search(torch.zeros(5, 2))
    assert search.seen == [THREADS]


def test_what_is_no_module_is_left_alone():
    choose_threads(None)
