# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Coming from NetworkX
#
# Ten tasks, first in NetworkX and then in Anden. NetworkX's results are dictionaries by node; Anden's are NumPy arrays
# by vertex id, and `g.keys()` has the keys in the same order.

# %%
import networkx as nx
import numpy as np

import anden

# %% [markdown]
# ## 1. Make a graph

# %%
G = nx.karate_club_graph()
db = anden.from_networkx(G)
g = db.view()
print(G.number_of_nodes(), G.number_of_edges())
print(g.num_vertices, g.num_edges)
assert (len(G), G.number_of_edges()) == (len(g), g.num_edges)

# %% [markdown]
# ## 2. Neighbors and degree

# %%
print(sorted(G[0]), G.degree(0))
print(sorted(g[0]), g.degree(0))
assert sorted(G[0]) == sorted(g[0])

# %% [markdown]
# ## 3. Is there an edge?

# %%
assert G.has_edge(0, 33) == g.has_edge(0, 33)
assert (99 in G) == (99 in g)

# %% [markdown]
# ## 4. PageRank
#
# NetworkX compares changes with the tolerance times the number of vertices. Anden's tolerance is the sum of the
# changes.

# %%
theirs = nx.pagerank(G, tol=1e-10, weight=None)
ours = g.pagerank(tolerance=1e-9)
assert np.allclose([theirs[key] for key in g.keys().tolist()], ours, atol=1e-7)
print(g.pagerank(details=True).top(3))

# %% [markdown]
# ## 5. Components

# %%
print(nx.number_connected_components(G), len(np.unique(g.wcc())))

# %% [markdown]
# ## 6. Shortest paths

# %%
lengths = nx.single_source_shortest_path_length(G, 0)
hops = g.bfs(0)
assert all(lengths[key] == hops[g.id(key)] for key in G)
print(nx.shortest_path(G, 16, 26), g.path(16, 26))
assert len(nx.shortest_path(G, 16, 26)) == len(g.path(16, 26))

# %% [markdown]
# ## 7. Triangles and cores

# %%
assert sum(nx.triangles(G).values()) // 3 == g.triangles()
assert list(nx.core_number(G).values()) == g.kcore().tolist()

# %% [markdown]
# ## 8. Betweenness
#
# NetworkX divides by the number of pairs. Anden gives the plain sums over all sources, which count each pair twice.

# %%
betweenness = nx.betweenness_centrality(G, normalized=False)
assert np.allclose(list(betweenness.values()), g.bc("all") / 2)

# %% [markdown]
# ## 9. Change the graph
#
# A transaction is atomic, and the view from before stays as it is.

# %%
G.add_edge(0, 99)
with db.transaction() as tx:
    tx.add_edge(0, 99, weight=1)
print(99 in G, 99 in g, 99 in db.view())
assert 99 not in g and 99 in db.view()

# %% [markdown]
# ## 10. Keep NetworkX, and let Anden compute
#
# With `backend="anden"`, NetworkX's functions run on Anden and give NetworkX's results. The converted graph is kept
# with `G`. `nx.config.backend_priority = ["anden"]` does so for all calls.

# %%
assert list(nx.betweenness_centrality(G, backend="anden")) == list(G)
assert np.allclose(list(nx.clustering(G, backend="anden").values()), list(nx.clustering(G).values()))
print(nx.diameter(G, backend="anden"))

# %%
axes = g.plot(color=g.cdlp(), size=g.pagerank(), labels=True)
