"""When each word begins in what a speech engine says, as the engine itself tells.

The engines' libraries are asked, which the programs `espeak-ng` and `flite` that made the
corpus are made of: given the same options they give the same samples. They keep something
of what they have said before, so each utterance is said in a process of its own.
"""

import ctypes
import multiprocessing
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from local.voices import Speaker, engine_rate, trim

# Of espeak-ng's speak_lib.h: samples are handed to a callback; what the program
# `espeak-ng` asks for; how positions in the text are counted; parameters; events.
_SYNCHRONOUS = 2
_AS_THE_PROGRAM = 0x0 | 0x100 | 0x1000  # CHARS_AUTO, PHONEMES, ENDPAUSE
_BY_CHARACTER = 1
_RATE, _PITCH = 1, 3
_END_OF_LIST, _WORD = 0, 1

# Of flite; it keeps the address of a name, not the name, so these must stay.
_FEATURES = (b"duration_stretch", b"int_f0_target_mean")


@dataclass(frozen=True)
class Spoken:
    """What an engine has said."""

    wave: np.ndarray  # (samples,), int16
    rate: int  # samples a second
    starts: list  # of each word of the text, s; None: the engine does not say


class _Event(ctypes.Structure):
    """`espeak_EVENT` of speak_lib.h."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_char * 8),
    ]


class _WantedVoice(ctypes.Structure):
    """`espeak_VOICE` of speak_lib.h."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("languages", ctypes.c_char_p),
        ("identifier", ctypes.c_char_p),
        ("gender", ctypes.c_ubyte),
        ("age", ctypes.c_ubyte),
        ("variant", ctypes.c_ubyte),
        ("xx1", ctypes.c_ubyte),
        ("score", ctypes.c_int),
        ("spare", ctypes.c_void_p),
    ]


class _Wave(ctypes.Structure):
    """`cst_wave` of flite's cst_wave.h."""

    _fields_ = [
        ("type", ctypes.c_char_p),
        ("sample_rate", ctypes.c_int),
        ("num_samples", ctypes.c_int),
        ("num_channels", ctypes.c_int),
        ("samples", ctypes.POINTER(ctypes.c_short)),
    ]


class _Voice(ctypes.Structure):
    """The beginning of `cst_voice` of flite's cst_voice.h."""

    _fields_ = [("name", ctypes.c_char_p), ("features", ctypes.c_void_p)]


# flite's functions: what each returns, and what it takes.
_POINTER, _TEXT = ctypes.c_void_p, ctypes.c_char_p
_FUNCTIONS = {
    "flite_feat_set_float": (None, _POINTER, _TEXT, ctypes.c_float),
    "flite_synth_text": (_POINTER, _TEXT, ctypes.POINTER(_Voice)),
    "utt_wave": (ctypes.POINTER(_Wave), _POINTER),
    "utt_relation": (_POINTER, _POINTER, _TEXT),
    "relation_head": (_POINTER, _POINTER),
    "item_next": (_POINTER, _POINTER),
    "flite_ffeature_string": (_TEXT, _POINTER, _TEXT),
    "flite_ffeature_float": (ctypes.c_float, _POINTER, _TEXT),
    "delete_utterance": (None, _POINTER),
}


def word_starts(said: Sequence[tuple[Speaker, str]]) -> list:
    """Return when each word of texts begins in the audio of the corpus.

    Args:
        said: Who says what; texts are as in the transcripts.

    Returns:
        For each text the seconds of its words, or None of a word whose beginning the
        engine does not say, as it speaks it together with the one before.
    """
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        return pool.starmap(_starts, said, chunksize=1)


def say(speaker: Speaker, text: str) -> Spoken:
    """Return what a speaker's engine says; call it in a process that has said nothing."""
    one = _say_flite if speaker.engine == "flite" else _say_espeak
    return one(speaker, text.lower())


def _starts(speaker: Speaker, text: str) -> list:
    spoken = say(speaker, text)
    _, cut = trim(spoken.wave / np.float32(2**15), spoken.rate, speaker.tract)
    return [
        None if start is None else start * speaker.tract - cut
        for start in spoken.starts
    ]


def _say_espeak(speaker: Speaker, text: str) -> Spoken:
    library, rate = _espeak()
    samples, events = [], []

    @ctypes.CFUNCTYPE(
        ctypes.c_int,
        ctypes.POINTER(ctypes.c_short),
        ctypes.c_int,
        ctypes.POINTER(_Event),
    )
    def take(wave, n_samples, event):
        if wave and n_samples:
            samples.append(np.ctypeslib.as_array(wave, (n_samples,)).copy())
        for i in range(10**6):
            if event[i].type == _END_OF_LIST:
                return 0
            if event[i].type == _WORD:
                events.append((event[i].text_position, event[i].sample))
        return 0

    library.espeak_SetSynthCallback(take)
    name = speaker.voice.encode()
    if library.espeak_SetVoiceByName(name):  # the program goes on as follows, too
        wanted = _WantedVoice(languages=name)
        if library.espeak_SetVoiceByProperties(ctypes.byref(wanted)):
            raise RuntimeError(f"espeak-ng has no voice {speaker.voice}")
    library.espeak_SetParameter(_RATE, engine_rate(speaker), 0)
    library.espeak_SetParameter(_PITCH, int(speaker.pitch), 0)
    data = text.encode()
    library.espeak_Synth(
        data, len(data) + 1, 0, _BY_CHARACTER, 0, _AS_THE_PROGRAM, None, None
    )
    at = dict(reversed(events))  # the first event of a position counts
    starts, position = [], 1
    for word in text.split():
        sample = at.get(position)
        starts.append(None if sample is None else sample / rate)
        position += len(word) + 1
    return Spoken(np.concatenate(samples), rate, starts)


def _espeak():
    library = ctypes.CDLL("libespeak-ng.so.1")
    rate = library.espeak_Initialize(_SYNCHRONOUS, 0, None, 0)
    if rate <= 0:
        raise RuntimeError("espeak-ng cannot be initialised: is espeak-ng-data there?")
    return library, rate


def _say_flite(speaker: Speaker, text: str) -> Spoken:
    library, voice = _flite(speaker.voice)
    for name, value in zip(_FEATURES, (engine_rate(speaker), speaker.pitch)):
        library.flite_feat_set_float(voice.contents.features, name, value)
    utterance = library.flite_synth_text(text.encode(), voice)
    wave = library.utt_wave(utterance).contents
    samples = np.ctypeslib.as_array(wave.samples, (wave.num_samples,)).copy()
    words, ends = [], []
    item = library.relation_head(library.utt_relation(utterance, b"Word"))
    before = b"R:SylStructure.daughter1.daughter1.R:Segment.p.end"
    while item:
        words.append(library.flite_ffeature_string(item, b"name").decode())
        ends.append(library.flite_ffeature_float(item, before))
        item = library.item_next(item)
    asked = text.split()
    starts = ends if words == asked else [None] * len(asked)  # it may read one as two
    spoken = Spoken(samples, wave.sample_rate, starts)
    library.delete_utterance(utterance)
    return spoken


def _flite(name):
    for library in ("flite", "flite_usenglish", "flite_cmulex"):
        ctypes.CDLL(f"lib{library}.so.1", mode=ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL("libflite.so.1")
    for function, (result, *arguments) in _FUNCTIONS.items():
        getattr(library, function).restype = result
        getattr(library, function).argtypes = arguments
    library.flite_init()
    voices = ctypes.CDLL(f"libflite_cmu_us_{name}.so.1")
    register = getattr(voices, f"register_cmu_us_{name}")
    register.restype = ctypes.POINTER(_Voice)
    return library, register(None)
