# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # A graph larger than memory
#
# `memory=` is a hard limit for loading and for kernels. The graph stays on disk, and a kernel keeps only its state in
# memory: a few bytes a vertex. The graph here is small, so that the notebook runs in seconds. With `SCALE = 24`, the
# files have about 2 GB.

# %%
import tempfile
import time
from pathlib import Path

import numpy as np

import anden

SCALE = 14
DEGREE = 16
MEMORY = "64M"

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "large.anden"

# %% [markdown]
# ## Make it
#
# Each part of the edges is appended as a snapshot, so no more than one part is in memory.

# %%
generator = np.random.default_rng(1)
with anden.create(path, directed=False, ids="dense", memory=MEMORY) as db:
    for _ in range(4):
        num_edges = (DEGREE << SCALE) // 4
        # Squares of random numbers prefer small ids, which makes degrees differ.
        ends = (generator.random((2, num_edges)) ** 2 * (1 << SCALE)).astype(np.uint32)
        db.append(ends[0], ends[1])
    db.merge()

size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
print(f"{size / 1e6:.1f} MB on disk")

# %% [markdown]
# ## Analyse it under the limit
#
# A kernel that needs more than the limit fails with an error that names both numbers. It never takes more.

# %%
db = anden.open(path, read_only=True, memory=MEMORY)
g = db.view()
print(g)

# %%
for kernel, run in [("components", g.wcc), ("PageRank", g.pagerank), ("coreness", g.kcore)]:
    start = time.perf_counter()
    values = run()
    print(f"{kernel}: {len(values):,} values in {time.perf_counter() - start:.2f} s")

# %% [markdown]
# ## Ask it
#
# A query reads only the lists that it needs.

# %%
hub = int(np.argmax(g.kcore()))
print("vertex", hub, "has", len(g.neighbors(hub)), "neighbors, and", len(g.khop(hub, 2)), "within two steps")
axes = g.plot(hub, hops=1, limit=200)

# %%
tiny = anden.open(path, read_only=True, memory="1K")
try:
    tiny.view().pagerank()
except anden.Error as error:
    print("as expected:", error)
else:
    raise AssertionError("a limit of 1 KiB must be refused")

# %%
tiny.close()
db.close()
folder.cleanup()
