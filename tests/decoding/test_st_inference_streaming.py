"""The drop-in for streaming translation; see test_asr_inference_streaming.py."""

from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import torch
import yaml
from espnet2.bin import st_inference_streaming as espnets
from espnet2.tasks.st import STTask

from espnet_lenbias import ExplicitLengthBeamSearch, use_search
from espnet_lenbias.bin import st_inference_streaming
from espnet_lenbias.errors import AudioError, OptionError
from espnet_lenbias.espnet_compat import BatchBeamSearchOnline
from espnet_lenbias.inference.streaming import ChunkedRecognizer
from espnet_lenbias.options.python_options import replaced
from espnet_lenbias.options.registry import settings_of
from espnet_lenbias.search.online import OnlineExplicitLengthBeamSearch
from espnet_lenbias.st import Speech2TextStreaming
from tests.conftest import RATE
from tests.make_models import (
    MULTI_DECODER,
    SOURCE,
    SPEECH,
    TOKENS,
    WITH_CTC,
    make_model,
)
from tests.tool_models import command, files

BLOCKS = {"block_size": 12, "hop_size": 6, "look_ahead": 3}
DECODING = {"beam_size": 4, "ctc_weight": 0.3, "nbest": 2}
OURS = {"search": "explicit_length"}
PIECE = 1600
STREAMING = {
    **SPEECH,
    **SOURCE,
    "encoder": "contextual_block_transformer",
    "encoder_conf": {**SPEECH["encoder_conf"], **BLOCKS},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streaming") / "model"
    return make_model(folder, "st", STTask, TOKENS, **STREAMING, **WITH_CTC)


@pytest.fixture(scope="module")
def speech():
    """Noise of 1.2 to 1.5 s."""
    noise = np.random.default_rng(0)
    return [0.1 * noise.standard_normal(n).astype("float32") for n in (9700, 12345)]


@pytest.fixture
def data(tmp_path, speech):
    lines = []
    for i, wave in enumerate(speech):
        soundfile.write(tmp_path / f"utt{i}.wav", wave, RATE)
        lines.append(f"utt{i} {tmp_path}/utt{i}.wav\n")
    (tmp_path / "wav.scp").write_text("".join(lines))
    return tmp_path


def labels(results):
    return [ids for _, _, ids, _ in results]


def streamed(model, wave, ends):
    """Return the last result of a stream that is cut at these samples."""
    *pieces, last = np.split(wave, ends)
    for piece in pieces:
        model(piece, is_final=False)
    return model(last)


@pytest.mark.parametrize("piece", ["0", "1600"])
def test_search_espnet_writes_espnets_files(model, data, tmp_path, piece):
    options = ["--sim_chunk_length", piece, "--disable_repetition_detection", "true"]
    options += ["--ctc_weight", "0.3", "--nbest", "2"]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    assert st_inference_streaming.main(command(model, data, ours, *options)) == 0
    espnets.main(command(model, data, theirs, *options))
    assert files(ours) == files(theirs)
    assert len(files(ours)) == 8


@pytest.mark.parametrize("piece", [9999, PIECE, 60])
def test_the_final_result_is_the_offline_one(
    piece, model, data, speech, tmp_path, monkeypatch
):
    """Pieces of 60 samples are less than ESPnet's frontend makes a frame of."""
    seen = []
    forward = OnlineExplicitLengthBeamSearch.forward

    def forward_and_note(self, x, **kwargs):
        seen.append((x, kwargs["is_final"], settings_of(self)))
        return forward(self, x, **kwargs)

    monkeypatch.setattr(OnlineExplicitLengthBeamSearch, "forward", forward_and_note)
    options = ["--search", "explicit_length", "--sim_chunk_length", str(piece)]
    options += ["--ctc_weight", "0.3", "--nbest", "2"]
    out = tmp_path / "out"
    assert st_inference_streaming.main(command(model, data, out, *options)) == 0
    ends = [i for i, (_, is_final, _) in enumerate(seen, 1) if is_final]
    assert len(ends) == len(speech)
    assert (len(seen) > 2 * len(speech)) == (piece < 9999)
    blocks = [seen[a:b] for a, b in zip([0, *ends], ends)]
    lines = (out / "1best_recog" / "token_int").read_text().splitlines()
    for i, line in enumerate(lines):
        x = torch.cat([block for block, _, _ in blocks[i]])
        search = ExplicitLengthBeamSearch(**blocks[i][0][2], nbest=2).eval()
        ids = search(x)[0].yseq[1:-1].tolist()
        assert line == " ".join(map(str, [f"utt{i}", *(j for j in ids if j)]))


def test_use_search_and_back(model, speech):
    streaming = espnets.Speech2TextStreaming(**model.files, **DECODING)
    before = labels(streamed(streaming, speech[0], [PIECE, 2 * PIECE]))
    use_search(streaming, "explicit_length", beam_size=6)
    assert type(streaming.beam_search) is OnlineExplicitLengthBeamSearch
    assert len(streamed(streaming, speech[0], [PIECE, 2 * PIECE])) == 2
    use_search(streaming, "espnet", beam_size=4)
    assert type(streaming.beam_search) is BatchBeamSearchOnline
    assert labels(streamed(streaming, speech[0], [PIECE, 2 * PIECE])) == before


@pytest.mark.parametrize(
    "options, message",
    [
        ({"encoder": "transformer"}, "this model has the encoder, TransformerEncoder"),
        (MULTI_DECODER, "this model has the second encoder, md_encoder: decode whole"),
    ],
)
def test_use_search_refuses_models_that_cannot_stream(options, message, tmp_path):
    """ESPnet's own object takes them."""
    options = {**STREAMING, **options}
    if options["encoder"] == "transformer":
        options["encoder_conf"] = SPEECH["encoder_conf"]
    files = make_model(tmp_path / "m", "st", STTask, TOKENS, **options).files
    streaming = espnets.Speech2TextStreaming(**files)
    with pytest.raises(OptionError, match=message):
        use_search(streaming, "explicit_length")


def test_pieces_that_are_too_short_wait(model, speech):
    """They are what they are together; ESPnet's object fails on the first.

    Samples 0 to 230 are the first to give a frame that others do not change: of three
    frames, at 0, 80 and 160, the first.
    """
    ours = Speech2TextStreaming(**model.files, **DECODING, **OURS)
    found = labels(streamed(ours, speech[0], [100, 150, 230, 4000, 4010, 6000]))
    assert found == labels(streamed(ours, speech[0], [230, 4000, 6000])) != [[]]
    theirs = espnets.Speech2TextStreaming(**model.files, **DECODING)
    with pytest.raises(RuntimeError):
        theirs(speech[0][:100], is_final=False)


@pytest.mark.parametrize("lengths", [[0], [10], [300, 1], [5] * 40])
def test_a_stream_that_is_too_short_as_a_whole(model, speech, lengths):
    streaming = Speech2TextStreaming(**model.files, **DECODING, **OURS)
    wanted = labels(streaming(speech[0]))
    wave = speech[1][: sum(lengths)]
    message = f"^the audio is too short for the encoder: {sum(lengths)} samples"
    with pytest.raises(AudioError, match=message):
        streamed(streaming, wave, np.cumsum(lengths)[:-1])
    assert labels(streaming(speech[0])) == wanted


@pytest.mark.parametrize(
    "options, message",
    [
        (["--search", "simple"], "search: simple needs the whole audio"),
        (["--search", "explicit_length", "--hold_n", "2"], "hold_n does not go with"),
        (["--search", "explicit_length", "--time_sync", "true"], "time_sync: time-sy"),
        (["--search", "explicit_length", "--batch_size", "2"], "set batch_size to 1"),
    ],
)
def test_mistakes_on_the_command_line(model, data, tmp_path, options, message, capsys):
    with pytest.raises(SystemExit) as e:
        st_inference_streaming.main(command(model, data, tmp_path / "o", *options))
    assert e.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert ": error: " in last and message in last


@pytest.mark.parametrize(
    "config, message",
    [
        ({"encoder": "conformer"}, "its encoder, conformer, needs the whole audio"),
        ({"md_encoder": "transformer"}, "it has a second encoder, md_encoder, which"),
        ({"hier_encoder": "transformer"}, "it has a second encoder, hier_encoder"),
        ({"hier_encoder": None}, "ctc_weight is 0.3, and the model has no CTC"),
    ],
)
def test_models_that_cannot_stream(config, message, tmp_path):
    config = {"encoder": "contextual_block_conformer", **config, "token_list": ["a"]}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    with pytest.raises(OptionError, match=message):
        Speech2TextStreaming(str(path), "no-such.pth", ctc_weight=0.3, **OURS)


def test_features_that_are_encoded_anew_come_from_the_start():
    class S3prlFrontend:
        pass

    heard = []
    listener = SimpleNamespace(nbest=1, st_model=SimpleNamespace())
    listener.st_model.frontend = S3prlFrontend()
    model = ChunkedRecognizer(listener, 4)
    model._model = lambda speech, is_final: heard.append((len(speech), is_final))
    model._model.reset = lambda: None
    model(torch.zeros(10))
    assert heard == [(4, False), (8, False), (10, True)]


def test_the_wrapper_knows_the_tool():
    assert replaced(["-m", espnets.__name__, "--x"]) == [
        "-m",
        st_inference_streaming.__name__,
        "--x",
    ]
