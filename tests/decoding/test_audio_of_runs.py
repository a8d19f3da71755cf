"""Audio that a run warns of, or cannot read: which utterance, and no other."""

import numpy as np
import pytest
import soundfile
import yaml
from espnet2.bin import asr_inference as espnets

from espnet_lenbias.bin import asr_inference
from tests.conftest import RATE
from tests.releases import needs_batches
from tests.tiny import Model
from tests.tool_models import asr_command, files, lines, run_asr


@pytest.mark.parametrize("num_workers", ["0", "2"])
def test_audio_of_another_rate(
    num_workers, transformer_model, wav_scp, tmp_path, caplog
):
    """Two of five utterances, and not the first."""
    for key, rate in (("utt3", 2 * RATE), ("utt4", RATE // 2)):
        wave = wav_scp.parent / f"{key}.wav"
        soundfile.write(wave, soundfile.read(wave)[0], rate, subtype="FLOAT")
    options = ["--num_workers", num_workers]
    assert run_asr(transformer_model, wav_scp, tmp_path / "out", *options) == 0
    each = [m for m in caplog.messages if "samples a second" in m]
    assert each == [
        f"Utterance {key}: {wav_scp.parent / key}.wav has {rate} samples a second, and "
        f"the model takes {RATE}: resample it (sox {wav_scp.parent / key}.wav -r {RATE} "
        "out.wav)"
        for key, rate in (("utt3", 2 * RATE), ("utt4", RATE // 2))
    ]
    (together,) = [m for m in caplog.messages if "2 of 5 utterances" in m]
    assert "have another sampling rate than the model's" in together


def test_audio_of_the_models_rate(transformer_model, wav_scp, tmp_path, caplog):
    assert run_asr(transformer_model, wav_scp, tmp_path / "out") == 0
    assert "rate" not in caplog.text


@pytest.mark.parametrize("kind", ["sound", "multi_columns_sound", "kaldi_ark"])
def test_audio_that_is_cut_off(kind, transformer_model, wav_scp, tmp_path, caplog):
    """A WAV in the middle, and a FLAC, which its reader refuses."""
    wave = tmp_path / "utt3.wav"
    wave.write_bytes(wave.read_bytes()[: 44 + RATE // 4 * 2])  # 0.25 s of 0.35
    failed = [f"AudioError: {wave}: cut off: its header says 0.35 s, and 0.25 s are "]
    if kind != "kaldi_ark":
        flac = tmp_path / "utt5.flac"
        soundfile.write(flac, soundfile.read(tmp_path / "utt5.wav")[0], RATE)
        flac.write_bytes(flac.read_bytes()[:-1000])
        wav_scp.write_text(wav_scp.read_text().replace("utt5.wav", "utt5.flac"))
        failed.append(f"{flac}: LibsndfileError: ")
    command = asr_command(transformer_model, wav_scp, tmp_path / "out")
    command = [word.replace(",sound", f",{kind}") for word in command]
    assert asr_inference.main([*command, "--search", "simple"]) == 1
    said = [m.split(": ", 2)[2] for m in caplog.messages if m.startswith("failed: ")]
    assert len(said) == len(failed)
    assert all(map(str.startswith, said, failed))
    empty = [key for key, text in lines(tmp_path / "out").items() if not text]
    assert empty == ["utt3", "utt5"][: len(failed)]


@pytest.mark.parametrize("trained_on", ["sound", "kaldi_ark"])
def test_whole_numbers_are_as_espnet_hands_them_on(
    trained_on, transformer_model, wav_scp, tmp_path, caplog
):
    """With a warning, if those of the training were scaled."""
    config = yaml.safe_load(transformer_model.config.read_text())
    data = [["dump/raw/train/wav.scp", "speech", trained_on]]
    config["train_data_path_and_name_and_type"] = data
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    lines = [line.split() for line in wav_scp.read_text().splitlines()]
    wav_scp.write_text("".join(f"{key} cat {wave} |\n" for key, wave in lines[:2]))
    model = Model("asr", tmp_path / "config.yaml", transformer_model.weights)
    ours, theirs = (
        [w.replace(",sound", ",kaldi_ark") for w in asr_command(model, wav_scp, out)]
        for out in (tmp_path / "ours", tmp_path / "theirs")
    )
    assert asr_inference.main(ours) == 0
    warnings = [m for m in caplog.messages if "scale" in m]
    espnets.main(theirs)
    assert files(tmp_path / "ours") == files(tmp_path / "theirs")
    starts = ["Utterance utt1: cat ", "Utterance utt2: cat ", "2 of 2 utterances may "]
    assert len(warnings) == (len(starts) if trained_on == "sound" else 0)
    assert all(map(str.startswith, warnings, starts))


@pytest.mark.parametrize("search", ["espnet", "explicit_length"])
def test_floats_of_another_scale(search, transformer_model, wav_scp, tmp_path, caplog):
    """Up to 32768, in one file of five."""
    wave = tmp_path / "utt3.wav"
    soundfile.write(wave, soundfile.read(wave)[0] * 32768, RATE, subtype="FLOAT")
    assert (
        run_asr(transformer_model, wav_scp, tmp_path / "out", "--search", search) == 0
    )
    said = [m for m in caplog.messages if "scale" in m or "beyond" in m]
    assert len(said) == 2
    assert said[0].startswith(f"Utterance utt3: {wave}: its samples go far beyond -1")
    assert said[1].startswith("1 of 5 utterances may have samples on another scale")


def test_the_first_of_two_channels_is_heard(
    transformer_model, wav_scp, tmp_path, caplog
):
    assert run_asr(transformer_model, wav_scp, tmp_path / "mono") == 0
    wave = tmp_path / "utt3.wav"
    samples, rate = soundfile.read(wave, dtype="int16")
    soundfile.write(wave, np.stack([samples, samples[::-1]], axis=1), rate)
    caplog.clear()
    assert run_asr(transformer_model, wav_scp, tmp_path / "stereo") == 0
    said = [m for m in caplog.messages if "channels" in m]
    assert len(said) == 2
    assert said[0].startswith(f"Utterance utt3: {wave} has 2 channels, of which")
    assert said[1].startswith("1 of 5 utterances have several channels")
    texts = [tmp_path / n / "1best_recog" / "text" for n in ("mono", "stereo")]
    assert texts[0].read_text() == texts[1].read_text()


@needs_batches
def test_stereo_in_a_batch_of_mono_is_decoded_apart(
    transformer_model, wav_scp, tmp_path, caplog
):
    wave = tmp_path / "utt3.wav"
    samples, rate = soundfile.read(wave, dtype="int16")
    soundfile.write(wave, np.stack([samples, samples], axis=1), rate)
    options = ["--search", "explicit_length", "--batch_size"]
    for size in ("1", "5"):
        out = tmp_path / size
        assert run_asr(transformer_model, wav_scp, out, *options, size) == 0
    assert lines(tmp_path / "1") == lines(tmp_path / "5")
    assert "retrying" not in caplog.text


@pytest.mark.parametrize("batch_size", ["1", pytest.param("2", marks=needs_batches)])
def test_a_raw_file_costs_no_other(
    batch_size, transformer_model, wav_scp, tmp_path, caplog
):
    """In batches, too, for which the length of each file is asked for."""
    text = wav_scp.read_text()
    (tmp_path / "utt2.raw").write_bytes((tmp_path / "utt2.wav").read_bytes())
    wav_scp.write_text(text.replace("utt2.wav", "utt2.raw"))
    size = ("--batch_size", batch_size)
    assert run_asr(transformer_model, wav_scp, tmp_path / "out", *size) == 1
    failed = [m for m in caplog.messages if m.startswith("failed: ")]
    assert len(failed) == 1
    assert failed[0].startswith(
        f"failed: utt2: AudioError: {tmp_path / 'utt2.raw'}: by its name"
    )


@pytest.mark.parametrize("kind", ["sound", "multi_columns_sound"])
def test_a_command_as_sound(kind, transformer_model, wav_scp, tmp_path, caplog):
    text = wav_scp.read_text()
    wave = tmp_path / "utt2.wav"
    wav_scp.write_text(text.replace(f"{wave}", f"cat {wave} |"))
    command = asr_command(transformer_model, wav_scp, tmp_path / "out")
    command = [word.replace(",sound", f",{kind}") for word in command]
    assert asr_inference.main([*command, "--search", "simple"]) == 1
    assert caplog.messages[-1].startswith(
        f"failed: utt2: cat {wave} |: sound takes no commands: write what it gives into"
    )


def test_commands_that_fail(transformer_model, wav_scp, tmp_path, caplog):
    """Two of five, each its utterance's own failure, and one of another rate."""
    soundfile.write(tmp_path / "utt3.wav", np.full(4000, 0.1), 2 * RATE)
    lines = [line.split() for line in wav_scp.read_text().splitlines()]
    commands = {key: f"cat {wave} |" for key, wave in lines}
    commands["utt2"] = "cat gone.wav |"
    commands["utt4"] = "cat gone.wav; false |"
    commands["utt5"] = f"{tmp_path}/gone.ark:12"
    scp = tmp_path / "pipes.scp"
    scp.write_text("".join(f"{k} {command}\n" for k, command in commands.items()))
    command = asr_command(transformer_model, scp, tmp_path / "out")
    command = [word.replace(",sound", ",kaldi_ark") for word in command]
    assert asr_inference.main([*command, "--search", "simple"]) == 1
    failed = [m for m in caplog.messages if m.startswith("failed: ")]
    assert len(failed) == 3
    assert failed[0].startswith("failed: utt2: cat gone.wav |: the command failed")
    assert failed[1].startswith("failed: utt4: cat gone.wav; false |: the command fail")
    assert failed[2].startswith(f"failed: utt5: {tmp_path}/gone.ark:12: ")
    assert f"Utterance utt3: {commands['utt3']} has {2 * RATE} samples" in caplog.text
