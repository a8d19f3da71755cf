"""Packed models that cannot be used: every tool ends with status 2 and one line."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import soundfile

from espnet_lenbias import OptionError, Speech2Text, cli
from espnet_lenbias.bin import asr_inference
from tests.bundled import bundled


def _rewritten(path: Path, **more: bytes) -> Path:
    """Write a bundled model anew, uncompressed, with more members."""
    with (
        zipfile.ZipFile(bundled("asr_transformer")) as old,
        zipfile.ZipFile(path, "w") as new,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name))
        for name, data in more.items():
            new.writestr(name, data)
    return path


def _damaged(path: Path, _: Path) -> str:
    _rewritten(path, more=b"dear to me")
    path.write_bytes(path.read_bytes().replace(b"dear to me", b"DEAR TO ME"))
    return f"model_tag: {path} cannot be unpacked: Bad CRC-32 for file 'more'"


def _outside(path: Path, _: Path) -> str:
    _rewritten(path, **{"../planted": b"x"})
    return f"model_tag: {path}: '../planted' would be unpacked outside of its folder"


def _text(path: Path, _: Path) -> str:
    path.write_text("no zip")
    return f"model_tag: {path} is not a zip archive: File is not a zip file"


def _no_cache(path: Path, cache: Path) -> str:
    _rewritten(path)
    cache.write_text("")
    return "set XDG_CACHE_HOME to another folder"


CASES = [_damaged, _outside, _text, _no_cache]


def _drop_in(model: Path, data: Path) -> int:
    return asr_inference.main(_options(model, data))


def _decode(model: Path, data: Path) -> int:
    return cli.main(["decode", "--nj", "2", *_options(model, data)])


def _explain(model: Path, data: Path) -> int:
    out = str(data / "out")
    wave = str(data / "utt1.wav")
    return cli.main(["explain", wave, "--model", str(model), "--output_dir", out])


def _options(model: Path, data: Path) -> list[str]:
    return [
        *("--model_tag", str(model), "--search", "simple", "--ctc_weight", "0.3"),
        *("--data_path_and_name_and_type", f"{data}/wav.scp,speech,sound"),
        *("--output_dir", str(data / "out")),
    ]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("tool", [_drop_in, _decode, _explain])
def test_one_line(
    case: Callable[[Path, Path], str],
    tool: Callable[[Path, Path], int],
    wav_scp,
    tmp_path,
    capsys,
    monkeypatch,
):
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    message = case(tmp_path / "model.zip", cache)
    samples, _ = soundfile.read(tmp_path / "utt1.wav")
    soundfile.write(tmp_path / "utt1.wav", samples, 16000)
    with pytest.raises(SystemExit) as stop:
        tool(tmp_path / "model.zip", tmp_path)
    assert stop.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    named = "model" if tool is _explain else "model_tag"  # as the option is called
    assert f": error: {named}: " in last
    assert message.removeprefix("model_tag: ") in last
    assert not list(tmp_path.rglob("planted"))


@pytest.mark.parametrize("case", CASES)
def test_in_python(case, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    message = case(tmp_path / "model.zip", tmp_path / "cache")
    with pytest.raises(OptionError) as e:
        Speech2Text.from_pretrained(str(tmp_path / "model.zip"), search="simple")
    assert message in str(e.value)
