"""The functions of the backend, and the checks before a call.

A function has the name and the parameters of its NetworkX counterpart. NetworkX asks `can_run` and `should_run` with
the arguments of the caller, before it converts the graph.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import networkx as nx

from _anden_nx import SMALLEST_GRAPH

Arguments = dict[str, Any]
#: Looks at the arguments and returns the reason why this backend does not answer, or none.
Refusal = Callable[[Arguments], str | None]
Implementation = TypeVar("Implementation", bound=Callable[..., Any])


class Function:
    """One function of the backend."""

    def __init__(self, call: Callable[..., Any], refusals: tuple[Refusal, ...], is_linear: bool) -> None:
        self.call = call
        #: NetworkX needs about one pass over the edges, as the conversion does.
        self.is_linear = is_linear
        self._refusals = refusals
        self._signature = inspect.signature(call)

    def refusal(self, args: tuple[Any, ...], kwargs: Arguments) -> str | None:
        """The reason why the backend does not take these arguments; none if it does."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            return f"the backend does not take these arguments: {error}"
        bound.apply_defaults()
        reasons = (refuse(bound.arguments) for refuse in self._refusals)
        return next((reason for reason in reasons if reason is not None), None)


FUNCTIONS: dict[str, Function] = {}


def implements(*refusals: Refusal, is_linear: bool = False) -> Callable[[Implementation], Implementation]:
    """Enters a function into the table under its own name."""

    def register(call: Implementation) -> Implementation:
        FUNCTIONS[call.__name__] = Function(call, refusals, is_linear)
        return call

    return register


def only_default(**defaults: Any) -> Refusal:
    """Refuses other values of these parameters."""

    def refuse(arguments: Arguments) -> str | None:
        for name, default in defaults.items():
            if arguments[name] is not default and arguments[name] != default:
                return f"{name} must be {default!r}"
        return None

    return refuse


def undirected(arguments: Arguments) -> str | None:
    """Refuses directed graphs."""
    return "the graph is directed" if arguments["G"].is_directed() else None


def directed(arguments: Arguments) -> str | None:
    """Refuses undirected graphs."""
    return None if arguments["G"].is_directed() else "the graph is undirected"


def simple(arguments: Arguments) -> str | None:
    """Refuses graphs with parallel edges."""
    return "the graph is a multigraph" if arguments["G"].is_multigraph() else None


def named_weight(arguments: Arguments) -> str | None:
    """Refuses a weight that is a function: it would be called in Python for each edge."""
    weight = arguments["weight"]
    return None if weight is None or isinstance(weight, str) else "weight must be the name of an edge attribute"


def can_run(name: str, args: tuple[Any, ...], kwargs: Arguments) -> bool | str:
    """Whether the backend answers this call; else the reason."""
    function = FUNCTIONS.get(name)
    if function is None:
        return f"the backend has no {name}"
    reason = function.refusal(args, kwargs)
    return True if reason is None else reason


def should_run(name: str, args: tuple[Any, ...], kwargs: Arguments) -> bool | str:
    """Whether the backend is faster than NetworkX, the conversion included; else the reason."""
    graph = args[0] if args else kwargs.get("G")
    if not isinstance(graph, nx.Graph) or _is_converted(graph):
        return True
    function = FUNCTIONS.get(name)
    if function is not None and function.is_linear:
        return "the conversion of the graph costs more than this function"
    size, smallest = len(graph) + graph.number_of_edges(), _smallest_graph()
    if size < smallest:
        return f"the graph has {size} nodes and edges, fewer than {smallest}: NetworkX is fast enough"
    return True


def _is_converted(graph: nx.Graph[Any]) -> bool:
    cache = getattr(graph, "__networkx_cache__", None) or {}
    return bool(cache.get("backends", {}).get("anden"))


def _smallest_graph() -> int:
    config = getattr(nx.config.backends, "anden", None)
    return int(getattr(config, "smallest_graph", SMALLEST_GRAPH))
