# MediaPipe's face landmarker, one request a line: what it sees in a picture, and how long that takes. The one argument is the
# `.task` file. `astronaut` is a photograph in the public domain that scikit-image carries.
import json
import os
import sys
import time

import mediapipe as mp
import numpy as np
import skimage
from mediapipe.tasks.python import BaseOptions, vision

options = vision.FaceLandmarkerOptions(
    base_options=BaseOptions(model_asset_path=sys.argv[1]),
    output_face_blendshapes=True,
    output_facial_transformation_matrixes=True,
    num_faces=1,
)
landmarker = vision.FaceLandmarker.create_from_options(options)
image = None


def open_picture(request):
    global image
    name = request["picture"]
    path = os.path.join(os.path.dirname(skimage.__file__), "data", "astronaut.png") if name == "astronaut" else name
    pixels = np.ascontiguousarray(skimage.io.imread(path)[..., :3])
    pixels.tofile(request["raw"])
    image = mp.Image(image_format=mp.ImageFormat.SRGB, data=pixels)
    return {"width": pixels.shape[1], "height": pixels.shape[0]}


def look(_):
    start = time.perf_counter()
    found = landmarker.detect(image)
    seconds = time.perf_counter() - start
    if not found.face_landmarks:
        return {"ms": 1e3 * seconds, "points": []}
    return {
        "ms": 1e3 * seconds,
        "points": [[p.x, p.y, p.z] for p in found.face_landmarks[0]],
        "scores": [c.score for c in found.face_blendshapes[0]],
        "matrix": np.array(found.facial_transformation_matrixes[0]).tolist(),
    }


print("ready", flush=True)
for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"open": open_picture, "look": look}[request["do"]](request)), flush=True)
