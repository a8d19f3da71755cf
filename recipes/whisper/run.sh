#!/usr/bin/env bash
# Whisper with the searches of this package: audio in, transcripts and tables out.
#
#     ./run.sh --audio ~/recordings --checkpoint small.en
#     ./run.sh --librispeech /corpora/LibriSpeech --checkpoint small.en --rival openai
#
# Paths count from this folder.
set -euo pipefail
cd "$(dirname "$0")"

stage=1                            # the first to run
stop_stage=5                       # the last; 6: seconds of a clip, too
audio=                             # a folder of audio, with NAME.txt beside NAME.wav where there are transcripts
librispeech=download/LibriSpeech   # without --audio: holds the folders of --sets
sets="test-clean test-other"       # of LibriSpeech
utterances=0                       # only so many of each set of LibriSpeech, evenly spread; 0: all
checkpoint=tiny.en                 # what openai-whisper loads: a name, or a file (.pt)
language=en                        # that is spoken, e.g. de; tiny.en and its like know English alone
task=transcribe                    # or translate, into English
name=                              # of the results below $exp; empty: the checkpoint's
conf=../librispeech/conf           # holds decode_<row>.yaml
rows="simple explicit_length"      # what decodes, e.g. explicit_length:16,64
beams="4 16 64"                    # of rows that name none; empty: those of the decode configs
rival=                             # decode with these too: openai, faster
rival_beams="5 64"
speed_clips=10                     # stage 6: so many clips, evenly spread; 0: all
faster_model=                      # of faster-whisper, a name or a folder; empty: the name of the checkpoint
nj=1                               # processes or jobs that decode, see ../librispeech/cmd.sh
ngpu=0                             # 1: decode on the GPU
batch_size=1                       # utterances decoded together
inference_args=                    # further options of the decoder
data=data
exp=exp

. ../options.sh "$@"
number 0 "" utterances speed_clips
number 0 1 ngpu
number 1 "" nj batch_size
whole_numbers beams rival_beams
words 'openai|faster' "openai or faster" rival
words '[a-z]+' "the code of a language, e.g. de" language
words 'transcribe|translate' "transcribe or translate" task
. ./path.sh
. ../librispeech/cmd.sh
. ../data.sh

if [ -z "$name" ]; then
    name=$(basename "$checkpoint" .pt)
    if [ "$language" != en ]; then name+=_$language; fi
    if [ "$task" != transcribe ]; then name+=_$task; fi
fi
dir=$exp/$name
used=$data
if [ -n "$audio" ]; then
    exists "--audio names it" "$audio"
    [ -d "$audio" ] || fail "--audio $audio: name the folder that holds it"
    sets=$(basename "$(realpath "$audio")")
    sets=${sets//[[:space:]]/_}
elif [ "$utterances" -gt 0 ]; then
    used=${data}_$utterances
    dir+=_$utterances
fi

# What stages read that others make: a missing file is named before any of them runs.
if [ -z "$audio" ] && runs 1; then
    for s in $sets; do exists "give --audio FOLDER, or --librispeech FOLDER that holds it" "$librispeech/$s"; done
fi
if runs 3 || runs 6; then check_rows; fi
needs "3 6" 2 "$dir/model.yaml"
for s in $sets; do needs "3 4 5 6" 1 "$used/$s/wav.scp"; done
for s in $sets; do needs 5 3 "$dir"/*/"$s"/1best_recog/text; done

if runs 1; then
    say "stage 1: data of ${audio:-$librispeech}"
    if [ -n "$audio" ]; then
        audio=$(realpath "$audio")
        check_data_of "$audio" "$data/$sets"
        note_made_of "$audio" "$data/$sets"
        "$PYTHON" -m local.data "$audio" "$data/$sets"
        note_sums "$data/$sets"
    else
        librispeech_data
    fi
fi

if runs 2; then
    say "stage 2: model"
    "$PYTHON" -m local.pack "$checkpoint" "$dir" --language "$language" --task "$task"
    if [ ! -f "$dir/model.yaml" ]; then
        "$PYTHON" ../librispeech/local/model.py "$dir/whisper.zip" "$dir/model.yaml"
    fi
fi

decode() {  # decode <folder of a decode config> <set>: what is not decoded yet
    espnet-lenbias decode "${decode_cmd[@]}" --config "$1/decode.yaml" --ngpu "$ngpu" --batch_size "$batch_size" \
        --data_path_and_name_and_type "$used/$2/wav.scp,speech,sound" --output_dir "$1/$2" $inference_args
}

if runs 3; then
    say "stage 3: decode, logs in $dir/<row>_beam<K>_lm<w>/<set>/decode.log"
    tags=$("$PYTHON" ../librispeech/local/rows.py "$dir/model.yaml" "$dir" --conf "$conf" --rows $rows --beams $beams)
    # shellcheck disable=SC2086  # a word for each row
    decode_rows $tags
fi

rival_options=(--checkpoint "$checkpoint" --language "$language" --task "$task" --ngpu "$ngpu"
    ${faster_model:+--faster_model "$faster_model"})
if runs 4; then
    say "stage 4: rivals: ${rival:-none}"
    for r in $rival; do
        for beam in $rival_beams; do
            for s in $sets; do
                say "$r, beam $beam, $s"
                row=$dir/${r}_beam$beam/$s status=0
                "$PYTHON" -m local.rival "$r" "$used/$s/wav.scp" "$row" --beam_size "$beam" "${rival_options[@]}" || status=$?
                if [ $status -eq 3 ]; then failed_logs+=("$row/failed"); elif [ $status -ne 0 ]; then exit 2; fi
            done
        done
    done
fi

if runs 5; then
    say "stage 5: transcripts, scores, report"
    "$PYTHON" -m local.score "$dir" "$used" --name "$name" --sets $sets --language "$language" --task "$task"
    if [ -d "$dir/references" ]; then
        espnet-lenbias report "$dir/scored/$name" --data "$dir/references" --output_dir "$dir/report"
    elif [ -d "$dir/report" ]; then
        say "$dir/report is of references that are gone"
    fi
fi

if runs 6; then
    say "stage 6: seconds of a clip, by rows and rivals in turns"
    tags=$("$PYTHON" ../librispeech/local/rows.py "$dir/model.yaml" "$dir/speed" --conf "$conf" --rows $rows --beams $rival_beams)
    scps=() configs=()
    for s in $sets; do scps+=("$used/$s/wav.scp"); done
    for tag in $tags; do configs+=("$dir/speed/$tag/decode.yaml"); done
    "$PYTHON" -m local.speed "$dir/whisper.zip" "$dir/speed" --wav_scp "${scps[@]}" --configs "${configs[@]}" \
        --clips "$speed_clips" --rivals $rival --rival_beams $rival_beams "${rival_options[@]}"
fi
finish
