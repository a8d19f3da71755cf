"""Whisper's decoder, of random weights, in ``asr_inference``."""

from typing import ClassVar

import numpy as np
import pytest
import torch
from espnet2.bin import asr_inference as espnets
from espnet2.tasks.asr import ASRTask

from espnet_lenbias import Speech2Text, use_search
from espnet_lenbias.bin import asr_inference
from tests.make_models import LETTERS, SPEECH, make_model
from tests.releases import needs_batches
from tests.tool_models import command, files, lines

whisper = pytest.importorskip(
    "whisper", reason="needs Whisper: pip install 'espnet_lenbias[whisper]'"
)

START, END = "<|startoftranscript|>", "<|endoftext|>"
PROMPT = (START, "<|en|>", "<|transcribe|>", "<|notimestamps|>")
TOKENS = [*LETTERS, END, *PROMPT]
PRIMER = [TOKENS.index(token) for token in PROMPT]
D = 16
DECODING = {"beam_size": 4, "ctc_weight": 0.0, "maxlenratio": -6, "nbest": 2}


class Tokenizer:
    """What ESPnet asks of Whisper's tokenizer, of one token a letter.

    It asks a tokenizer of Hugging Face, which newer releases of Whisper have not.
    """

    sot_sequence_including_notimestamps = tuple(PRIMER)
    # asked for by ESPnet 202511, which adds lists to it
    additional_special_tokens: ClassVar[list[str]] = []

    @property
    def tokenizer(self):
        return self

    def add_special_tokens(self, tokens):
        pass

    def tokenize(self, text, add_special_tokens):
        return list(text)

    def convert_ids_to_tokens(self, ids, skip_special_tokens=False):
        tokens = [TOKENS[i] for i in ids]
        return [t for t in tokens if not skip_special_tokens or t in LETTERS]

    def convert_tokens_to_ids(self, tokens):
        return [TOKENS.index(token) for token in tokens]

    def convert_tokens_to_string(self, tokens):
        return "".join(tokens)


def load_model(name, download_root=None, device="cpu"):
    """Return a tiny model instead of one of OpenAI's."""
    dims = whisper.model.ModelDimensions(
        n_mels=4,
        n_audio_ctx=6,
        n_audio_state=D,
        n_audio_head=2,
        n_audio_layer=1,
        n_vocab=len(TOKENS),
        n_text_ctx=32,
        n_text_state=D,
        n_text_head=2,
        n_text_layer=1,
    )
    model = whisper.model.Whisper(dims)
    torch.nn.init.normal_(model.decoder.positional_embedding)  # Whisper leaves it empty
    return model


@pytest.fixture(scope="module")
def whisper_model(tmp_path_factory):
    options = {
        **SPEECH,
        "token_type": "whisper_multilingual",
        "bpemodel": "whisper_multilingual",
        "decoder": "whisper",
        "decoder_conf": {"whisper_model": "tiny"},
        "model_conf": {"ctc_weight": 0.0, "sym_sos": START, "sym_eos": END},
        "preprocessor_conf": {"whisper_language": "en", "whisper_task": "transcribe"},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whisper, "load_model", load_model)
        patch.setattr("whisper.tokenizer.get_tokenizer", lambda **_: Tokenizer())
        folder = tmp_path_factory.mktemp("whisper") / "model"
        yield make_model(folder, "asr", ASRTask, TOKENS, **options)


@pytest.mark.parametrize("batch_size", ["1", pytest.param("3", marks=needs_batches)])
def test_search_espnet_writes_espnets_files(batch_size, whisper_model, data, tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    options = ("--ctc_weight", "0.0", "--maxlenratio", "-6", "--batch_size", batch_size)
    assert asr_inference.main(command(whisper_model, data, ours, *options)) == 0
    espnets.main(command(whisper_model, data, theirs, *options))
    assert files(ours) == files(theirs)


@pytest.mark.parametrize("batch_size", ["1", pytest.param("3", marks=needs_batches)])
def test_explicit_length_by_the_config_alone(
    batch_size, whisper_model, data, tmp_path, waves
):
    path, out = tmp_path / "decode.yaml", tmp_path / "out"
    path.write_text(
        "search: explicit_length\nctc_weight: 0.0\nmaxlenratio: -6\nnbest: 2\n"
    )
    options = ("--config", str(path), "--batch_size", batch_size)
    assert asr_inference.main(command(whisper_model, data, out, *options)) == 0
    theirs = use_search(
        espnets.Speech2Text(**whisper_model.files, **DECODING), "explicit_length"
    )
    assert theirs.beam_search.hyp_primer == PRIMER
    for key, text in lines(out).items():
        first, second = theirs(waves[key].astype(np.float32))
        assert text == first[0] and set(text) <= set(LETTERS)
        assert second[3].score <= first[3].score <= 0
        score = float(lines(out, "1best_recog/score")[key])
        # in a batch the encoder's output changes a little with the padding
        assert score == pytest.approx(first[3].score, abs=1e-2)
        yseq = first[3].yseq.tolist()
        assert yseq[:4] == PRIMER and yseq[-1] == TOKENS.index(END)
        assert yseq.count(TOKENS.index(END)) == 1


def test_scores_are_those_of_the_decoder_after_the_primer(whisper_model, waves):
    model = Speech2Text(**whisper_model.files, **DECODING, search="explicit_length")
    other = [*PRIMER[:2], TOKENS.index("D"), PRIMER[3]]
    model.beam_search.set_hyp_primer(other)
    speech = torch.tensor(waves["utt2"], dtype=torch.float32).unsqueeze(0)
    with torch.no_grad():
        x, _ = model.asr_model.encode(speech, torch.tensor([speech.size(1)]))
        for *_, hyp in model(waves["utt2"]):
            assert hyp.yseq[:4].tolist() == other
            total = 0.0
            for n in range(4, len(hyp.yseq)):
                prefix = hyp.yseq[:n]
                scores, _ = model.asr_model.decoder.score(prefix, None, x[0])
                total += scores[hyp.yseq[n]].item()
            assert hyp.original_score == pytest.approx(total, abs=1e-3)
