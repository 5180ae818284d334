"""A Blender file made ready for being posed: opened, its own animation taken off, everything that the chosen meshes
depend on linked and visible, the rest hidden; and its evaluated vertices."""

import sys

import bpy
import numpy as np

# Modifiers that refine the mesh on top of everything: an engine subdivides by itself.
REFINING = ("SUBSURF", "MULTIRES")
# Modifiers whose result depends on what was before.
SIMULATED = ("CLOTH", "SOFT_BODY", "PARTICLE_SYSTEM", "DYNAMIC_PAINT", "FLUID", "OCEAN", "EXPLODE")


def say(kind, text):
    """A line for the program that started us."""
    print(f"@{kind} {' '.join(str(text).split())}", file=sys.stderr, flush=True)


def pointers(thing):
    """Objects that a modifier or constraint refers to, with the name of a bone where it names one."""
    for prop in thing.bl_rna.properties:
        if prop.type != "POINTER" or prop.identifier == "rna_type":
            continue
        value = getattr(thing, prop.identifier, None)
        if isinstance(value, bpy.types.Object):
            bone = ""
            for name in ("subtarget", prop.identifier.replace("object", "bone"), "texture_coords_bone",
                         "pole_subtarget" if prop.identifier == "pole_target" else ""):
                bone = bone or (getattr(thing, name, "") if name and name != prop.identifier else "")
            yield value, bone if isinstance(bone, str) else ""
    for target in getattr(thing, "targets", None) or ():
        if getattr(target, "target", None):
            yield target.target, getattr(target, "subtarget", "")
    # Sockets of geometry nodes.
    if getattr(thing, "type", "") == "NODES":
        for key in thing.keys():
            if isinstance(thing[key], bpy.types.Object):
                yield thing[key], ""


def shape_keys(thing):
    return getattr(getattr(thing, "data", None), "shape_keys", None)


def animated_ids(thing):
    """The data-blocks of an object that may have drivers and actions."""
    yield thing
    if thing.data:
        yield thing.data
    if shape_keys(thing):
        yield shape_keys(thing)


def drivers_of(thing):
    """All drivers of an object, its data and its shape keys, each with its data-block."""
    for block in animated_ids(thing):
        for curve in (block.animation_data.drivers if block.animation_data else ()):
            yield block, curve


class Stage:
    """`request` has `file`, `trust_scripts`, `keep_subdivision` and `set`, a list of `path=value`."""

    def __init__(self, request):
        self.request = request
        bpy.ops.wm.open_mainfile(filepath=request["file"], load_ui=False, use_scripts=bool(request["trust_scripts"]))
        self.scene = bpy.context.scene
        if bpy.context.object and bpy.context.object.mode != "OBJECT":
            bpy.ops.object.mode_set(mode="OBJECT")
        self.metres = self.scene.unit_settings.scale_length or 1.0
        self.actions = {}
        self.objects = []
        self.switches = [parse_setting(text) for text in request["set"]]

    def closure(self, objects):
        """The objects and everything that they refer to, directly or through others."""
        found, queue = [], list(objects)
        while queue:
            thing = queue.pop()
            if thing is None or thing in found:
                continue
            found.append(thing)
            queue.append(thing.parent)
            parts = list(thing.modifiers) + list(thing.constraints)
            if thing.type == "ARMATURE":
                parts += [c for bone in thing.pose.bones for c in bone.constraints]
            queue += [other for part in parts for other, _ in pointers(part)]
            for _, curve in drivers_of(thing):
                for variable in curve.driver.variables:
                    queue += [t.id for t in variable.targets if isinstance(t.id, bpy.types.Object)]
        return found

    def use(self, names):
        """Chooses the meshes and makes the file ready."""
        self.objects = []
        for name in names:
            thing = bpy.data.objects.get(name)
            if thing is None or thing.type != "MESH":
                raise RuntimeError(f"there is no mesh '{name}'")
            self.objects.append(thing)
        self.needed = self.closure(self.objects)
        linked = self.scene.collection.objects
        for thing in self.needed:
            if thing.name not in linked:
                linked.link(thing)
            thing.hide_viewport = False
            thing.hide_set(False)
            if thing.type == "ARMATURE":
                thing.data.pose_position = "POSE"
        for thing in self.scene.objects:
            if thing not in self.needed and thing.type in ("MESH", "CURVE", "SURFACE", "META", "FONT", "VOLUME",
                                                           "POINTCLOUD", "CURVES", "GREASEPENCIL"):
                thing.hide_viewport = True
        if not self.request["keep_subdivision"]:
            for thing in self.objects:
                for modifier in thing.modifiers:
                    if modifier.type in REFINING:
                        modifier.show_viewport = False
        self.still()
        for path, value in self.switches:
            set_value(self.needed, path, value)
        self.update()

    def still(self):
        """Takes all animation off: what moves from now on is moved by us or by a driver."""
        for thing in self.needed:
            for block in animated_ids(thing):
                data = block.animation_data
                if data and not getattr(block, "library", None):
                    self.actions[block] = (data.action, getattr(data, "action_slot", None))
                    data.action = None
                    data.use_nla = False

    def armatures(self):
        return [thing for thing in self.needed if thing.type == "ARMATURE"]

    def update(self):
        """Evaluates."""
        self.depsgraph = bpy.context.evaluated_depsgraph_get()
        self.depsgraph.update()

    def evaluated(self, thing):
        return thing.evaluated_get(self.depsgraph)

    def vertices(self):
        """World positions of the chosen meshes one after another, [V, 3] in metres."""
        parts = []
        for thing in self.objects:
            evaluated = self.evaluated(thing)
            mesh = evaluated.data
            flat = np.empty(3 * len(mesh.vertices), np.float32)
            mesh.vertices.foreach_get("co", flat)
            world = np.array(evaluated.matrix_world, np.float64)
            parts.append(flat.reshape(-1, 3) @ world[:3, :3].T + world[:3, 3])
        return np.concatenate(parts) * self.metres


def split_path(path):
    """`Rig.bone["prop"]` or `bone["prop"]` or `["prop"]`: owner and property."""
    owner, bracket, rest = path.rpartition('["')
    if not bracket or not rest.endswith('"]'):
        raise RuntimeError(f"'{path}' is not of the form bone[\"prop\"]")
    return owner, rest[:-2]


def parse_setting(text):
    path, equals, value = text.rpartition("=")
    try:
        return path.strip(), float(value)
    except ValueError:
        raise RuntimeError(f"--set {text}: bone[\"prop\"]=NUMBER is wanted") from None


def find_property(objects, path):
    """The data-block or bone that has a property of this path."""
    owner, name = split_path(path)
    places = []
    for thing in objects:
        if thing.type == "ARMATURE":
            places += [(bone.name, bone, thing) for bone in thing.pose.bones if bone.name == owner]
        if thing.name == owner or not owner:
            places += [(thing.name, thing, thing)] + ([(thing.name, thing.data, thing)] if thing.data else [])
    for _, holder, thing in places:
        if name in holder.keys():
            return holder, name, thing
    raise RuntimeError(f"nothing has a property {path}")


def set_value(objects, path, value):
    holder, name, thing = find_property(objects, path)
    old = holder[name]
    holder[name] = bool(value) if isinstance(old, bool) else int(value) if isinstance(old, int) else float(value)
    thing.update_tag()
