"""Prints the arcs of a small graph with copies, intervals, lone successors and vertices without arcs."""

import random

NUM_VERTICES = 200

choice = random.Random(50)
lists: list[set[int]] = []
for vertex in range(NUM_VERTICES):
    if vertex % 9 == 4 or vertex >= 195:
        lists.append(set())
        continue
    targets = set()
    if vertex and lists[-1] and choice.random() < 0.7:
        targets |= {target for target in lists[-1] if choice.random() < 0.8}
    if choice.random() < 0.5:
        start = choice.randrange(NUM_VERTICES - 20)
        targets |= set(range(start, start + choice.randrange(3, 18)))
    near = [vertex + int(choice.gauss(0, 30)) for _ in range(choice.randrange(4))]
    targets |= {min(NUM_VERTICES - 1, max(0, target)) for target in near}
    lists.append(targets)
print(NUM_VERTICES)
for vertex, targets in enumerate(lists):
    for target in sorted(targets):
        print(vertex, target)
