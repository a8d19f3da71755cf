"""The pieces of the bench, on decoders of a few units. No time is asserted."""

import sys
from pathlib import Path

import pytest
import torch

from espnet_lenbias.compare.compare import Result

sys.path.insert(0, str(Path(__file__).parents[2] / "recipes" / "speed"))

import bench
import latency
import measure
import neighbours
from beams import Settings, extrapolated
from corpus import bundled, corpus_lines, summed
from decoders import (
    SEARCHES,
    LMSize,
    LSTMSize,
    TransformerSize,
    make_searcher,
)
from floor import Floor, products
from measure import Forecast, expanded, take_turns
from precision import searchers_by_dtype
from zoo import ZooSize

CPU = torch.device("cpu")
V = 30
EOS = V - 1
SIZES = {
    "transformer": TransformerSize(V, units=8, heads=2, linear_units=8, blocks=1),
    "lstm": LSTMSize(V, units=8, layers=2, attention_units=4, channels=2, filters=2),
}


ZOO = ZooSize(SIZES["transformer"], LMSize(V, 8, 8, 2, 8, blocks=1), frames=7, beam=3)


@pytest.fixture(params=SIZES.values(), ids=SIZES)
def decoder(request):
    torch.manual_seed(0)
    return request.param.build()


@pytest.fixture
def x():
    return torch.randn(7, 8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("beam", [1, 4, V])
@pytest.mark.parametrize("steps", [2, 3])
def test_all_searches_take_the_same_steps(decoder, x, beam, steps):
    best = {
        name: make_searcher(name, decoder, V, beam, steps)(x)[0] for name in SEARCHES
    }
    # ESPnet's search appends an end label that it does not score
    assert len(best["espnet"].yseq) == 1 + steps + 1
    assert best["espnet"].yseq[-1] == EOS
    # ours scores it in the last step; before that it kept the same hypotheses
    before = make_searcher("espnet", decoder, V, beam, steps - 1).search
    with torch.no_grad():
        hyps = before(x, maxlenratio=-(steps - 1))
    kept = [hyp.yseq.tolist() for hyp in hyps]
    for name in ("simple", "explicit_length"):
        assert best[name].yseq.tolist() in kept
        assert len(best[name].yseq) == 1 + steps


def test_each_precision_is_what_it_is_called(decoder, x):
    made = searchers_by_dtype(decoder, V, 4, 3)
    networks = {
        name: searcher.search.setup().adapters["decoder"].decoder
        for name, searcher in made.items()
    }
    dtypes = {n: {p.dtype for p in d.parameters()} for n, d in networks.items()}
    assert dtypes["float32"] == {torch.float32}
    assert dtypes["bfloat16"] == {torch.bfloat16}
    quantized = torch.ao.nn.quantized.dynamic.Linear
    weights = {
        name: {m.weight().dtype for m in d.modules() if isinstance(m, quantized)}
        for name, d in networks.items()
    }
    assert weights == {
        "float32": set(),
        "bfloat16": set(),
        "float16_weights": {torch.float32},  # as it is told; it is kept in half of it
        "int8": {torch.qint8},
    }
    for searcher in made.values():
        assert len(searcher(x)[0].yseq) == 1 + 3


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_that_stops_early_is_not_measured(decoder, x, name):
    output = decoder.output if hasattr(decoder, "output") else decoder.output_layer
    with torch.no_grad():
        output.bias[:EOS] = -torch.inf  # nothing but the end label can be
        output.bias[EOS] = 0.0
    with pytest.raises(RuntimeError, match="cannot be compared"):
        make_searcher(name, decoder, V, 1, 3)(x)


def test_the_end_label_is_next_to_impossible(decoder, x):
    with torch.no_grad():
        scores, _ = decoder.score(torch.tensor([EOS]), decoder.init_state(x), x)
    assert -2e4 < scores[EOS] < -9e3
    assert scores[:EOS].min() > -100


def test_hypotheses_have_several_parents(decoder, x):
    hyps = make_searcher("espnet", decoder, V, 8, 4)(x)
    parents = {tuple(hyp.yseq[:-2].tolist()) for hyp in hyps}
    assert len(hyps) == 8 and len(parents) > 2


def test_flops_of_the_transformer():
    size = TransformerSize(vocab=7, units=4, heads=2, linear_units=6, blocks=1)
    once = 2 * (2 * 5 * 4 * 4)  # keys, values of 5 frames
    # queries, keys, values, out; 2 heads of 2 over 1 position, twice; queries, out;
    # 2 heads of 2 over 5 frames, twice; in, out; output
    first = 4 * 32 + 2 * 8 + 2 * 32 + 2 * 40 + 2 * 48 + 56
    # three hypotheses, and two positions of labels
    second = 3 * (4 * 32 + 2 * 16 + 2 * 32 + 2 * 40 + 2 * 48 + 56)
    listed = products(size, beam=3, utts=1, frames=5, steps=2)
    assert sum(p.flops for p in listed) == once + first + second == 2128


def test_flops_of_the_language_model():
    size = LMSize(vocab=7, embed_units=3, units=4, heads=2, linear_units=6, blocks=2)
    # embedding; two blocks of queries, keys, values, out, two heads of 2 over the
    # positions, twice, in, out; output
    first = 2 * 3 * 4 + 2 * (4 * 32 + 2 * 8 + 2 * 48) + 56
    second = 3 * (2 * 3 * 4 + 2 * (4 * 32 + 2 * 16 + 2 * 48) + 56)
    listed = products(size, beam=3, utts=1, frames=5, steps=2)
    assert sum(p.flops for p in listed) == first + second == 2336
    # its weights have memory of their own, beside the decoder's
    decoder = products(SIZES["transformer"], beam=3, utts=1, frames=5, steps=2)
    assert not {p.right for p in listed} & {p.right for p in decoder}


def test_flops_of_the_lstm():
    size = LSTMSize(
        vocab=7, units=4, layers=2, attention_units=3, channels=2, filters=1
    )
    once = 2 * 5 * 4 * 3  # 5 frames
    # state; 3 taps, 2 channels, 5 frames; channels; energy; context;
    # 16 gates of 8 and 4, then of 4 and 4; output
    row = 24 + 2 * 3 * 2 * 5 + 2 * 5 * 2 * 3 + 2 * 5 * 3 + 2 * 5 * 4
    row += 2 * 16 * (8 + 4 + 4 + 4) + 56
    listed = products(size, beam=3, utts=1, frames=5, steps=2)
    assert sum(p.flops for p in listed) == once + row + 3 * row == 3760


def test_a_convolution_wider_than_the_utterance_costs_its_frames():
    (tap,) = {
        p.k for p in products(LSTMSize(), 1, 1, 150, 1) if p.right == "convolution"
    }
    assert tap == 150  # of 201


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_two_utterances_cost_twice_as_much(size):
    one, two = (sum(p.flops for p in products(size, 4, utts, 5, 3)) for utts in (1, 2))
    assert two == 2 * one


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_the_floor_computes_what_is_listed(size, monkeypatch):
    listed = products(size, 700, 2, 5, 2)  # 1400 rows: more than are taken at a time
    done = []

    def count(left, right, out):
        assert out.shape == (*left.shape[:-1], right.shape[-1])
        done.append(2 * left.numel() * right.shape[-1])

    floor = Floor(listed, CPU, torch.float32)
    floor()  # the shapes go together
    monkeypatch.setattr(torch, "mm", count)
    monkeypatch.setattr(torch, "bmm", count)
    floor()
    assert len(done) > len(listed)
    assert sum(done) == sum(p.flops for p in listed)


def test_extrapolation_is_in_proportion_to_the_hypotheses_expanded():
    assert expanded(beam=8, steps=3) == 17  # 1, 8, 8
    assert extrapolated(10.0, measured=8, beam=64, steps=3) == 10.0 * 129 / 17
    assert extrapolated(10.0, measured=8, beam=8, steps=3) == 10.0


def test_forecast():
    forecast = Forecast()
    assert forecast.seconds(64, 3) == 0.0
    forecast.learn(beam=1, steps=3, seconds=3.0)  # 1 s a hypothesis
    assert forecast.seconds(16, 3) == 33.0
    forecast.learn(beam=4, steps=3, seconds=18.0)  # 2 s: grows with the root
    assert forecast.seconds(16, 3) == pytest.approx(4.0 * 33)
    assert forecast.seconds(4, 2) == 10.0
    assert forecast.largest([1, 4, 16], 3, limit=131.0) == 4
    assert forecast.largest([1, 4, 16], 3, limit=133.0) == 16
    assert forecast.largest([1, 4, 16], 3, limit=0.0) == 1


def test_calls_take_turns_until_their_time_is_up(monkeypatch):
    clock, order = [0.0], []
    monkeypatch.setattr(measure, "now", lambda device: clock[0])
    monkeypatch.setattr(measure, "peak_megabytes", lambda call, device: call() or 5.0)

    def taking(name, *seconds):
        left = list(seconds)

        def call():
            order.append(name)
            clock[0] += left.pop(0)

        return call

    calls = {
        "fast": taking("fast", 9.0, 1.0, 3.0, 2.0),
        "slow": taking("slow", 8.0, 8.0),  # a third would be 24 s
        "slowest": taking("slowest", 30.0),
    }
    measured = take_turns(calls, repeats=3, seconds=20.0, device=CPU)
    assert order == ["fast", "slow", "slowest", "fast", "slow", "fast", "fast"]
    seconds = {name: m.seconds for name, m in measured.items()}
    assert seconds == {"fast": 2.0, "slow": 8.0, "slowest": 30.0}
    assert measured["fast"].megabytes == 5.0


def test_peak_memory_is_that_of_the_call_alone():
    held = torch.ones(16_000_000)  # 64 MB
    peak = measure.peak_megabytes(lambda: torch.ones(16_000_000).sum(), CPU)
    assert 60 < peak < 80
    assert measure.peak_megabytes(lambda: held.sum(), CPU) < 10


def test_corpus_lines_sum_up():
    def result(search, seconds, steps):
        return Result("s", "u", search, 8, "A", "A", -1.0, -1.0, steps, seconds)

    results = {
        ("espnet", 0.0, 8): [result("espnet", 4.0, 10), result("espnet", 4.0, 20)],
        ("espnet", 0.3, 8): [result("espnet", 9.0, 15)],
        ("explicit_length", 0.0, 8): [result("explicit_length", 0.5, 8)] * 2,
        ("explicit_length", 0.3, 8): [result("explicit_length", 3.0, 8)],
    }
    lines = summed(results, audio=30.0, encoder=1.0)
    assert [(x.search, x.ctc_weight, x.beam_size) for x in lines] == list(results)
    assert [line.speedup for line in lines] == [1.0, 1.0, 4.5, 2.5]
    espnet, _, ours, _ = lines
    assert (espnet.together, espnet.speedup, espnet.steps) == (9.0, 1.0, 15)
    assert (ours.together, ours.speedup, ours.seconds) == (2.0, 4.5, 1.0)


def test_bundled_audio():
    utterances = bundled()
    assert len(utterances) == 130
    lines = corpus_lines(utterances[:2], CPU, settings=[(0.0, 2), (0.3, 3)])
    assert [(x.search, x.ctc_weight, x.beam_size) for x in lines] == [
        ("espnet", 0.0, 2),
        ("espnet", 0.3, 3),
        ("explicit_length", 0.0, 2),
        ("explicit_length", 0.3, 3),
        ("explicit_length, batches", 0.0, 2),
        ("explicit_length, batches", 0.3, 3),
    ]
    assert all(line.steps > 0 and line.utterances == 2 for line in lines)
    # what is decoded together takes the steps that it takes alone
    assert [line.steps for line in lines[2:4]] == [line.steps for line in lines[4:]]


@pytest.mark.parametrize(
    "n_frames, sizes", [(60, [24, 16, 16, 4]), (56, [24, 16, 16]), (24, [24]), (5, [5])]
)
def test_blocks_are_all_frames_in_order(n_frames, sizes):
    x = torch.arange(n_frames)
    blocks = latency._blocks(x)
    assert list(map(len, blocks)) == sizes
    assert torch.equal(torch.cat(blocks), x)


def test_latency_lines_sum_up(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(latency, "now", lambda device: clock[0])

    class Search(torch.nn.Module):
        def __init__(self, seconds_a_frame, seconds_at_the_end):
            super().__init__()
            self.a_frame, self.at_the_end = seconds_a_frame, seconds_at_the_end

        def reset(self):
            pass

        def forward(self, x, is_final):
            clock[0] += self.at_the_end if is_final else self.a_frame * len(x)

    setting = (0.3, True)
    searches = {(setting, "espnet"): Search(2, 12), (setting, "ours"): Search(1, 4)}
    # blocks of 24, 16 and 2 frames, and of 24 and 8
    inputs = [torch.zeros(42, 1), torch.zeros(32, 1)]
    espnet, ours = latency._lines(searches, inputs, CPU)
    assert (espnet.frames, espnet.blocks, espnet.inputs) == (37, 2.5, 2)
    # (24 + 16 + 24) / 3 frames a block
    assert espnet.block == pytest.approx(2e3 * 64 / 3)
    assert ours.block == pytest.approx(1e3 * 64 / 3)
    assert (espnet.last, espnet.speedup) == (12e3, 1.0)
    assert (ours.last, ours.speedup) == (4e3, 3.0)
    assert (ours.search, ours.ctc_weight, ours.repetitions) == ("ours", *setting)


def test_latency_of_bundled_audio():
    lines = latency.latency_lines(
        bundled()[:2], CPU, settings=[(0.3, True)], runs={1: 2, 2: 1}
    )
    assert [(x.search, x.inputs) for x in lines] == [
        ("espnet", 2),
        ("explicit_length", 2),
        ("espnet", 1),
        ("explicit_length", 1),
    ]
    assert lines[2].frames == 2 * lines[0].frames  # both together
    assert all(line.block > 0 and line.last > 0 for line in lines)


def test_tables_and_plot(tmp_path, monkeypatch, capsys):
    threads = torch.get_num_threads()
    monkeypatch.setattr(bench, "SIZES", SIZES)
    monkeypatch.setattr(bench, "ZooSize", lambda: ZOO)
    options = ["--beams", "4", "1", "--steps", "2", "--repeats", "1"]
    options += ["--espnet_seconds", "0", "--threads", str(threads)]
    options += ["--large_vocabs", "40", "50"]
    bench.main([*options, "--models", *SIZES, "zoo", "--output_dir", str(tmp_path)])

    printed = capsys.readouterr().out
    assert f"CPU threads: {threads}, float32, torch {torch.__version__}" in printed
    text = (tmp_path / "speed.md").read_text()
    table, batches, precision, large, zoo = text.split("\n\n")[1:]

    assert cells(table) == [
        ["decoder", "beam", "steps"],
        ["transformer", "1", "2"],
        ["transformer", "4", "2"],
        ["lstm", "1", "2"],
        ["lstm", "4", "2"],
    ]
    assert [line.split(" | ")[6].strip() for line in table.splitlines()[2:]] == [
        "measured",
        "extrapolated from 1",
    ] * 2
    # where it did not run its memory is not known
    assert [line.split()[-2] == "-" for line in table.splitlines()[2:]] == [
        False,
        True,
    ] * 2
    # without time ESPnet's search takes no batches
    assert cells(batches)[1:] == [
        [model, "explicit_length", str(n)] for model in SIZES for n in (4, 8, 16)
    ]
    assert cells(precision)[1:] == cells(table)[1:]
    names = ["espnet", "explicit_length", "explicit_length"]
    assert cells(zoo)[1:] == [
        [weight, *row]
        for weight in ("0.6", "0.0")
        for row in zip(names, ["float32", "float32", "bfloat16"])
    ]
    assert cells(large) == [
        ["decoder", "V", "beam"],
        ["transformer", "40", "4"],
        ["transformer", "50", "4"],
    ]
    assert (tmp_path / "beams.csv").read_text().splitlines()[0] == (
        "model,beam_size,steps,floor,explicit_length,espnet,espnet_from,"
        "speedup,of_floor,of_simple,megabytes,espnet_megabytes"
    )
    assert (tmp_path / "step.png").stat().st_size > 0


def test_threads_beside_neighbours(monkeypatch):
    """One thread, all of them, and what the tools choose: of a small step one."""
    threads = torch.get_num_threads()
    monkeypatch.setattr(neighbours, "_SIZES", SIZES)
    monkeypatch.setattr(neighbours, "BEAMS", (1, 3))
    seen = []
    real = neighbours.Searcher.__call__

    def noted(self, x):
        hook = self.search.register_forward_pre_hook(
            lambda *_: seen.append(torch.get_num_threads())
        )
        real(self, x)
        hook.remove()

    monkeypatch.setattr(neighbours.Searcher, "__call__", noted)
    for name in (
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
    ):  # which decide where they are set
        monkeypatch.delenv(name, raising=False)
    torch.set_num_threads(2)
    try:
        settings = Settings(2, 1, 60.0, CPU, torch.float32)
        lines = list(neighbours.measured_here(settings))
    finally:
        torch.set_num_threads(threads)
    assert [(line.model, line.beam_size, line.busy) for line in lines] == [
        (model, beam, busy) for model in SIZES for beam in (1, 3) for busy in (0, 2)
    ]
    # a round that warms up, and one
    assert seen == [1, 2, 1] * 2 * len(lines)
    for line in lines:
        assert line.of_one == pytest.approx(line.chosen / line.one)


def test_the_neighbours_are_gone_afterwards():
    with neighbours.busy_processes(2) as processes:
        assert [process.poll() for process in processes] == [None, None]
    assert all(process.poll() is not None for process in processes)


def cells(table: str) -> list[list[str]]:
    """Return the first three cells of each line of a Markdown table but its rule."""
    heading, _, *lines = table.splitlines()
    return [[c.strip() for c in line.split("|")[1:4]] for line in [heading, *lines]]


@pytest.mark.parametrize(
    "options, message",
    [
        (["--beams", "8", "5001"], "--beams must be from 1 to 5000"),
        (["--steps", "1"], "--steps must be 2 or more"),
        (["--large_vocabs", "4999"], "--large_vocabs must be 5000 or more"),
        (["--beams", "1", "--large_vocabs", "1"], "--large_vocabs must be 2 or more"),
        (["--threads", "0"], "--threads: must be a whole number of 1 or more"),
        (["--threads", "9" * 20], "--threads: must be 2147483647 at most, not 9999"),
        (["--repeats", "0"], "--repeats: must be a whole number of 1 or more"),
    ],
)
def test_options_that_cannot_be_measured(options, message, capsys):
    with pytest.raises(SystemExit):
        bench.main(options)
    assert message in capsys.readouterr().err
