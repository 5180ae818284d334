"""Shows a twin of Understudy in Blender, beside the original.

In a file with the rig: open this script in the Scripting tab and run it, or start Blender as
    blender hero.blend --python load_twin.py
The twin appears in a collection of its own, to the right of the original. Each clip is a Mesh Cache modifier; the
first is on, and plays at its own rate from the frame on which the action of the same name begins. Play that action on the
rig, and switch the modifier of that clip on.
"""

import json
import os

import bpy

# Scene frame of a clip's first frame, where no action of its name says it, and whether the twin stands beside the original
# or in its place.
FIRST_FRAME = 1
BESIDE = True


def load(folder):
    """Makes the object from `twin.json` and the point caches beside it."""
    with open(os.path.join(folder, "twin.json"), encoding="utf-8") as file:
        twin = json.load(file)
    mesh = bpy.data.meshes.new(twin["name"])
    mesh.from_pydata(twin["vertices"], [], twin["faces"])
    if twin["face_uvs"]:
        layer = mesh.uv_layers.new(name="UVMap")
        corners = [corner for face in twin["face_uvs"] for corner in face]
        layer.data.foreach_set("uv", [number for corner in corners for number in twin["uvs"][corner]])
    mesh.shade_smooth()
    thing = bpy.data.objects.new(twin["name"], mesh)
    collection = bpy.data.collections.get("Understudy") or bpy.data.collections.new("Understudy")
    if collection.name not in bpy.context.scene.collection.children:
        bpy.context.scene.collection.children.link(collection)
    collection.objects.link(thing)
    scale = 1 / (bpy.context.scene.unit_settings.scale_length or 1)
    thing.scale = (scale,) * 3
    if BESIDE:
        across = [vertex[0] for vertex in twin["vertices"]]
        thing.location.x = 1.1 * scale * (max(across) - min(across))
    for number, clip in enumerate(twin["clips"]):
        cache = thing.modifiers.new(clip["name"], "MESH_CACHE")
        cache.cache_format = "PC2"
        cache.filepath = os.path.join(folder, clip["file"])
        cache.forward_axis, cache.up_axis = "POS_Y", "POS_Z"
        # The cache's frame at scene frame f is `frame_scale * f - frame_start`.
        cache.frame_scale = clip["rate"] / frames_per_second()
        cache.frame_start = cache.frame_scale * first_frame(clip["name"])
        cache.show_viewport = cache.show_render = number == 0
    return thing


def frames_per_second():
    render = bpy.context.scene.render
    return render.fps / render.fps_base


def first_frame(clip):
    """The frame at which the action of a clip's name begins."""
    action = bpy.data.actions.get(clip)
    return round(action.frame_range[0]) if action else FIRST_FRAME


def folder_of_this_script():
    """Where the files lie, whether Blender runs this from the disk or from its text editor."""
    if "__file__" in globals() and os.path.isfile(__file__):
        return os.path.dirname(os.path.abspath(__file__))
    return os.path.dirname(bpy.path.abspath(bpy.context.space_data.text.filepath))


if __name__ == "__main__":
    load(folder_of_this_script())
