"""The tree of inputs from motion. Mechanism bones stand between deform bones in Blender's own hierarchy, so that it
says little; but the head of a bone stands still in the frame of its parent, and in no other."""

import numpy as np

# Centimetres of distance at rest that weigh as much as a thousandth of them in motion: the nearer of two parents.
NEARNESS = 1e-3
CANDIDATES = 40


def parents(poses, rest, is_bone):
    """A parent per input or -1, from transforms [P, B, 3, 4] in metres. Values (no bones) have none.

    cost(i | j) is how far the head of i strays in the frame of j over the poses, plus a little for the distance at
    rest; from a root the cheapest bone joins the tree again and again (Prim), and the cheapest of several roots wins.
    """
    count = poses.shape[1]
    out = np.full(count, -1)
    bones = np.flatnonzero(is_bone)
    if len(bones) < 2:
        return out
    heads = poses[:, bones][..., 3]
    cost = np.empty((len(bones), len(bones)))
    for place, bone in enumerate(bones):
        turns, at = poses[:, bone, :, :3], poses[:, bone, :, 3]
        inverse = np.linalg.pinv(turns)
        local = np.einsum("pij,pbj->pbi", inverse, heads - at[:, None, :])
        cost[:, place] = np.sqrt(local.var(0).sum(-1))
    at_rest = rest[bones][..., 3]
    far = np.linalg.norm(at_rest[:, None] - at_rest[None], axis=-1)
    cost = cost + NEARNESS * far
    np.fill_diagonal(cost, np.inf)
    finite = np.where(np.isfinite(cost), cost, 0)
    roots = np.argsort(finite.sum(0))[:CANDIDATES]
    best = None
    for root in roots:
        total, tree = grow(cost, root)
        if best is None or total < best[0]:
            best = (total, tree)
    for place, parent in enumerate(best[1]):
        out[bones[place]] = bones[parent] if parent >= 0 else -1
    return out


def grow(cost, root):
    """Prim's tree over cost[child, parent] from one root."""
    count = len(cost)
    parent = np.full(count, root)
    parent[root] = -1
    price = cost[:, root].copy()
    waiting = np.ones(count, bool)
    waiting[root] = False
    total = 0.0
    for _ in range(count - 1):
        child = int(np.argmin(np.where(waiting, price, np.inf)))
        total += price[child]
        waiting[child] = False
        better = waiting & (cost[:, child] < price)
        price[better] = cost[better, child]
        parent[better] = child
    return total, parent
