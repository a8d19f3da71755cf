"""Drop-in for ``espnet2.bin.st_inference_streaming``.

See :mod:`espnet_lenbias.decoding.drop_in_streaming`.
"""

import sys
from functools import partial

from espnet_lenbias.decoding import drop_in_streaming
from espnet_lenbias.options.espnet_tools import ST_STREAMING

main = partial(drop_in_streaming.main, ST_STREAMING)

if __name__ == "__main__":
    sys.exit(main())
