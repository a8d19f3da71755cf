# Sourced by run.sh of recipes that decode data sets, behind options.sh and its options.
renew() {  # renew <new file> <file>: what has not changed keeps its date, which decoding goes by
    if cmp -s "$1" "$2"; then rm "$1"; else mkdir -p "$(dirname "$2")"; mv "$1" "$2"; fi
}

take() {  # take <count> <set>: so many utterances of a set in $data, evenly spread, into $used
    local n=$1 set=$2 f
    mkdir -p "$used/$set"
    for f in wav.scp text utt2spk spk2utt; do
        if [ $f = spk2utt ]; then
            awk '{ utts[$2] = utts[$2] " " $1 } END { for (s in utts) print s utts[s] }' "$used/$set/utt2spk" | sort
        else
            awk -v n="$n" '{ line[NR] = $0 }
                END { if (n > NR) n = NR; for (i = 0; i < n; i++) print line[int(i * NR / n) + 1] }' "$data/$set/$f"
        fi > "$used/$set/.new"
        renew "$used/$set/.new" "$used/$set/$f"
    done
    say "$set: only $(wc -l < "$used/$set/text") of its $(wc -l < "$data/$set/text") utterances, evenly spread, in $used"
}

librispeech_data() {  # librispeech_data: the sets of $librispeech in $data, and $utterances of each in $used
    local s f
    rm -rf "$data/.new"
    # shellcheck disable=SC2154  # variables of run.sh
    "$PYTHON" ../mini_librispeech/local/data_prep.py "$(realpath -m "$librispeech")" "$data/.new" $sets
    for s in $sets; do
        for f in wav.scp text utt2spk spk2utt; do renew "$data/.new/$s/$f" "$data/$s/$f"; done
        # shellcheck disable=SC2154
        if [ "$utterances" -gt 0 ]; then take "$utterances" "$s"; fi
    done
    rm -r "$data/.new"
}

check_rows() {  # check_rows: that there are decode configs of the $rows, before anything runs
    local row
    words '[a-z0-9_]+(:[1-9][0-9]*(,[1-9][0-9]*)*)?' "a row, or a row with beams such as simple:64,5000" rows
    # shellcheck disable=SC2154  # variables of run.sh
    for row in $rows; do exists "--rows names it" "$conf/decode_${row%%:*}.yaml"; done
}

decode_rows() {  # decode_rows <row>...: all sets by each row, as `decode <folder> <set>` of run.sh does; what has failed is named
    local tag s status failed=
    for tag in "$@"; do
        # shellcheck disable=SC2154  # variables of run.sh
        for s in $sets; do
            say "$tag, $s"
            status=0
            # shellcheck disable=SC2154
            decode "$dir/$tag" "$s" || status=$?
            if [ $status -eq 0 ]; then continue; fi
            tail -n 5 "$dir/$tag/$s/decode.log" >&2
            # 1 with results: some utterances alone have failed
            if [ $status -ne 1 ] || [ ! -f "$dir/$tag/$s/1best_recog/text" ]; then exit $status; fi
            failed+=" $tag/$s"
        done
    done
    if [ -n "$failed" ]; then
        echo "run.sh: not all utterances are decoded:$failed. The same command tries them again; --stage 4 takes them as empty." >&2
        exit 1
    fi
}
