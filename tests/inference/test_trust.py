"""Results that a batch must not change, and files that do not belong together."""

import numpy as np
import pytest
import soundfile
import torch
from espnet2.tasks.asr import ASRTask
from espnet2.tasks.lm import LMTask

from espnet_lenbias import OptionError, Speech2Text, st
from espnet_lenbias.bin import asr_inference
from espnet_lenbias.errors import AudioError
from espnet_lenbias.inference.audio_checks import as_samples
from tests.conftest import RATE
from tests.make_models import SPEECH, SRC_TOKENS, TOKENS, make_model
from tests.releases import needs_batches, needs_lightning_checkpoints
from tests.tiny import write_model

EXPLICIT = {"search": "explicit_length", "beam_size": 3, "ctc_weight": 0.3, "nbest": 2}
CONFORMER = {
    **SPEECH,
    "encoder": "conformer",
    "encoder_conf": {
        **SPEECH["encoder_conf"],
        "cnn_module_kernel": 7,
        "rel_pos_type": "latest",
    },
}


@pytest.fixture(scope="module")
def conformer(tmp_path_factory):
    """Make a model whose convolutions reach into the padding of a batch."""
    folder = tmp_path_factory.mktemp("conformer") / "model"
    return make_model(folder, "asr", ASRTask, TOKENS, **CONFORMER)


@pytest.fixture(scope="module")
def lm_files(tmp_path_factory):
    """Return what makes a tiny LM of other tokens, its files as options."""
    folder = tmp_path_factory.mktemp("lm")

    def make(name, tokens):
        (folder / name).mkdir()
        token_list = folder / name / "tokens.txt"
        token_list.write_text("\n".join(tokens) + "\n")
        args = LMTask.get_parser().parse_args(
            ["--output_dir", str(folder), "--token_list", str(token_list)]
        )
        args.token_list = tokens
        args.lm_conf = {"unit": 8, "nlayers": 1}
        config, weights = write_model(folder / name, LMTask, args)
        return {"lm_train_config": str(config), "lm_file": str(weights)}

    return make


def facts(nbest):
    return [(text, tokens, ids) for text, tokens, ids, _ in nbest]


def scores(nbest):
    return [float(hypothesis.score) for *_, hypothesis in nbest]


def assert_as_alone(model, utterances, together):
    for wave, nbest in zip(utterances, together, strict=True):
        alone = model(wave)
        assert facts(nbest) == facts(alone)
        assert scores(nbest) == pytest.approx(scores(alone), abs=1e-4)


@needs_batches
@pytest.mark.parametrize("search", ["explicit_length", "simple"])
def test_a_batch_gives_what_its_utterances_give_alone(conformer, search, waves):
    model = Speech2Text(**conformer.files, **{**EXPLICIT, "search": search})
    utterances = list(waves.values())
    assert_as_alone(model, utterances, model(utterances))
    # ESPnet's way: encoded together, the frames are others
    lengths = torch.tensor([len(w) for w in utterances])
    padded = torch.nn.utils.rnn.pad_sequence(
        [torch.tensor(w, dtype=torch.float32) for w in utterances], batch_first=True
    )
    assert_as_alone(model, utterances, model.batch_decode(padded, lengths))


@needs_batches
def test_frames_beyond_the_lengths_that_the_encoder_reports(conformer, waves):
    """As of a Whisper encoder that pads to 30 s: alone, the decoder sees all frames."""
    model = Speech2Text(**conformer.files, **EXPLICIT)
    torch.manual_seed(0)
    padding = torch.randn(1, 30, 16)
    encode = model.asr_model.encode

    def as_whisper(speech, speech_lengths):
        x, lengths = encode(speech=speech, speech_lengths=speech_lengths)
        filled = padding.repeat(len(x), 1, 1)
        for b, n in enumerate(lengths):
            filled[b, :n] = x[b, :n]
        return filled, lengths

    model.asr_model.encode = as_whisper
    utterances = list(waves.values())
    together = model(utterances)
    assert_as_alone(model, utterances, together)
    # and it makes a difference
    model.asr_model.encode = encode
    assert [scores(n) for n in model(utterances)] != [scores(n) for n in together]


@pytest.mark.parametrize("dtype", ["int16", "int32"])
@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
def test_integers_are_scaled_by_their_range(conformer, dtype, kind, waves):
    model = Speech2Text(**conformer.files, **EXPLICIT)
    scale = float(np.iinfo(dtype).max) + 1
    wave = waves["utt3"]
    integers = kind((wave * scale).astype(dtype))
    floats = (wave * scale).astype(dtype) / scale
    expected = facts(model(floats.astype("float32")))
    assert facts(model(integers)) == expected
    assert facts(model([integers, integers])[1]) == expected


def test_the_range_of_integers():
    samples = as_samples(np.array([-32768, 0, 16384], dtype="int16"))
    assert samples.tolist() == [-1.0, 0.0, 0.5]
    assert samples.dtype == torch.float32


@pytest.mark.parametrize(
    ("wave", "error", "message"),
    [
        (np.zeros(4000, "uint8"), TypeError, "holds uint8"),
        (np.zeros(4000, "complex64"), TypeError, "holds complex64"),
        (np.array(["a"] * 4000), TypeError, "holds <U1"),
        (
            np.ma.array([0.1] * 4000, mask=[1] + [0] * 3999),
            TypeError,
            "are masked: give",
        ),
        (torch.zeros(4000).to_sparse(), TypeError, "is a sparse tensor: give"),
        (np.zeros((2, 4000), "f"), AudioError, r"of shape \(2, 4000\)"),
        (np.zeros((4000, 2, 2), "f"), AudioError, r"of shape \(4000, 2, 2\)"),
    ],
)
def test_arrays_that_are_no_audio_are_named(conformer, wave, error, message):
    model = Speech2Text(**conformer.files, **EXPLICIT)
    with pytest.raises(error, match=message):
        model(wave)
    with pytest.raises(error, match=message):
        model.batch_decode([wave])
    if getattr(wave, "layout", torch.strided) == torch.strided:
        with pytest.raises(error, match=message):
            model.batch_decode(wave[None], [len(wave)])


@pytest.mark.parametrize(
    "wave", [np.full(4000, 2**15 - 1, "i4"), np.full(4000, -9, "i8")]
)
def test_16_bits_in_wider_integers_are_named(wave, conformer, waves):
    model = Speech2Text(**conformer.files, **EXPLICIT)
    message = f"{wave.dtype}, .* range of 16 bits"
    with pytest.raises(AudioError, match=message):
        model(wave)
    with pytest.raises(AudioError, match=message):
        model.batch_decode(wave[None], [len(wave)])
    [nothing], good = model([wave, waves["utt3"]])
    assert nothing[0] == ""
    assert facts(good) == facts(model(waves["utt3"]))


@pytest.mark.parametrize(
    "change",
    [
        lambda wave: wave.astype(">f4"),
        lambda wave: wave.astype("f8"),
        lambda wave: wave.astype(np.longdouble),
        lambda wave: np.ma.array(wave),
        lambda wave: wave[::-1].copy()[::-1],
        lambda wave: np.repeat(wave, 2)[::2],
    ],
    ids=["big-endian", "double", "longer", "none masked", "flipped", "strided"],
)
def test_arrays_of_other_layouts_are_the_same_audio(change, conformer, waves):
    model = Speech2Text(**conformer.files, **EXPLICIT)
    wave = waves["utt3"].astype("float32")
    expected = facts(model(wave))
    assert facts(model(change(wave))) == expected
    assert facts(model([change(wave)])[0]) == expected


def test_integers_of_another_byte_order():
    assert as_samples(np.array([-32768, 16384], dtype=">i2")).tolist() == [-1.0, 0.5]


def test_two_channels_in_a_list_are_what_they_are_alone(conformer, waves):
    model = Speech2Text(**conformer.files, **EXPLICIT)
    wave = waves["utt3"].astype("float32")
    stereo = np.stack([wave, wave], axis=1)
    alone = facts(model(stereo))
    assert facts(model([stereo])[0]) == alone
    assert [facts(n) for n in model([wave, stereo])] == [facts(model(wave)), alone]


@pytest.mark.parametrize("search", ["espnet", "explicit_length"])
def test_a_checkpoint_of_another_model(conformer, transformer_model, search):
    with pytest.raises(OptionError, match=r"asr_model_file: .*of its \d+ .*missing"):
        Speech2Text(
            conformer.files["asr_train_config"],
            transformer_model.files["asr_model_file"],
            **{**EXPLICIT, "search": search},
        )


def test_a_checkpoint_of_other_sizes(conformer, tmp_path):
    weights = torch.load(conformer.files["asr_model_file"])
    weights["decoder.output_layer.bias"] = torch.zeros(7)
    torch.save(weights, tmp_path / "model.pth")
    with pytest.raises(
        OptionError, match="size mismatch for decoder.output_layer.bias"
    ):
        Speech2Text(
            conformer.files["asr_train_config"], str(tmp_path / "model.pth"), **EXPLICIT
        )


def test_a_checkpoint_of_an_lm_names_what_is_missing(conformer, lm_files):
    lm = lm_files("same", TOKENS)
    with pytest.raises(OptionError) as raised:
        Speech2Text(conformer.files["asr_train_config"], lm["lm_file"], **EXPLICIT)
    names = sorted(torch.load(conformer.files["asr_model_file"]))
    assert f"it holds {len(torch.load(lm['lm_file']))} others" in str(raised.value)
    assert names[0] in str(raised.value)


@pytest.mark.parametrize(
    "wrapper", ["module", pytest.param("state_dict", marks=needs_lightning_checkpoints)]
)
def test_a_checkpoint_that_wraps_the_model(conformer, wrapper, tmp_path, waves):
    weights = torch.load(conformer.files["asr_model_file"])
    wrapped = tmp_path / "wrapped.pth"
    torch.save({wrapper: weights}, wrapped)
    config = conformer.files["asr_train_config"]
    model = Speech2Text(config, str(wrapped), **EXPLICIT)
    expected = Speech2Text(**conformer.files, **EXPLICIT)(waves["utt1"])
    assert facts(model(waves["utt1"])) == facts(expected)
    weights.pop("decoder.output_layer.weight")
    torch.save({wrapper: weights}, wrapped)
    with pytest.raises(OptionError, match=r"1 are missing there \(decoder.output_la"):
        Speech2Text(config, str(wrapped), **EXPLICIT)


@pytest.mark.filterwarnings("ignore:.*quantiz")
def test_quantised_models_have_their_parameters(conformer, waves):
    model = Speech2Text(**conformer.files, **EXPLICIT, quantize_asr_model=True)
    assert model(waves["utt1"])


def test_the_checkpoint_of_the_lm_is_the_models(conformer, lm_files):
    lm = {**lm_files("lm", TOKENS), "lm_file": conformer.files["asr_model_file"]}
    with pytest.raises(OptionError, match="lm_file: .* is not the checkpoint"):
        Speech2Text(**conformer.files, **lm, **EXPLICIT, lm_weight=0.3)
    Speech2Text(**conformer.files, **lm, **EXPLICIT, lm_weight=0.0)  # it is not used


def test_an_lm_of_fewer_layers_than_in_its_training(conformer, lm_files, tmp_path):
    lm = lm_files("more", TOKENS)
    more = torch.load(lm["lm_file"]) | {"lm.encoder.more": torch.ones(3)}
    torch.save(more, tmp_path / "lm.pth")
    lm = {**lm, "lm_file": str(tmp_path / "lm.pth")}
    message = r"^lm_file: .* has no place for 1 of the .*\(lm.encoder.more\)"
    with pytest.raises(OptionError, match=message):
        Speech2Text(**conformer.files, **lm, **EXPLICIT, lm_weight=0.3)
    Speech2Text(**conformer.files, **lm, **EXPLICIT, lm_weight=0.0)  # it is not used


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (TOKENS[:-3] + TOKENS[-1:], "28 labels, not 30"),
        (
            [*TOKENS[:3], *TOKENS[4:6], TOKENS[3], *TOKENS[6:]],
            "label 3 is 'B', not 'A'",
        ),
    ],
    ids=["fewer", "other order"],
)
def test_an_lm_of_another_vocabulary(conformer, lm_files, tokens, message, request):
    lm = lm_files(request.node.callspec.id, tokens)
    with pytest.raises(OptionError) as raised:
        Speech2Text(**conformer.files, **lm, **EXPLICIT, lm_weight=0.3)
    assert message in str(raised.value)
    assert lm["lm_train_config"] in str(raised.value)
    assert conformer.files["asr_train_config"] in str(raised.value)


def test_an_lm_of_the_source_text_has_its_labels(model_of, lm_files):
    """Of a translator that finds the text in the source language first."""
    files = model_of("st_multi").files
    turned = [*SRC_TOKENS[:3], *SRC_TOKENS[-2:2:-1], SRC_TOKENS[-1]]
    for name, tokens, message in (
        ("source", SRC_TOKENS, ""),
        ("turned", turned, "label 3 is 'T', not 'A'"),
        ("target", TOKENS, "30 labels, not 24"),
    ):
        lm = {f"src_{key}": file for key, file in lm_files(name, tokens).items()}
        if not message:
            st.Speech2Text(**files, **lm, **EXPLICIT)
            continue
        said = f"^src_lm_train_config: .*{message}.* or asr_lm_weight: 0.0"
        with pytest.raises(OptionError, match=said):
            st.Speech2Text(**files, **lm, **EXPLICIT)


@pytest.mark.parametrize("search", ["espnet", "explicit_length"])
@pytest.mark.parametrize("key", ["lm_train_config", "lm_file"])
def test_half_of_an_lm(search, key, conformer, lm_files):
    half = {key: lm_files(f"{search} {key}", TOKENS)[key]}
    options = {**EXPLICIT, "search": search}
    with pytest.raises(ValueError, match=f"{key}: a language model takes two files"):
        Speech2Text(**conformer.files, **half, **options)


def test_special_tokens_may_have_other_names(conformer, lm_files, waves):
    lm = lm_files("special", ["<blk>", *TOKENS[1:]])
    model = Speech2Text(**conformer.files, **lm, **EXPLICIT, lm_weight=0.3)
    assert model(waves["utt1"])


def test_the_tool_says_so_in_a_line(conformer, lm_files, tmp_path, waves, capsys):
    soundfile.write(tmp_path / "a.wav", waves["utt1"], RATE)
    (tmp_path / "wav.scp").write_text(f"a {tmp_path / 'a.wav'}\n")
    with pytest.raises(SystemExit) as raised:
        asr_inference.main(
            [
                *("--asr_train_config", conformer.files["asr_train_config"]),
                *("--asr_model_file", lm_files("tool", TOKENS)["lm_file"]),
                *("--data_path_and_name_and_type", f"{tmp_path}/wav.scp,speech,sound"),
                *("--output_dir", str(tmp_path / "out"), "--search", "simple"),
                *("--lm_weight", "0.0", "--num_workers", "0"),
            ]
        )
    assert raised.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert "error: asr_model_file: " in last
    assert "is not the checkpoint of this model" in last


def test_espnets_own_search_takes_the_batch_size_that_espnet_takes(conformer):
    model = Speech2Text(**conformer.files, search="espnet", batch_size=0)
    assert model.batch_size == 0
    with pytest.raises(ValueError, match="batch_size must be a whole number"):
        Speech2Text(**conformer.files, **EXPLICIT, batch_size=0)
