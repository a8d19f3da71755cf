# Sourced by the path.sh of a recipe: the Python to use, $PYTHON. Without one it is that of
# `make install` where there is one.
if [ -z "${PYTHON:-}" ] && [ -x ../../.venv/bin/python ]; then PYTHON=$PWD/../../.venv/bin/python; fi
: "${PYTHON:=python3}"
"$PYTHON" -c 'import espnet_lenbias' || {
    echo "$PYTHON has no espnet_lenbias: make install at the top of the project, or PYTHON=..." >&2
    exit 2
}
