"""What moves vertices, as seen from below: deform bones, segments of bendy bones, bones and objects of hooks, cages and
lattices, values of driven shape keys. Found by following modifiers; read as world transforms.

A value becomes a bone that slides along x by ten centimetres per unit, so that whoever learns needs no other concept.
"""

import bpy
import numpy as np

from stage import drivers_of, pointers, shape_keys

# Metres per unit of a value.
SLIDE = 0.1


class Inputs:
    """Inputs of a list of dictionaries: `kind` (`bone`, `segment`, `object`, `shape`, `value`), `name`, `object`,
    `bone`, `index`."""

    def __init__(self, stage, rows):
        self.stage, self.rows = stage, rows
        self.armatures = {}
        for place, row in enumerate(rows):
            if row["kind"] in ("bone", "segment"):
                armature = bpy.data.objects[row["object"]]
                index = armature.pose.bones.find(row["bone"])
                if index < 0:
                    raise RuntimeError(f"the armature '{armature.name}' has no bone '{row['bone']}'")
                own = self.armatures.setdefault(row["object"], (armature, [], []))
                (own[1] if row["kind"] == "bone" else own[2]).append((place, index, row["index"]))

    def __len__(self):
        return len(self.rows)

    def read(self):
        """World transforms [B, 3, 4], metres."""
        out = np.zeros((len(self.rows), 4, 4))
        out[:] = np.eye(4)
        for armature, bones, segments in self.armatures.values():
            evaluated = self.stage.evaluated(armature)
            pose = evaluated.pose.bones
            flat = np.empty(16 * len(pose), np.float32)
            pose.foreach_get("matrix", flat)
            # Columns come first.
            matrices = flat.reshape(-1, 4, 4).transpose(0, 2, 1).astype(np.float64)
            world = np.array(evaluated.matrix_world, np.float64)
            if bones:
                places, indices = [b[0] for b in bones], [b[1] for b in bones]
                out[places] = world @ matrices[indices]
            for place, index, joint in segments:
                joint = np.array(pose[index].bbone_segment_matrix(joint, rest=False), np.float64)
                out[place] = world @ matrices[index] @ joint
        for place, row in enumerate(self.rows):
            if row["kind"] == "object":
                out[place] = np.array(self.stage.evaluated(bpy.data.objects[row["object"]]).matrix_world)
            elif row["kind"] == "shape":
                keys = shape_keys(self.stage.evaluated(bpy.data.objects[row["object"]]))
                out[place, 0, 3] = keys.key_blocks[row["bone"]].value * SLIDE / self.stage.metres
            elif row["kind"] == "value":
                thing = self.stage.evaluated(bpy.data.objects[row["object"]])
                out[place, 0, 3] = float(thing.path_resolve(row["bone"])) * SLIDE / self.stage.metres
        out[:, :3, 3] *= self.stage.metres
        return out[:, :3, :]


def find(stage):
    """All candidates for the chosen meshes; the survey drops those that never move."""
    rows, seen, queue, done = [], set(), list(stage.objects), []

    def add(kind, name, thing, bone="", index=0):
        key = (kind, thing.name, bone, index)
        if key not in seen:
            seen.add(key)
            rows.append({"kind": kind, "name": name, "object": thing.name, "bone": bone, "index": index})

    def add_bone(armature, name):
        bone = armature.data.bones.get(name)
        if bone is None:
            return
        add("bone", name, armature, name)
        count = bone.bbone_segments
        if count > 1:
            # Both ends and the middle of the curve: it is a cubic, and the others lie between.
            for joint in sorted({0, count // 2, count}):
                add("segment", f"{name}#{joint}", armature, name, joint)

    while queue:
        thing = queue.pop(0)
        if thing in done:
            continue
        done.append(thing)
        if thing.type == "ARMATURE":
            continue
        groups = weighted_groups(thing)
        modifiers = [m for m in thing.modifiers if m.show_viewport]
        if thing.parent and thing.parent_type in ("ARMATURE", "LATTICE", "CURVE"):
            targets = [(thing.parent, "", thing.parent_type)]
        else:
            targets = []
        targets += [(other, bone, m.type) for m in modifiers for other, bone in pointers(m)]
        for other, bone, kind in targets:
            if other.type == "ARMATURE" and kind == "ARMATURE":
                for deform in other.data.bones:
                    if deform.use_deform and (groups is None or deform.name in groups):
                        add_bone(other, deform.name)
            elif other.type == "ARMATURE":
                if bone:
                    add_bone(other, bone)
                else:
                    add("object", f"object:{other.name}", other)
            else:
                add("object", f"object:{other.name}", other)
                queue.append(other)
        carriers(thing, add_bone, add, queue)
        for block, curve in drivers_of(thing):
            keys = shape_keys(thing)
            if keys and block == keys and curve.data_path.startswith('key_blocks["') and curve.data_path.endswith('"].value'):
                name = curve.data_path[len('key_blocks["'):-len('"].value')]
                if name in keys.key_blocks and not keys.key_blocks[name].mute:
                    add("shape", f"shape:{thing.name}/{name}", thing, name)
            elif block == thing and curve.data_path.startswith("modifiers["):
                add("value", f"value:{thing.name}/{curve.data_path}", thing, curve.data_path)
    return rows


def guides(stage, channels, inputs):
    """Bones that move no vertex, but in whose frame others move simply: those with a channel that is sampled, and the goals
    and poles of IK chains. What an animator takes hold of is a plain function of few controls, and a hand is still in
    the frame of what it reaches for; found by watching the hand alone, it would be a function of forty."""
    known = {(row["object"], row["bone"]) for row in inputs if row["kind"] == "bone"}
    rows = []

    def add(armature, name):
        key = (armature.name, name)
        if name in armature.pose.bones and key not in known:
            known.add(key)
            rows.append({"kind": "bone", "name": name, "object": armature.name, "bone": name, "index": 0})

    for channel in channels:
        if channel["kind"] in ("location", "rotation", "scale"):
            add(bpy.data.objects[channel["object"]], channel["bone"])
    for armature in stage.armatures():
        for bone in armature.pose.bones:
            for constraint in bone.constraints:
                if constraint.type != "IK" or constraint.mute:
                    continue
                for target, name in ((constraint.target, constraint.subtarget),
                                     (constraint.pole_target, constraint.pole_subtarget)):
                    if target is not None and target.type == "ARMATURE":
                        add(target, name)
    return rows


def carriers(thing, add_bone, add, queue):
    """What carries a whole object: its parent, and its constraints' targets through its own place."""
    if thing.parent and thing.parent_type == "BONE" and thing.parent.type == "ARMATURE":
        add_bone(thing.parent, thing.parent_bone)
    elif thing.parent and thing.parent.type != "ARMATURE":
        add("object", f"object:{thing.parent.name}", thing.parent)
        queue.append(thing.parent)
    if thing.constraints or thing.parent:
        add("object", f"object:{thing.name}", thing)


def weighted_groups(thing):
    """Names of the vertex groups with weight on a mesh or lattice; `None` where envelopes may reach it."""
    names = [group.name for group in thing.vertex_groups]
    used = set()
    points = getattr(thing.data, "vertices", None)
    if points is None:
        points = getattr(thing.data, "points", ())
    for point in points:
        for entry in getattr(point, "groups", ()):
            if entry.weight > 0 and entry.group < len(names):
                used.add(names[entry.group])
    envelopes = any(m.type == "ARMATURE" and m.use_bone_envelopes for m in thing.modifiers)
    return None if envelopes else used
