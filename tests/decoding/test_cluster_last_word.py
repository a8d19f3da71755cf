"""What ends a run with workers has the last word, in a log or on a terminal."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext

import pytest

from espnet_lenbias import cli
from espnet_lenbias.decoding.cluster import command as decode_parallel
from espnet_lenbias.decoding.cluster import share_out, worker
from espnet_lenbias.decoding.result_folder import ResultFolder
from espnet_lenbias.errors import ClusterError, OptionError
from tests.decoding.cluster_runs import INTERRUPTED, decode_options


@pytest.fixture(params=[False, True], ids=["log", "terminal"])
def decode(
    request, transformer_model, wav_scp, tmp_path, monkeypatch, caplog, capsys
) -> Callable[[int], tuple[int, list[str]]]:
    """Return what runs the command; it returns status and stderr, file or terminal."""

    def run(nj: int) -> tuple[int, list[str]]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: request.param)
        caplog.set_level(logging.INFO)  # and back again
        monkeypatch.setattr(
            logging.getLogger(), "handlers", []
        )  # the run makes its own
        try:
            options = decode_options(transformer_model, "out", "--nj", str(nj))
            status = cli.main(["decode", *options])
        except SystemExit as e:
            status = e.code
        return status, capsys.readouterr().err.splitlines()

    return run


@pytest.fixture
def share(monkeypatch) -> Callable[[Callable[[], Iterator]], None]:
    """Return what has results take the place of those of workers."""

    def share(results: Callable[[], Iterator]) -> None:
        monkeypatch.setattr(decode_parallel, "start", lambda _: nullcontext())
        monkeypatch.setattr(worker, "decoder", lambda *_: nullcontext())
        monkeypatch.setattr(share_out, "share_out", lambda *_: results())

    return share


def _one_decoded_one_failed() -> Iterator:
    yield ["utt1"], ([("utt1", {"1best_recog/text": "A"})], [])
    yield ["utt2"], ([("utt2", "is broken")], [])


ERROR = "espnet-lenbias decode: error: "


@pytest.mark.parametrize(
    "kind, status, last",
    [(KeyboardInterrupt, 130, INTERRUPTED), (OSError, 2, f"{ERROR}no space left")],
)
@pytest.mark.parametrize("nj", [1, 2])
def test_what_ends_a_run_while_it_writes_has_the_last_word(
    nj, kind, status, last, decode, share, monkeypatch
):
    """No report of progress follows when all that ran is thrown away."""

    def add(*_: object) -> None:
        raise kind("no space left")

    share(_one_decoded_one_failed)
    monkeypatch.setattr(ResultFolder, "add", add)
    ended_with, lines = decode(nj)
    assert ended_with == status
    assert lines[-1] == last


@pytest.mark.parametrize("kind", [OptionError, ClusterError])
def test_an_error_of_workers_has_the_last_word(kind, decode, share):
    def results() -> Iterator:
        yield next(_one_decoded_one_failed())
        raise kind("no GPU here")

    share(results)
    status, lines = decode(2)
    assert status == 2
    assert lines[-1] == f"{ERROR}no GPU here"


def test_utterances_that_failed_have_the_last_word(decode, share):
    share(_one_decoded_one_failed)
    status, lines = decode(2)
    assert status == 1
    assert lines[-1].endswith(" ERROR: failed: utt2: is broken")
