// A `.task` file of MediaPipe: a zip archive whose members are stored as they are. The canonical face is one of them.

const GEOMETRY = "geometry_pipeline_metadata_landmarks.binarypb";

/** The canonical face, which head poses are relative to. */
export function canonicalFace(task: ArrayBuffer): Uint8Array<ArrayBuffer> {
  const view = new DataView(task);
  const wrong = (what: string) => new Error(`this is no face landmarker of MediaPipe: ${what}`);
  let end = view.byteLength - 22;
  while (end >= 0 && view.getUint32(end, true) !== 0x0605_4b50) end -= 1;
  if (end < 0) throw wrong("it has no directory");
  let entry = view.getUint32(end + 16, true);
  for (let member = view.getUint16(end + 10, true); member > 0; member--) {
    if (entry + 46 > view.byteLength || view.getUint32(entry, true) !== 0x0201_4b50) throw wrong("its directory is damaged");
    const [name, extra, comment] = [28, 30, 32].map((at) => view.getUint16(entry + at, true)) as [number, number, number];
    if (new TextDecoder().decode(new Uint8Array(task, entry + 46, name)) === GEOMETRY) {
      const [size, local] = [view.getUint32(entry + 20, true), view.getUint32(entry + 42, true)];
      if (view.getUint16(entry + 10, true) !== 0 || local + 30 > view.byteLength) throw wrong("its canonical face is packed");
      const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
      if (start + size > view.byteLength) throw wrong("it is cut short");
      return new Uint8Array(task.slice(start, start + size));
    }
    entry += 46 + name + extra + comment;
  }
  throw wrong("it has no canonical face");
}
