"""Whisper models as ESPnet builds them, whole: tokenizer, encoder, decoder, text."""

import logging
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from espnet_lenbias import Speech2Text, inference, label_confidence, use_search
from espnet_lenbias.bin import asr_inference
from espnet_lenbias.errors import OptionError
from espnet_lenbias.inference.whisper_results import without_primer
from espnet_lenbias.inference.whisper_tokens import HuggingFaceView, byte_characters
from tests.whisper_files import (
    ENGLISH,
    LARGE_V3,
    MULTILINGUAL,
    Files,
    noise,
    write_config,
    write_model,
    write_noise,
)

whisper = pytest.importorskip(
    "whisper", reason="needs Whisper: pip install 'espnet_lenbias[whisper]'"
)

N = 8  # labels of a text
DECODING = {"ctc_weight": 0.0, "lm_weight": 0.0, "maxlenratio": -N, "minlenratio": -N}
UNPADDED = "do_pad_trim: true under encoder_conf"


@pytest.fixture(scope="module")
def english(tmp_path_factory) -> Files:
    return write_model(tmp_path_factory.mktemp("english"), ENGLISH)


@pytest.fixture(scope="module")
def model(english) -> Speech2Text:
    return Speech2Text(**english.options, **DECODING, beam_size=4, search="simple")


def openai_greedy(files: Files, audio) -> tuple[list[int], str]:
    """Return labels and text of openai-whisper's own greedy search, N labels."""
    model = whisper.load_model(str(files.checkpoint), device="cpu")
    mel = whisper.log_mel_spectrogram(
        whisper.pad_or_trim(torch.as_tensor(audio)), model.dims.n_mels
    )
    options = whisper.DecodingOptions(
        language=files.kind.language or "en",
        task="transcribe",
        without_timestamps=True,
        suppress_tokens="",
        suppress_blank=False,
        sample_len=N,
        fp16=False,
    )
    result = whisper.decode(model, mel, options)
    return result.tokens, result.text


# --- The same labels and texts as openai-whisper itself -------------------------------


@pytest.mark.parametrize("kind", [ENGLISH, MULTILINGUAL, LARGE_V3])
def test_text_is_that_of_openais_greedy_search(kind, english, tmp_path):
    files = english if kind is ENGLISH else write_model(tmp_path, kind)
    ours = Speech2Text(**files.options, **DECODING, beam_size=1, search="simple")
    for seed in range(2):
        audio = noise(2.0, seed)
        text, tokens, ids, hypothesis = ours(audio)[0]
        expected, expected_text = openai_greedy(files, audio)
        assert ids == expected
        assert text.strip() == expected_text
        assert len(tokens) == len(ids)
        n_primer = len(hypothesis.yseq) - 1 - len(ids)
        assert n_primer == (2 if kind is ENGLISH else 4)


def test_parameters_are_those_of_the_checkpoint(english):
    openais = torch.load(english.checkpoint, weights_only=True)["model_state_dict"]
    espnets = torch.load(english.weights, weights_only=True)
    assert len(espnets) == len(openais)
    for name, value in openais.items():
        half, _, rest = name.partition(".")
        assert torch.equal(espnets[f"{half}.{half}s.{rest}"], value)


def test_batches_and_searches(model):
    waves = [noise(1.0), noise(2.5, 1)]
    for search in ("simple", "explicit_length"):
        use_search(model, search)
        alone = [model(wave)[0] for wave in waves]
        for one, of_batch in zip(alone, model(waves), strict=True):
            assert of_batch[0][:3] == one[:3]
            assert of_batch[0][3].score == pytest.approx(one[3].score, abs=1e-3)
    use_search(model, "simple")


def test_the_exclamation_mark_is_no_blank(model):
    """It is label 0, which ESPnet leaves out of every text."""
    tokens = [" Ha", "!", " Ha", "!"]
    tokenizer = whisper.tokenizer.get_tokenizer(multilingual=False)
    ids = [tokenizer.encode(token)[0] for token in tokens]
    assert ids[1] == 0

    def search(x, **_):
        primer = model.beam_search.hyp_primer
        found = old(x, maxlenratio=-1)
        yseq = torch.tensor([*primer, *ids, tokenizer.eot])
        return [found[0]._replace(yseq=yseq)]

    old, model.beam_search.forward = model.beam_search.forward, search
    try:
        text, names, labels, _ = model(noise(1.0))[0]
    finally:
        model.beam_search.forward = old
    assert text == " Ha! Ha!"
    assert (names, labels) == (["ĠHa", "!", "ĠHa", "!"], ids)


@pytest.mark.parametrize("confidence", ["label_probability", "posterior", "combined"])
def test_espnets_search_has_confidences_and_times_of_the_text(english, confidence):
    """The prompt, which ESPnet has in `token_int`, has none, and the text is ESPnet's."""
    options = {**english.options, **DECODING, "minlenratio": 0.0, "beam_size": 4}
    audio = noise(2.0)
    text, tokens, ids, _ = Speech2Text(**options)(audio)[0]
    assert len(ids) > len(tokens)  # with the prompt: nothing was asked of us
    assert len(label_confidence(Speech2Text(**options, nbest=4)(audio))) == len(tokens)
    ours = Speech2Text(**options, confidence=confidence, times=True)
    ours_text, ours_tokens, ours_ids, hypothesis = ours(audio)[0]
    assert (ours_text, ours_tokens) == (text, tokens)
    assert ours.converter.ids2tokens(ours_ids) == tokens
    n_labels, n_words = len(tokens), len(text.split())
    assert len(ours_ids) == len(hypothesis.label_confidence) == n_labels
    assert len(hypothesis.label_times) == n_labels
    assert len(hypothesis.word_confidence) == len(hypothesis.word_times) == n_words
    assert all(0 <= value <= 1 for value in hypothesis.word_confidence)


# --- Without OpenAI's checkpoint, and without the package -----------------------------


def test_openais_checkpoint_is_not_loaded(english, monkeypatch, tmp_path, caplog):
    """A packed model has all parameters: nothing is fetched to be thrown away.

    This one is also as ESPnet has it by default: it does not pad.
    """
    monkeypatch.setattr(whisper, "load_model", None)
    config = write_config(tmp_path / "config.yaml", ENGLISH, "tiny.en")
    files = {**english.options, "asr_train_config": str(config)}
    model = Speech2Text(**files, **DECODING, beam_size=1, search="simple")
    assert caplog.text.count(UNPADDED) == 1
    use_search(model, "explicit_length")
    assert caplog.text.count(UNPADDED) == 1
    saved = torch.load(english.weights, weights_only=True)
    for name, value in model.asr_model.state_dict().items():
        assert torch.equal(value, saved[name])


def test_a_checkpoint_that_cannot_be_fetched_is_named(english, monkeypatch):
    def offline(name, **_):
        raise OSError("Name or service not known")

    monkeypatch.setattr(whisper, "load_model", offline)
    with pytest.raises(OptionError, match="^whisper_model: .*tiny.pt is needed") as why:
        Speech2Text(str(english.config), **DECODING, beam_size=1, search="simple")
    assert "Name or service not known" in str(why.value)
    assert "\n" not in str(why.value)


def test_the_package_is_not_there(english, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
    with pytest.raises(OptionError, match="pip install openai-whisper"):
        Speech2Text(**english.options, **DECODING, beam_size=1, search="simple")


@pytest.mark.parametrize("module", ["whisper", "whisper_shapes", "whisper_tokens"])
def test_other_models_need_no_package(module, monkeypatch):
    for name in [*sys.modules, "whisper", "tiktoken"]:
        if name.partition(".")[0] in ("whisper", "tiktoken"):
            monkeypatch.setitem(sys.modules, name, None)  # its import fails
    path = Path(inference.__file__).with_name(f"{module}.py")
    fresh = runpy.run_path(str(path))
    if module == "whisper":
        with fresh["whisper_ready"]({"encoder": "conformer", "token_type": "bpe"}):
            pass


# --- Audio that is not padded, or too long --------------------------------------------


def test_audio_beyond_30_s_is_warned_of(model, caplog):
    long = noise(31.5)
    result = model(long)[0]
    assert "the audio has 31.50 s, and Whisper hears no more than 30 s" in caplog.text
    assert result[2] == model(long[: 30 * 16000])[0][2]


def test_time_stamps_are_no_labels_of_a_text(model):
    """Each label of a result is a token of its text, whatever a model puts out."""
    tokenizer = whisper.tokenizer.get_tokenizer(multilingual=False)
    hello, stamp = tokenizer.encode(" Hello")[0], tokenizer.timestamp_begin + 7
    primer = list(model.beam_search.hyp_primer)
    labels = [stamp, hello, stamp, 0]  # 0 is an exclamation mark
    found = SimpleNamespace(yseq=[*primer, *labels, tokenizer.eot])
    results = [("", [], [*primer, *labels], found)]
    assert without_primer(model, results) == [
        (" Hello!", ["ĠHello", "!"], [hello, 0], found)
    ]


def test_the_drop_in_names_what_is_too_long(english, tmp_path, caplog):
    files = {
        "short": write_noise(tmp_path / "short.wav", 30.0),
        "long": write_noise(tmp_path / "long.wav", 31.5),
    }
    scp = tmp_path / "wav.scp"
    scp.write_text("".join(f"{key} {path}\n" for key, path in files.items()))
    options = [word for k, v in english.options.items() for word in (f"--{k}", v)]
    options += ["--ctc_weight", "0.0", "--lm_weight", "0.0", "--maxlenratio", "-4"]
    options += ["--search", "simple", "--beam_size", "2", "--num_workers", "0"]
    options += ["--data_path_and_name_and_type", f"{scp},speech,sound"]
    caplog.set_level(logging.WARNING)
    out = tmp_path / "out"
    assert asr_inference.main([*options, "--output_dir", str(out)]) == 0
    assert caplog.text.count("hears no more than") == 1
    assert f"Utterance long: {files['long']} has 31.50 s" in caplog.text
    assert "1 of 2 utterances are longer than what the model hears" in caplog.text
    assert UNPADDED not in caplog.text
    ids = (out / "1best_recog" / "token_int").read_text().splitlines()
    assert all(len(line.split()) - 1 <= 4 for line in ids)  # of the text alone


# --- The tokenizer --------------------------------------------------------------------


@pytest.fixture(scope="module")
def view() -> HuggingFaceView:
    tokenizer = whisper.tokenizer.get_tokenizer(multilingual=True)
    return HuggingFaceView(tokenizer.encoding)


def test_bytes_have_the_characters_of_gpt_2():
    characters = byte_characters()
    assert len(set(characters.values())) == 256
    assert [characters[byte] for byte in b"A~\x20\x0a\x00"] == list("A~ĠĊĀ")
    assert [characters[byte] for byte in "é".encode()] == ["Ã", "©"]


@pytest.mark.parametrize(
    ("text", "characters"),
    [
        (" Hello world!", "ĠHelloĠworld!"),
        ("<|de|> Grüß", "<|de|>ĠGrÃ¼ÃŁ"),
        ("", ""),
    ],
)
def test_a_text_and_its_labels(text, characters, view):
    tokens = view.tokenize(text, add_special_tokens=False)
    assert "".join(tokens) == characters
    assert view.convert_tokens_to_string(tokens) == text
    assert view.convert_ids_to_tokens(view.convert_tokens_to_ids(tokens)) == tokens


def test_labels_that_are_no_text_are_skipped(view):
    ids = view.convert_tokens_to_ids(["<|startoftranscript|>", "ĠHello", "<|0.02|>"])
    assert ids[0] == 50258 and ids[2] == 50365
    assert view.convert_ids_to_tokens(ids, skip_special_tokens=True) == ["ĠHello"]


def test_half_a_character_is_replaced(view):
    assert view.convert_tokens_to_string(["Ã"]) == "\ufffd"


def test_a_label_that_there_is_not_is_the_end_label(view):
    assert view.convert_tokens_to_ids("no such label") == 50257


def test_labels_that_are_added():
    """ESPnet's prompts are a part of a text, its marks for a change of speaker are not."""
    tokenizer = whisper.tokenizer.get_tokenizer(multilingual=True)
    view = HuggingFaceView(tokenizer.encoding)
    size = view.vocab_size + len(view.get_added_vocab())
    assert size == 51865
    assert view.add_tokens(["<ner>", "<ner>"]) == 1
    assert view.add_special_tokens({"extra_special_tokens": ["<|0.02|>", "<sc>"]}) == 1
    assert view.tokenize(" Hello<ner> world<sc>") == [
        *("ĠHello", "<ner>", "Ġworld", "<sc>")
    ]
    ids = view.convert_tokens_to_ids(["<ner>", "<sc>"])
    assert ids == [size, size + 1]
    assert view.convert_ids_to_tokens(ids, skip_special_tokens=True) == ["<ner>"]
    assert view.additional_special_tokens == ["<|0.02|>", "<sc>"]
