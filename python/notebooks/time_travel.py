# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Time travel over Debian's packages
#
# A database keeps snapshots. A view shows any of them, and a window shows what some of them added. The data are the
# dependencies of Debian 12 at its release, and the updates since then. They lie in the folder `demo` of the repository.

# %%
from pathlib import Path

import numpy as np

import anden

demo = next(
    folder / "demo" for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "demo/debian_graph.py").exists()
)
data = str(demo / "debian-bookworm")

# %% [markdown]
# ## Two snapshots

# %%
db = anden.load(None, f"{data}.csv.xz", vertices=f"{data}-packages.csv.xz", ids="string", name="release")
db.append_files(
    f"{data}-updates.csv.xz",
    vertices=f"{data}-updates-packages.csv.xz",
    remove=f"{data}-updates-gone.txt.xz",
    name="updates",
)
for snapshot in db.snapshots():
    print(snapshot.number, snapshot.name, snapshot.vertices, "packages,", snapshot.edges, "dependencies")

# %%
axes = db.plot_history()

# %% [markdown]
# ## Then and now

# %%
before, after = db.view(snapshot="release"), db.view(snapshot="updates")
for name, view in [("release", before), ("updates", after)]:
    print(name, "the kernel package asks for", view.neighbors("linux-image-amd64"))

# %% [markdown]
# ## What has changed

# %%
diff = db.diff("release", "updates")
print(diff.num_added, "dependencies are new,", diff.num_removed, "are gone")
added = db.view(window=("updates", "updates"))
print("the window shows the new ones:", added.num_edges)

# %% [markdown]
# ## Which packages gained importance?

# %%
ranks_before, ranks_after = before.pagerank(), after.pagerank()
keys = after.keys()
change = ranks_after[: len(ranks_before)] / np.maximum(ranks_before, 1e-12)
is_important = ranks_after[: len(ranks_before)] > 1e-5
winners = np.flatnonzero(is_important)[np.argsort(change[is_important])[::-1][:5]]
for vertex in winners:
    print(f"{keys[vertex]}: {change[vertex]:.2f} times its rank at the release")

# %%
axes = after.plot_degrees(direction="in")
axes.set_title("How many packages ask for a package")

# %%
result = after.pagerank(details=True)
print(result)
axes = result.plot()

# %%
axes = after.plot("cowsay", hops=1, color=ranks_after)
