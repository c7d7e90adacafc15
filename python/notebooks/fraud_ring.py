# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # A fraud ring in streaming payments
#
# Payments arrive with an amount and a time. While a thread commits them, this notebook asks questions: each view shows
# the graph at one moment, and later commits do not change it. A filtered view then finds a ring: accounts that pass
# large sums round within a short time.

# %%
import threading

import numpy as np

import anden

NUM_ACCOUNTS = 400
NUM_PAYMENTS = 4_000
RING = [f"shell{number}" for number in range(5)]

db = anden.create(None, ids="string", multigraph=True, edge_properties=True)

# %% [markdown]
# ## Payments arrive
#
# The time is in seconds. Between the ordinary payments, the ring sends 9,000 from one account to the next.

# %%
generator = np.random.default_rng(7)
pairs = generator.integers(0, NUM_ACCOUNTS, (NUM_PAYMENTS, 2))
amounts = np.round(generator.lognormal(4, 1, NUM_PAYMENTS), 2)


def payments():
    """Batches of payments: source, target, amount, time."""
    batch = []
    for time, ((source, target), amount) in enumerate(zip(pairs.tolist(), amounts.tolist(), strict=True)):
        batch.append((f"account{source}", f"account{target}", amount, time))
        if time % 400 == 399:
            step = time // 400
            batch.append((RING[step % 5], RING[(step + 1) % 5], 9_000.0, time))
            batch.append((f"account{step}", RING[step % 5], 20.0, time))
            yield batch
            batch = []


def stream():
    for batch in payments():
        with db.transaction() as tx:
            for source, target, amount, time in batch:
                tx.add_edge(source, target, amount=amount, time=time)


writer = threading.Thread(target=stream)
writer.start()

# %% [markdown]
# ## Questions while payments arrive
#
# Each round takes a new view. Its answers agree with each other, whatever is committed meanwhile.

# %%
rounds = 0
while True:
    is_running = writer.is_alive()
    g = db.view()
    if g.num_edges:
        components = len(np.unique(g.wcc()))
        rounds += 1
    if not is_running:
        break
writer.join()
print(f"{rounds} rounds of questions; at the end {g.num_edges:,} payments")
assert g.num_edges == NUM_PAYMENTS + 20

# %% [markdown]
# ## A view of large recent payments
#
# The filter is a predicate over the properties. The result is a view as any other: kernels, queries and exports run on
# it.

# %%
large = g.filter(edges="amount > 5000 AND time >= 1000")
components = large.scc()
names, sizes = np.unique(components, return_counts=True)
ring = sorted(key for key, name in zip(g.keys(), components, strict=True) if name == names[sizes.argmax()])
print(f"{large.num_edges} large payments; a ring of {len(ring)} accounts: {', '.join(ring)}")
assert ring == RING

# %% [markdown]
# ## How money enters the ring

# %%
for account in ring:
    sources = [key for key in g.neighbors(account, direction="in") if key not in ring]
    print(account, "is paid by", ", ".join(sources))

# %%
colors = {key: int(key in ring) for key in g}
axes = g.plot(ring, hops=1, color=colors, size={key: 1 + 2 * colors[key] for key in g}, labels=True)
