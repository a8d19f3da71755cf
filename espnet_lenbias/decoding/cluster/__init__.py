"""``espnet-lenbias decode``: the utterances shared out over Dask workers."""
