"""Which options make a run another one, and which are for its speed or its place."""

import argparse

import pytest

from espnet_lenbias.options.data_files import DATA
from espnet_lenbias.options.decoding import get_parser
from espnet_lenbias.options.espnet_tools import TOOLS
from espnet_lenbias.options.run_options import run_options

PLACE_AND_SPEED = {"batch_bins", "batch_size", "log_level", "ngpu", "num_workers"}
PLACE_AND_SPEED |= {"config", "output_dir"}
# Utterances and their data are compared one by one; formats are made of the results.
OTHERWISE_COMPARED = {"formats", "key_file", "segments"}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_other_option_counts(tool):
    options = {action.dest for action in get_parser(tool.module)._actions} - {"help"}
    args = argparse.Namespace(**dict.fromkeys(options) | {DATA: []})
    noted = {name for name in run_options(args) if not name.endswith(" version")}
    assert options - noted == PLACE_AND_SPEED | OTHERWISE_COMPARED
