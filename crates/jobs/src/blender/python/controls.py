"""What an animator moves: channels of pose bones, custom properties, shape keys; found, described and set.

A channel is a dictionary of names and numbers that survives being written to a file: `name`, `kind` (`location`,
`rotation`, `scale`, `property`, `shape`), `object`, `bone`, `index`, `low`, `high`, `default`.
"""

import fnmatch
import math

import bpy
import numpy as np
from mathutils import Euler, Quaternion

from stage import drivers_of, find_property, shape_keys

AXES = "xyz"
LABELS = {"location": "translate", "rotation": "rotate", "scale": "scale"}
LIMITS = {"location": "LIMIT_LOCATION", "rotation": "LIMIT_ROTATION", "scale": "LIMIT_SCALE"}
EULER = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")


class Controls:
    """Channels that can be set."""

    def __init__(self, stage, channels):
        self.stage = stage
        self.channels = channels
        self.bones = []
        self.others = []
        for armature in stage.armatures():
            own = [(place, channel) for place, channel in enumerate(channels)
                   if channel["object"] == armature.name and channel["kind"] in LABELS]
            if own:
                self.bones.append(ArmatureChannels(armature, own, stage.metres))
        for place, channel in enumerate(channels):
            if channel["kind"] == "property":
                # Two objects may have bones or data of one name.
                owner = [thing for thing in stage.needed if thing.name == channel["object"]]
                self.others.append((place, *find_property(owner, channel["path"])))
            elif channel["kind"] == "shape":
                thing = bpy.data.objects[channel["object"]]
                self.others.append((place, shape_keys(thing).key_blocks[channel["bone"]], None, thing))

    def apply(self, values):
        """Sets all channels; evaluation is the caller's."""
        for armature in self.bones:
            armature.apply(values)
        for place, holder, name, thing in self.others:
            value = float(values[place])
            if name is None:
                holder.value = value
            elif isinstance(holder[name], (bool, int)):
                holder[name] = type(holder[name])(round(value))
            else:
                holder[name] = value
            thing.update_tag()
            if name is not None and holder.id_data != thing:
                holder.id_data.update_tag()

    def defaults(self):
        return np.array([channel["default"] for channel in self.channels], np.float32)

    def read(self):
        """Values as they stand in the evaluated file, for clips."""
        values = self.defaults()
        for armature in self.bones:
            armature.read(self.stage.evaluated(armature.armature), values)
        for place, holder, name, thing in self.others:
            if name is None:
                keys = shape_keys(self.stage.evaluated(thing))
                values[place] = keys.key_blocks[self.channels[place]["bone"]].value
            else:
                values[place] = float(self.played(place, holder, name, thing))
        return values

    def played(self, place, holder, name, thing):
        """A property as an action leaves it, which the evaluated copy says; meshes lose theirs in evaluation."""
        try:
            return find_property([self.stage.evaluated(thing)], self.channels[place]["path"])[0][name]
        except RuntimeError:
            return holder[name]


class ArmatureChannels:
    """Channels of one armature's pose bones, written and read at once for all its bones."""

    def __init__(self, armature, channels, metres):
        self.armature = armature
        # Centimetres for people, Blender's unit inside.
        self.unit = 0.01 / metres
        bones = armature.pose.bones
        self.count = len(bones)
        self.rest = {}
        for name, width in (("location", 3), ("rotation_euler", 3), ("rotation_quaternion", 4), ("scale", 3)):
            flat = np.empty(self.count * width, np.float32)
            bones.foreach_get(name, flat)
            self.rest[name] = flat.reshape(self.count, width)
        self.location, self.scale, self.turns = [], [], {}
        for place, channel in channels:
            index = bones.find(channel["bone"])
            if index < 0:
                raise RuntimeError(f"the armature '{armature.name}' has no bone '{channel['bone']}'")
            if channel["kind"] == "rotation":
                self.turns.setdefault(index, []).append((place, channel["index"]))
            else:
                target = self.location if channel["kind"] == "location" else self.scale
                target.append((place, index, channel["index"]))
            # The file may have been saved in a pose: what is a control rests at zero.
            if channel["kind"] == "rotation":
                self.rest["rotation_euler"][index] = 0
                self.rest["rotation_quaternion"][index] = (1, 0, 0, 0)
            elif channel["kind"] == "location":
                self.rest["location"][index, channel["index"]] = 0
            else:
                self.rest["scale"][index, channel["index"]] = 1
        for index in self.turns:
            bone = bones[index]
            if bone.rotation_mode == "AXIS_ANGLE":
                bone.rotation_mode = "QUATERNION"
        # The angles of the frame before, so that clips do not jump by full turns.
        self.previous = None
        self.quaternion = {index: bones[index].rotation_mode == "QUATERNION" for index in self.turns}

    def apply(self, values):
        pose = {name: array.copy() for name, array in self.rest.items()}
        for place, index, axis in self.location:
            pose["location"][index, axis] = values[place] * self.unit
        for place, index, axis in self.scale:
            pose["scale"][index, axis] = values[place]
        for index, turns in self.turns.items():
            angles = [0.0, 0.0, 0.0]
            for place, axis in turns:
                angles[axis] = math.radians(float(values[place]))
            if self.quaternion[index]:
                pose["rotation_quaternion"][index] = Euler(angles, "XYZ").to_quaternion()
            else:
                pose["rotation_euler"][index] = angles
        for name, array in pose.items():
            self.armature.pose.bones.foreach_set(name, array.ravel())
        self.armature.update_tag(refresh={"OBJECT", "DATA"})

    def read(self, evaluated, values):
        bones = evaluated.pose.bones
        pose = {}
        for name, array in self.rest.items():
            flat = np.empty(array.size, np.float32)
            bones.foreach_get(name, flat)
            pose[name] = flat.reshape(array.shape)
        for place, index, axis in self.location:
            values[place] = pose["location"][index, axis] / self.unit
        for place, index, axis in self.scale:
            values[place] = pose["scale"][index, axis]
        for index, turns in self.turns.items():
            if self.quaternion[index]:
                turn = Quaternion(pose["rotation_quaternion"][index])
                before = (self.previous or {}).get(index)
                angles = turn.to_euler("XYZ", before) if before else turn.to_euler("XYZ")
                if self.previous is not None:
                    self.previous[index] = angles
            else:
                angles = pose["rotation_euler"][index]
            for place, axis in turns:
                values[place] = math.degrees(angles[axis])


def find(stage, patterns, named):
    """All channels that a user may mean; `patterns` choose among them, `named` are channels of an edited file."""
    channels, switches = [], []
    driven = {(block.as_pointer(), curve.data_path, curve.array_index)
              for thing in stage.needed for block, curve in drivers_of(thing)}
    steering = steering_properties(stage)
    for armature in stage.armatures():
        shaped = any(bone.custom_shape for bone in armature.pose.bones)
        for bone in armature.pose.bones:
            asked = chosen(bone, patterns)
            by_default = bool(bone.custom_shape) if shaped else visible(bone.bone) and not bone.constraints
            is_control = asked if patterns else by_default
            if is_control or any(name.startswith(bone.name + ".") for name in named):
                channels += bone_channels(armature, bone, driven)
    known = set()
    for thing in [*stage.armatures(), *(thing for thing in stage.needed if thing.type != "ARMATURE")]:
        for owner, holder, base in property_holders(thing):
            for name in holder.keys():
                # Data may belong to several objects, and an object's data may have its name.
                marks = {(holder.as_pointer(), name), (thing.name, owner, name)}
                found = property_channel(thing, owner, holder, base, name, driven, steering)
                if found is None or marks & known:
                    continue
                known |= marks
                channel, is_switch = found
                wanted = not patterns or matches(patterns, channel["name"], owner)
                if channel["name"] in named or (wanted and not is_switch):
                    channels.append(channel)
                elif is_switch:
                    switches.append(channel)
    for thing in stage.needed:
        keys = shape_keys(thing)
        for key in (keys.key_blocks if keys and keys.use_relative else ()):
            path = f'key_blocks["{key.name}"].value'
            if key == keys.reference_key or key.mute or (keys.as_pointer(), path, 0) in driven:
                continue
            if not patterns or matches(patterns, key.name, key.name):
                channels.append({"name": f"{thing.name}:{key.name}", "kind": "shape", "object": thing.name,
                                 "bone": key.name, "index": 0, "low": key.slider_min, "high": key.slider_max,
                                 "default": min(max(key.value, key.slider_min), key.slider_max), "from": "slider"})
    seen = {}
    for channel in channels:
        seen[channel["name"]] = seen.get(channel["name"], 0) + 1
    for channel in channels:
        # Two armatures may have bones of one name.
        if seen[channel["name"]] > 1:
            channel["name"] = f"{channel['object']}/{channel['name']}"
    return channels, switches


def chosen(bone, patterns):
    """Whether a pattern means this bone: its name, or `collection:NAME`."""
    collections = [f"collection:{c.name}" for c in getattr(bone.bone, "collections", ())]
    return any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns for text in [bone.name, *collections])


def matches(patterns, name, owner):
    return any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns for text in (name, owner))


def visible(bone):
    collections = list(getattr(bone, "collections", ()))
    return not bone.hide and (not collections or any(c.is_visible for c in collections))


def bone_channels(armature, bone, driven):
    base = f'pose.bones["{bone.name}"]'
    turning = "rotation_quaternion" if bone.rotation_mode == "QUATERNION" else "rotation_euler"
    pointer = armature.as_pointer()
    out = []
    for kind, locks in (("location", bone.lock_location), ("rotation", bone.lock_rotation), ("scale", bone.lock_scale)):
        path = f"{base}.{turning if kind == 'rotation' else kind}"
        any_driven = any((pointer, path, index) in driven for index in range(4))
        for index, axis in enumerate(AXES):
            connected = kind == "location" and bone.bone.use_connect and bone.parent
            taken = any_driven if turning.endswith("quaternion") and kind == "rotation" else (pointer, path, index) in driven
            if locks[index] or connected or taken:
                continue
            low, high = limits(bone, kind, index)
            out.append({"name": f"{bone.name}.{LABELS[kind]}_{axis}", "kind": kind, "object": armature.name,
                        "bone": bone.name, "index": index, "low": low, "high": high,
                        "default": 1.0 if kind == "scale" else 0.0, "from": "limit" if low is not None else ""})
    return out


def limits(bone, kind, index):
    """The range that a limit constraint in the bone's own space gives; degrees, centimetres or factors."""
    axis = AXES[index]
    for constraint in bone.constraints:
        if constraint.type != LIMITS[kind] or constraint.mute or constraint.owner_space != "LOCAL":
            continue
        if kind == "rotation" and getattr(constraint, f"use_limit_{axis}"):
            return math.degrees(getattr(constraint, f"min_{axis}")), math.degrees(getattr(constraint, f"max_{axis}"))
        if kind != "rotation" and getattr(constraint, f"use_min_{axis}") and getattr(constraint, f"use_max_{axis}"):
            # Blender's unit; the survey turns lengths into centimetres.
            return getattr(constraint, f"min_{axis}"), getattr(constraint, f"max_{axis}")
    return None, None


def steering_properties(stage):
    """Properties that drive the influence of constraints, or switch something: they choose a mechanism and are held."""
    out = set()
    for thing in stage.needed:
        for _, curve in drivers_of(thing):
            if ".constraints[" in curve.data_path or curve.data_path.endswith((".mute", ".hide", ".enabled")):
                for variable in curve.driver.variables:
                    out |= {target.data_path for target in variable.targets if target.data_path}
    return out


def property_holders(thing):
    """What of an object may have custom properties: pose bones, itself, its data."""
    bones = thing.pose.bones if thing.type == "ARMATURE" else ()
    holders = [(bone.name, bone, f'pose.bones["{bone.name}"]') for bone in bones]
    return holders + [(thing.name, block, "") for block in (thing, thing.data) if block]


def property_channel(thing, owner, holder, base, name, driven, steering):
    """A custom property as a channel, and whether it is a switch. `None` for what is no number or not the animator's."""
    value = holder[name]
    path = f'{base}["{name}"]'
    if not isinstance(value, (int, float)) or name.startswith("_") or name.startswith(("rigify", "rig_ui", "cycles")):
        return None
    if (holder.id_data.as_pointer(), path, 0) in driven:
        return None
    try:
        shown = holder.id_properties_ui(name).as_dict()
    except TypeError:
        shown = {}
    low = shown.get("soft_min", shown.get("min", 0))
    high = shown.get("soft_max", shown.get("max", 1))
    if isinstance(value, bool):
        low, high = 0, 1
    # Properties that nobody gave a range have Blender's widest.
    if not (math.isfinite(low) and math.isfinite(high)) or high - low > 1e4 or low >= high:
        low, high = min(0.0, float(value)), max(1.0, float(value))
    channel = {"name": f'{owner}["{name}"]', "kind": "property", "object": thing.name, "bone": owner, "index": 0,
               "path": f'{owner}["{name}"]', "low": float(low), "high": float(high),
               "default": min(max(float(value), float(low)), float(high)), "from": "property"}
    is_switch = isinstance(value, int) or path in steering
    return channel, is_switch
