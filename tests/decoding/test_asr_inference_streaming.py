"""The drop-in for streaming recognition, and the recogniser that it runs."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from espnet2.bin import asr_inference_streaming as espnets
from espnet2.tasks.asr import ASRTask

from espnet_lenbias import ExplicitLengthBeamSearch, use_search
from espnet_lenbias.bin import asr_inference_streaming
from espnet_lenbias.errors import AudioError, OptionError
from espnet_lenbias.espnet_compat import BatchBeamSearchOnline
from espnet_lenbias.inference.asr_streaming import Speech2TextStreaming
from espnet_lenbias.inference.streaming import ChunkedRecognizer
from espnet_lenbias.options.python_options import replaced
from espnet_lenbias.options.registry import settings_of
from espnet_lenbias.search.online import OnlineExplicitLengthBeamSearch
from tests.conftest import RATE
from tests.make_models import SPEECH, TOKENS, make_model
from tests.tool_models import asr_command, files

DECODING = {"beam_size": 4, "ctc_weight": 0.3, "nbest": 2}
BLOCKS = {"block_size": 12, "hop_size": 6, "look_ahead": 3}
PIECE = 1600
OURS = {"search": "explicit_length"}


@pytest.fixture(scope="module", params=["transformer", "conformer"])
def model(request, tmp_path_factory):
    """A model with a contextual block encoder, random weights."""
    return make_model(
        tmp_path_factory.mktemp("streaming") / "model",
        "asr",
        ASRTask,
        TOKENS,
        **{
            **SPEECH,
            "encoder": f"contextual_block_{request.param}",
            "encoder_conf": {**SPEECH["encoder_conf"], **BLOCKS},
        },
    )


@pytest.fixture(scope="module")
def speech():
    """Noise of 1.2 to 2 s, the last a whole number of pieces."""
    noise = np.random.default_rng(0)
    lengths = (9700, 12345, 10 * PIECE)
    return [0.1 * noise.standard_normal(n).astype("float32") for n in lengths]


@pytest.fixture
def wav_scp(tmp_path, speech):
    lines = []
    for i, wave in enumerate(speech):
        soundfile.write(tmp_path / f"utt{i}.wav", wave, RATE)
        lines.append(f"utt{i} {tmp_path}/utt{i}.wav\n")
    scp = tmp_path / "wav.scp"
    scp.write_text("".join(lines))
    return scp


def pieces_of(wave):
    return [wave[i : i + PIECE] for i in range(0, len(wave), PIECE)]


def in_pieces(model, wave):
    """The results after each piece, the last of which are final."""
    *pieces, last = pieces_of(wave)
    return [model(p, is_final=False) for p in pieces] + [model(last)]


def labels(results):
    return [ids for _, _, ids, _ in results]


# --- The recogniser -------------------------------------------------------------------


def spy(model, monkeypatch):
    """Return the encoder outputs that the search will be given."""
    seen = []
    forward = model.beam_search.forward

    def forward_and_note(x, **kwargs):
        seen.append(x)
        return forward(x, **kwargs)

    monkeypatch.setattr(model.beam_search, "forward", forward_and_note)
    return seen


@pytest.mark.parametrize("may_repeat", [False, True])
def test_the_final_result_is_the_offline_one(model, speech, may_repeat, monkeypatch):
    streaming = Speech2TextStreaming(
        **model.files, **DECODING, **OURS, disable_repetition_detection=may_repeat
    )
    search = streaming.beam_search
    assert search.disable_repetition_detection is may_repeat
    offline = ExplicitLengthBeamSearch(**settings_of(search), nbest=2).eval()
    seen, n_partial = spy(streaming, monkeypatch), 0
    for wave in speech:
        seen.clear()
        *partial, final = in_pieces(streaming, wave)
        n_partial += sum(map(bool, partial))
        hyps = offline(torch.cat(seen))
        assert len(seen) > 1
        assert labels(final) == [h.yseq[1:-1].tolist() for h in hyps]
        assert [h.score for _, _, _, h in final] == [h.score for h in hyps]
    assert n_partial > 2 * len(speech) or not may_repeat


@pytest.mark.parametrize("confidence", ["combined", "posterior"])
def test_words_have_confidences_in_pieces_too(model, speech, confidence):
    streaming = Speech2TextStreaming(
        **model.files,
        **DECODING,
        **OURS,
        confidence=confidence,
        disable_repetition_detection=True,
    )
    for results in in_pieces(streaming, speech[0]):
        assert len(results) <= DECODING["nbest"]
        for text, _, ids, hyp in results:
            assert len(hyp.word_confidence) == len(text.split())
            assert len(hyp.label_confidence) == len(ids)
            assert all(0 <= value <= 1 for value in hyp.label_confidence)
    assert results


def test_numbers_that_are_text(model):
    text = {"decoder_text_length_limit": "0", "encoded_feat_length_limit": "0"}
    switches = {"normalize_length": "false", "disable_repetition_detection": "no"}
    search = Speech2TextStreaming(**model.files, **OURS, **text, **switches).beam_search
    assert isinstance(search, OnlineExplicitLengthBeamSearch)
    assert search.disable_repetition_detection is False


def test_one_piece(model, speech):
    streaming = Speech2TextStreaming(**model.files, **DECODING, **OURS)
    text, tokens, ids, hypothesis = streaming(speech[0])[0]
    assert text == "".join(tokens).replace("<space>", " ")
    assert streaming.converter.ids2tokens(ids) == tokens
    assert hypothesis.score <= 0


def test_use_search_and_back(model, speech):
    streaming = espnets.Speech2TextStreaming(
        **model.files, **DECODING, penalty=0.1, disable_repetition_detection=True
    )
    own = streaming.beam_search
    before = labels(in_pieces(streaming, speech[0])[-1])
    use_search(streaming, "explicit_length", beam_size=6, score_threshold=9.0)
    search = streaming.beam_search
    assert type(search) is OnlineExplicitLengthBeamSearch
    assert (search.weights, search.scorers) == (own.weights, own.scorers)
    assert (search.beam_size, search.options.score_threshold) == (6, 9.0)
    assert search.options.nbest == 2
    assert search.disable_repetition_detection
    assert len(in_pieces(streaming, speech[0])[-1]) == 2
    use_search(streaming, "espnet", beam_size=4)
    assert type(streaming.beam_search) is BatchBeamSearchOnline
    assert labels(in_pieces(streaming, speech[0])[-1]) == before


@pytest.mark.parametrize("kind", [espnets.Speech2TextStreaming, Speech2TextStreaming])
def test_use_search_in_the_middle_of_a_stream(kind, model, speech):
    """What was heard so far would be lost without a word."""
    streaming = kind(**model.files, **DECODING)
    streaming(speech[0][:4000], is_final=False)
    with pytest.raises(OptionError, match="in the middle of a stream: .* call reset"):
        use_search(streaming, "explicit_length")
    streaming.reset()
    use_search(streaming, "explicit_length")
    fresh = use_search(kind(**model.files, **DECODING), "explicit_length")
    found, expected = (in_pieces(x, speech[0])[-1] for x in (streaming, fresh))
    assert labels(found) == labels(expected)


def test_without_a_search_it_is_espnets_own(model, speech):
    ours = Speech2TextStreaming(**model.files, **DECODING)
    theirs = espnets.Speech2TextStreaming(**model.files, **DECODING)
    for wave in speech:
        results = zip(in_pieces(ours, wave), in_pieces(theirs, wave), strict=True)
        assert all(labels(a) == labels(b) for a, b in results)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"search": "simple"}, "simple needs the whole audio: .* explicit_length"),
        ({"encoded_feat_length_limit": 9, **OURS}, "^encoded_feat_length_limit does"),
        ({"decoder_text_length_limit": 9, **OURS}, "^decoder_text_length_limit does"),
        ({"normalize_length": True, **OURS}, "normalize_length does not go with"),
        (
            {"decoder_text_length_limit": "x"},
            "decoder_text_length_limit must be a whole",
        ),
        ({"encoded_feat_length_limit": "9", **OURS}, "^encoded_feat_length_limit does"),
        ({"search": "explicit_lenght"}, "did you mean explicit_length"),
    ],
)
def test_mistakes_show_before_a_model_is_loaded(options, message):
    with pytest.raises(ValueError, match=message):
        Speech2TextStreaming(None, "no-such.pth", **options)


@pytest.mark.parametrize("search", [{}, OURS], ids=["espnet", "explicit_length"])
def test_an_encoder_that_needs_the_whole_audio(search, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("token_list: [a]\nencoder: conformer\nencoder_conf: {}\n")
    with pytest.raises(OptionError, match="conformer, needs the whole audio") as e:
        Speech2TextStreaming(str(config), "no-such.pth", **search)
    assert f"asr_train_config: {config}: " in str(e.value)


@pytest.mark.parametrize(
    "name, change", [("simple", {}), ("explicit_length", {"block_size": 0}),
                     ("explicit_length", {"hold_n": 2})]
)  # fmt: skip
def test_use_search_refuses_what_it_cannot_do(model, name, change):
    streaming = espnets.Speech2TextStreaming(**model.files, **DECODING)
    vars(streaming.beam_search).update(change)
    with pytest.raises(OptionError, match="|".join(["whole audio", *change])):
        use_search(streaming, name)


@pytest.mark.parametrize("last", [0, 1, 10, 100])
def test_a_last_piece_of_less_than_a_frame(model, speech, last, monkeypatch):
    """The result is that of the frames which ESPnet makes of the whole stream."""
    streaming = Speech2TextStreaming(**model.files, **DECODING, **OURS)
    theirs = espnets.Speech2TextStreaming(**model.files, **DECODING)
    frames, espnet_frames = spy(streaming, monkeypatch), spy(theirs, monkeypatch)
    start, end = speech[0][:8000], speech[0][8000 : 8000 + last]
    for recogniser in (streaming, theirs):
        recogniser(start, is_final=False)
    found = streaming(end)
    theirs(end)
    x = torch.cat(frames)
    assert torch.equal(x, torch.cat(espnet_frames))
    offline = ExplicitLengthBeamSearch(**settings_of(streaming.beam_search), nbest=2)
    assert labels(found) == [hyp.yseq[1:-1].tolist() for hyp in offline(x)]


@pytest.mark.parametrize("search", ["espnet", "explicit_length"])
@pytest.mark.parametrize("n_samples", [5 * PIECE, 8001, 9700])
def test_two_channels_are_the_first_one(n_samples, search, model, speech):
    """As for the other tools, whatever the last piece brings."""
    streaming = Speech2TextStreaming(**model.files, **DECODING, search=search)
    in_chunks = ChunkedRecognizer(streaming, PIECE)
    wave = torch.tensor(speech[0][:n_samples])
    both = torch.stack([wave, torch.zeros_like(wave)], dim=1)
    assert labels(in_chunks(both)) == labels(in_chunks(wave)) != [[]]
    if search == "explicit_length":
        streaming(both, is_final=False)
        message = (
            r"the chunk is of shape \(9,\), and .* before it was of \(samples, 2\)"
        )
        with pytest.raises(AudioError, match=message):
            streaming(wave[:9])


@pytest.mark.parametrize("lengths", [[0], [10], [300, 1], [194, 100], [5] * 40])
def test_a_stream_that_is_too_short_as_a_whole(model, speech, lengths):
    streaming = Speech2TextStreaming(**model.files, **DECODING, **OURS)
    wanted = labels(streaming(speech[0]))
    *pieces, last = np.split(speech[1][: sum(lengths)], np.cumsum(lengths)[:-1])
    for piece in pieces:
        streaming(piece, is_final=False)
    message = f"^the audio is too short for the encoder: {sum(lengths)} samples"
    with pytest.raises(AudioError, match=message):
        streaming(last)
    assert labels(streaming(speech[0])) == wanted


@pytest.mark.parametrize(
    "ends", [[0], [100], [256], [0, 100, 200], [*range(0, 800, 50)], [1, 2000]], ids=str
)
def test_no_frame_is_lost_in_front_of_the_first_whole_window(
    ends, model, speech, monkeypatch
):
    """As many features as of the whole audio; ESPnet loses the first two of these."""
    streaming = Speech2TextStreaming(**model.files, **DECODING, **OURS)
    network, wave = streaming.asr_model, torch.tensor(speech[0])
    whole, _ = network._extract_feats(wave[None], torch.tensor([len(wave)]))
    heard = []
    apply_frontend = streaming.apply_frontend

    def noting(*args, **kwargs):
        feats, *more = apply_frontend(*args, **kwargs)
        heard.extend([] if feats is None else [feats])
        return (feats, *more)

    monkeypatch.setattr(streaming, "apply_frontend", noting)
    *pieces, last = np.split(speech[0], ends)
    for piece in pieces:
        streaming(piece, is_final=False)
    assert streaming(last)
    torch.testing.assert_close(torch.cat(heard, dim=1), whole, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("search", ["espnet", "explicit_length"])
def test_pieces_of_less_than_espnet_keeps(search, speech, tmp_path):
    """It keeps three hops and what is over, more than a window of two hops and a half."""
    options = {
        **SPEECH,
        "frontend_conf": {**SPEECH["frontend_conf"], "win_length": 200},
        "encoder": "contextual_block_transformer",
        "encoder_conf": {**SPEECH["encoder_conf"], **BLOCKS},
    }
    files = make_model(tmp_path / "m", "asr", ASRTask, TOKENS, **options).files
    found = []
    for ends in ([100, 230, 900], [100, 900]):
        streaming = Speech2TextStreaming(
            **files, **{**DECODING, "nbest": 1}, search=search
        )
        *pieces, last = np.split(speech[0], ends)
        for piece in pieces:
            streaming(piece, is_final=False)
        found.append(labels(streaming(last)))
    assert found[0] == found[1] != [[]]


def test_broken_audio_and_what_it_leaves_behind(model, speech):
    recogniser = Speech2TextStreaming(**model.files, **DECODING, **OURS)
    streaming = ChunkedRecognizer(recogniser, PIECE)
    wanted = labels(streaming(torch.tensor(speech[1])))
    for broken in (torch.zeros(0), torch.zeros(100), torch.full((9000,), np.nan)):
        with pytest.raises(AudioError):
            streaming(broken)
    recogniser(speech[0][:8000], is_final=False)  # an utterance that was broken off
    assert labels(streaming(torch.tensor(speech[1]))) == wanted


class Listener:
    """Notes what it is handed, in the place of a recogniser."""

    nbest = 1

    def reset(self):
        self.pieces = []

    def __call__(self, speech, is_final=True):
        self.pieces.append((len(speech), is_final))
        return []


@pytest.mark.parametrize(
    "samples, piece, lengths",
    [(5000, 0, [5000]), (10, 4, [4, 4, 2]), (8, 4, [4, 4, 0]), (3, 4, [3])],
)
def test_pieces_are_those_of_espnets_tool(samples, piece, lengths):
    listener = Listener()
    ChunkedRecognizer(listener, piece)(torch.zeros(samples))
    last = len(lengths) - 1
    assert listener.pieces == [(n, i == last) for i, n in enumerate(lengths)]


# --- The command line -----------------------------------------------------------------


def command(model, scp, out, *options):
    return asr_command(model, scp, out, "--nbest", "2", *options)


@pytest.mark.parametrize("piece", ["0", "1600"])
def test_search_espnet_writes_espnets_files(model, wav_scp, tmp_path, piece):
    options = ["--sim_chunk_length", piece, "--disable_repetition_detection", "true"]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    assert asr_inference_streaming.main(command(model, wav_scp, ours, *options)) == 0
    espnets.main(command(model, wav_scp, theirs, *options))
    assert files(ours) == files(theirs)
    assert len(files(ours)) == 8


def test_the_files_of_a_run_in_pieces(model, wav_scp, speech, tmp_path, monkeypatch):
    sizes = []
    make = ChunkedRecognizer.__init__
    monkeypatch.setattr(
        ChunkedRecognizer,
        "__init__",
        lambda *args: sizes.append(args[2]) or make(*args),
    )
    config = tmp_path / "decode.yaml"
    config.write_text("search: explicit_length\nsearch_conf: {score_threshold: 8.0}\n")
    options = ["--config", str(config), "--sim_chunk_length", str(PIECE)]
    assert (
        asr_inference_streaming.main(
            command(model, wav_scp, tmp_path / "out", *options)
        )
        == 0
    )
    assert sizes == [PIECE]
    written = files(tmp_path / "out")
    ours = {"original_score", "steps", "stopped"}
    names = {"token", "token_int", "score", "text"} | ours
    assert written.keys() == {f"{n}best_recog/{x}" for n in (1, 2) for x in names}
    streaming = Speech2TextStreaming(
        **model.files, **DECODING, **OURS, search_conf={"score_threshold": 8.0}
    )
    wanted = [streaming(wave)[0][0] for wave in speech]
    lines = written["1best_recog/text"].decode().splitlines()
    # the encoder sees the same blocks, whatever the pieces
    assert [line.partition(" ")[2] for line in lines] == wanted


def test_every_utterance_has_its_line(model, wav_scp, tmp_path, caplog):
    short = wav_scp.parent / "utt1.wav"
    soundfile.write(short, np.zeros(80), RATE)
    out = tmp_path / "out"
    options = ["--search", "explicit_length", "--sim_chunk_length", "99999"]
    assert asr_inference_streaming.main(command(model, wav_scp, out, *options)) == 1
    lines = (out / "1best_recog" / "text").read_text().splitlines()
    assert [line.split(" ")[0] for line in lines] == ["utt0", "utt1", "utt2"]
    assert lines[1] == "utt1 "
    assert lines[0].split(" ", 1)[1]
    assert "failed: utt1: AudioError: the audio is too short" in caplog.text


@pytest.mark.parametrize(
    "options, message",
    [
        (["--search", "simple"], "search: simple needs the whole audio"),
        (["--search", "explicit_length", "--encoded_feat_length_limit", "5"],
         "encoded_feat_length_limit does not go with search: explicit_length"),
        (["--search", "explicit_length", "--batch_size", "2"], "set batch_size to 1"),
        (["--search", "explicit_lenght"], "did you mean explicit_length?"),
        (["--sim_chunk_length", "-1"], "sim_chunk_length must be"),
    ],
)  # fmt: skip
def test_mistakes_on_the_command_line(
    model, wav_scp, tmp_path, options, message, capsys
):
    with pytest.raises(SystemExit) as e:
        asr_inference_streaming.main(command(model, wav_scp, tmp_path / "o", *options))
    assert e.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert ": error: " in last and message in last


def test_the_wrapper_knows_the_tool():
    assert replaced(["-m", espnets.__name__, "--x"]) == [
        "-m",
        asr_inference_streaming.__name__,
        "--x",
    ]
    assert Path(asr_inference_streaming.__file__).is_file()


@pytest.mark.parametrize(
    "broken",
    [
        np.full(PIECE, np.nan, dtype="float32"),
        np.zeros((2, PIECE), dtype="float32"),
        "speech.wav",
    ],
    ids=["NaN", "shape", "no audio"],
)
def test_a_stream_that_fails_leaves_nothing_to_the_next(model, speech, broken, caplog):
    streaming = Speech2TextStreaming(**model.files, **DECODING, **OURS)
    expected = [result[:3] for result in in_pieces(streaming, speech[0])[-1]]
    streaming(speech[1][:PIECE], is_final=False)
    with pytest.raises((AudioError, TypeError), match="the chunk"):
        streaming(broken, is_final=False)
    assert "what was heard before it is given up: the next chunk is" in caplog.text
    found = in_pieces(streaming, speech[0])[-1]
    assert [result[:3] for result in found] == expected
