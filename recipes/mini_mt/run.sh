#!/usr/bin/env bash
# Mini MT: make the corpus, train, pack, compare searches.
set -euo pipefail
cd "$(dirname "$0")"

stage=1             # the first to run
stop_stage=6        # the last
data=data
exp=exp/mt_transformer
stats=exp/mt_stats
tokens=data/tokens
train_config=conf/train_mt.yaml
inference_model=valid.acc.ave.pth
pretrained=pretrained/mt.zip
compared=exp/compare
results=            # where the tables are kept; empty: in results/ those of the whole test set
sentences=0         # of the test set, evenly spread, when searches are compared; 0: all

. ../options.sh "$@"
number 0 "" sentences
. ./path.sh

if [ -e "$results" ] && [ ! -d "$results" ]; then fail "--results $results: it is no folder"; fi

# What stages read that others make: a missing file is named before any of them runs.
needs "2 3 4" 1 "$data"/train/{src_text,text}
needs "3 4" 1 "$data"/dev/{src_text,text}
needs "3 4" 2 "$tokens"/{,src_}tokens.txt
needs 4 3 "$stats"/{train,valid}/{src_text,text}_shape
needs 5 4 "$exp"/{config.yaml,"$inference_model"}
needs 6 1 "$data"/test/{src_text,text}
needs 6 5 "$pretrained"

mt_train() {  # mt_train <options of espnet2.bin.mt_train>
    "$PYTHON" -m espnet2.bin.mt_train --config "$train_config" --ngpu 0 \
        --token_list "$tokens/tokens.txt" --src_token_list "$tokens/src_tokens.txt" \
        --train_data_path_and_name_and_type "$data/train/src_text,src_text,text" \
        --train_data_path_and_name_and_type "$data/train/text,text,text" \
        --valid_data_path_and_name_and_type "$data/dev/src_text,src_text,text" \
        --valid_data_path_and_name_and_type "$data/dev/text,text,text" "$@"
}

if runs 1; then
    say "stage 1: corpus"
    "$PYTHON" -m local.make_corpus --out "$data"
fi

if runs 2; then
    say "stage 2: token lists, of words"
    mkdir -p "$tokens"
    for prefix in "" src_; do
        "$PYTHON" -m espnet2.bin.tokenize_text --token_type word --input "$data/train/${prefix}text" --field 2- \
            --output "$tokens/${prefix}tokens.txt" --write_vocabulary true \
            --add_symbol "<blank>:0" --add_symbol "<unk>:1" --add_symbol "<sos/eos>:-1" 2> "$tokens/${prefix}log"
        wc -l "$tokens/${prefix}tokens.txt"
    done
fi

if runs 3; then
    say "stage 3: lengths"
    mkdir -p "$stats"
    for s in train dev; do cut -d' ' -f1 "$data/$s/text" > "$stats/$s.keys"; done
    mt_train --collect_stats true --output_dir "$stats" --batch_type unsorted --batch_size 200 \
        --train_shape_file "$stats/train.keys" --valid_shape_file "$stats/dev.keys" > "$stats/log" 2>&1
fi

if runs 4; then
    say "stage 4: training, log in $exp/train.log"
    mkdir -p "$exp"
    mt_train --output_dir "$exp" --resume true \
        --train_shape_file "$stats/train/src_text_shape" --train_shape_file "$stats/train/text_shape" \
        --valid_shape_file "$stats/valid/src_text_shape" --valid_shape_file "$stats/valid/text_shape" \
        >> "$exp/train.log" 2>&1
fi

if runs 5; then
    say "stage 5: pack the model"
    "$PYTHON" -m local.pack "$exp/config.yaml" "$exp/$inference_model" "$pretrained"
fi

if runs 6; then
    say "stage 6: compare searches"
    OMP_NUM_THREADS=1 "$PYTHON" compare.py --model "$pretrained" --data "$data/test" --sentences "$sentences" \
        --output_dir "$compared"
    # part of the set does not replace the tables of the whole unless told to
    if [ "$sentences" -eq 0 ]; then results=${results:-results}; fi
    if [ -n "$results" ]; then
        mkdir -p "$results"
        cp "$compared"/comparison.{md,csv} "$results"
    fi
fi
say "done"
