# Sourced by the path.sh of a recipe: the Python to use, $PYTHON. Without one it is that of
# `make install` where there is one.
if [ -z "${PYTHON:-}" ] && [ -x ../../.venv/bin/python ]; then PYTHON=$PWD/../../.venv/bin/python; fi
: "${PYTHON:=python3}"
error=$("$PYTHON" -c 'import espnet_lenbias' 2>&1) || {
    # of a traceback the last line alone
    echo "$PYTHON has no espnet_lenbias (${error##*$'\n'}): make install at the top of the project, or PYTHON=..." >&2
    exit 2
}
