"""Actions as clips: played on the file, control values read frame by frame."""

import numpy as np

from stage import animated_ids, shape_keys


def curves_of(action, slot):
    """F-curves of an action for one slot; of all, in Blender before slots."""
    if not hasattr(action, "layers"):
        return list(action.fcurves)
    found = []
    for layer in action.layers:
        for strip in layer.strips:
            for bag in getattr(strip, "channelbags", ()):
                if slot is None or bag.slot_handle == slot.handle:
                    found += list(bag.fcurves)
    return found


def slots_for(action, block):
    """Slots that fit a data-block; `None` stands for a Blender without slots."""
    if not hasattr(action, "slots"):
        return [None] if action.id_root == block.id_type else []
    return [slot for slot in action.slots if slot.target_id_type in (block.id_type, "UNSPECIFIED")]


def resolves(block, path):
    try:
        block.path_resolve(path)
        return True
    except (ValueError, KeyError):
        return False


def roles(stage, action):
    """Data-blocks of the rig that the action animates, with slot and paths."""
    out = []
    for thing in stage.needed:
        for block in animated_ids(thing):
            was = stage.actions.get(block, (None, None))
            for slot in slots_for(action, block):
                paths = [curve.data_path for curve in curves_of(action, slot)]
                known = [path for path in paths if resolves(block, path)]
                # A plain object's location would fit every object: only its own action moves that.
                specific = thing.type == "ARMATURE" and any(p.startswith("pose.bones[") for p in known)
                specific = specific or any(p.startswith('["') for p in known)
                specific = specific or (shape_keys(thing) == block and known) or was[0] == action
                if known and specific:
                    out.append((block, slot, paths))
                    break
    return out


def play(stage, controls, action, cast):
    """Control values [F, C] of every frame, at the scene's rate."""
    controls.apply(controls.defaults())
    for block, slot, _ in cast:
        data = block.animation_data or block.animation_data_create()
        data.action = action
        if slot is not None:
            data.action_slot = slot
    first, last = (int(round(v)) for v in action.frame_range)
    for armature in controls.bones:
        armature.previous = {}
    frames = []
    for frame in range(first, last + 1):
        stage.scene.frame_set(frame)
        stage.update()
        frames.append(controls.read())
    for block, _, _ in cast:
        block.animation_data.action = None
    controls.apply(controls.defaults())
    stage.update()
    return np.array(frames, np.float64).reshape(len(frames), len(controls.channels))


def rate(stage):
    return stage.scene.render.fps / stage.scene.render.fps_base
