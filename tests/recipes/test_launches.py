"""What a step asks of a device, counted by the recipe on decoders of a few units."""

from importlib import import_module

import pytest

from tests import simulated_device

launches = import_module("launches")  # of the recipe to which the import above leads
assert simulated_device.simulated_device is launches.simulated_device

V = 30
SIZES = {
    "transformer": launches.TransformerSize(
        V, units=8, heads=2, linear_units=8, blocks=6
    ),
    "lstm": launches.LSTMSize(
        V, units=8, layers=2, attention_units=4, channels=2, filters=2
    ),
}


@pytest.fixture
def launch_counts(monkeypatch, capsys):
    """Run the command on decoders of a few units, of as many layers as those it has."""
    monkeypatch.setattr(launches, "SIZES", SIZES)

    def run(*options):
        launches.main(["--frames", "7", "--steps", "12", *options])
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("name, most", [("transformer", 200), ("lstm", 80)])
@pytest.mark.parametrize("search", ["simple", "explicit_length"])
def test_a_step_launches_little_whatever_the_utterances(
    launch_counts, name, search, most
):
    options = ["--models", name, "--searches", search, "--utterances", "1", "2", "16"]
    table = launch_counts(*options)
    rows = [line.split("|")[1:-1] for line in table.strip().splitlines()[2:]]
    assert [int(row[2]) for row in rows] == [1, 2, 16]
    counts = [float(row[4]) for row in rows]
    assert max(counts) <= most
    # one utterance spares some copies; from two on nothing grows
    assert counts[1] == counts[2]
    assert counts[0] == pytest.approx(counts[1], abs=6)
    assert [float(row[6]) for row in rows] == [1.0] * 3  # waits a step
    assert [int(row[7]) for row in rows] == [2] * 3  # at the end


def test_lines_that_launch_most_are_named(launch_counts):
    text = launch_counts("--models", "lstm", "--utterances", "2", "--lines", "2")
    assert text.count("lstm, ") == 2
    assert "scorers/products.py:" in text


@pytest.mark.parametrize("options", [["--steps", "1"], ["--utterances", "0"]], ids=str)
def test_what_cannot_be_counted(launch_counts, options, capsys):
    with pytest.raises(SystemExit) as end:
        launch_counts(*options)
    assert end.value.code == 2
    assert "or more" in capsys.readouterr().err
