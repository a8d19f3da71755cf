# Sourced by run.sh: the Python to use, with its `espnet-lenbias`, and this recipe's local/.
# It is that of `make install` where there is one.
if [ -z "${PYTHON:-}" ] && [ -x ../../.venv/bin/python ]; then PYTHON=$PWD/../../.venv/bin/python; fi
: "${PYTHON:=python3}"
PATH="$(dirname "$(command -v "$PYTHON" || echo "$PYTHON")"):$PATH"
"$PYTHON" -c 'import espnet_lenbias' || { echo "$PYTHON has no espnet_lenbias: make install at the top of the project, or PYTHON=..." >&2; exit 2; }
export PATH PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONIOENCODING=UTF-8 LC_ALL=C.UTF-8
# One thread a job, as ESPnet's path.sh has it: jobs are what --nj is for.
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
